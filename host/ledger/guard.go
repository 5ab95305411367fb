package ledger

import (
	"errors"
	"runtime/debug"

	"stead/host/fault"
)

// guard calls f and turns what it meets in a damaged file into an error: bbolt
// panics over a page that makes no sense, and a file that was cut short faults
// where it is mapped.
func (l *Ledger) guard(op string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = l.damaged("%v", p)
		}
	}()
	err = f()
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.New(fault.Failed, op+" ledger", l.path, err)
}
