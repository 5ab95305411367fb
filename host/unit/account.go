package unit

import (
	"errors"
	"fmt"

	"stead/host/fault"
)

// ManagerOf is the service of the system scope whose main process is the manager of
// the account with that uid.
func ManagerOf(uid uint32) Name { return Name(fmt.Sprintf("user@%d.service", uid)) }

// Listener is the process at the other end of a socket, as the kernel states it.
type Listener struct{ PID, UID uint32 }

// CheckManager is nil when l is the manager of the account with that uid, whose main
// process is main, as PID 1 states it; 0 for none. The error is NotFound when there is
// no such process, and Denied when it is another one than l.
func CheckManager(uid, main uint32, l Listener) error {
	const op = "check the process on the socket of"
	name := string(ManagerOf(uid))
	switch {
	case main == 0:
		return fault.New(fault.NotFound, op, name, errors.New("it has no main process"))
	case main != l.PID || uid != l.UID:
		return fault.New(fault.Denied, op, name, fmt.Errorf("process %d of uid %d listens, and the manager is process %d", l.PID, l.UID, main))
	}
	return nil
}
