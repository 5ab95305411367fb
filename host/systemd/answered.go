package systemd

import (
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// answered is until when a manager is known to have read messages: when the last
// call was sent that it has answered. A word of the manager that comes after that
// answer was said later than that; how much later is not known, since both may have
// lain in the socket for long.
type answered struct {
	mu     sync.Mutex
	serial uint32    // of a call whose answer is waited for; 0 for none
	sent   time.Time // when it was sent
	last   time.Time // zero while nothing was answered
}

// out takes in a message that is about to be sent.
func (a *answered) out(msg *dbus.Message) {
	if msg.Type != dbus.TypeMethodCall || msg.Flags&dbus.FlagNoReplyExpected != 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.serial == 0 { // of many in flight one tells enough
		a.serial, a.sent = msg.Serial(), time.Now()
	}
}

// in takes in a message that was received, in the order in which they came.
func (a *answered) in(msg *dbus.Message) {
	if msg.Type != dbus.TypeMethodReply && msg.Type != dbus.TypeError {
		return
	}
	serial, _ := msg.Headers[dbus.FieldReplySerial].Value().(uint32)
	a.mu.Lock()
	defer a.mu.Unlock()
	if serial == a.serial && serial != 0 {
		a.last, a.serial = a.sent, 0
	}
}

func (a *answered) since() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}
