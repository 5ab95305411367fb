package systemd

import (
	"context"
	"errors"

	"github.com/godbus/dbus/v5"

	"stead/host/fault"
)

// answer is an error that the manager replied with.
type answer struct {
	name string // D-Bus error name
	text string // the manager's own words
}

func (a *answer) Error() string {
	if a.text == "" {
		return a.name
	}
	return a.text
}

// What becomes of a call when there is no answer.
var (
	errUnsent = errors.New("the connection to the manager was closed")               // certainly not done
	errLost   = errors.New("the connection to the manager was lost")                 // may have been done
	errHung   = errors.New("the manager does not answer; the connection is dropped") // may have been done
)

// fromBus turns what godbus says of a call into one of ours.
func fromBus(err error, ctx context.Context) error {
	var e dbus.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		a := &answer{name: clip(e.Name)}
		if len(e.Body) > 0 {
			text, _ := e.Body[0].(string)
			a.text = clip(text)
		}
		return a
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, dbus.ErrClosed):
		return errUnsent
	}
	return errLost
}

// classes maps D-Bus error names to classes; a name that is not listed is
// Failed. The names are those of systemd's src/libsystemd/sd-bus/bus-common-errors.h
// and of the D-Bus specification.
func classOf(name string) fault.Class {
	switch name {
	case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.NoSuchJob",
		"org.freedesktop.systemd1.UnitNotLoaded", "org.freedesktop.DBus.Error.FileNotFound",
		"org.freedesktop.DBus.Error.UnknownObject":
		return fault.NotFound
	case "org.freedesktop.systemd1.UnitMasked", "org.freedesktop.systemd1.OnlyByDependency",
		"org.freedesktop.systemd1.NoIsolation", "org.freedesktop.systemd1.UnitGenerated",
		"org.freedesktop.systemd1.UnitLinked":
		return fault.Refused
	case "org.freedesktop.systemd1.TransactionIsDestructive",
		"org.freedesktop.systemd1.TransactionJobsConflicting", "org.freedesktop.systemd1.UnitExists":
		return fault.Conflict
	case "org.freedesktop.systemd1.JobTypeNotApplicable", "org.freedesktop.DBus.Error.NotSupported",
		"org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface",
		"org.freedesktop.DBus.Error.UnknownProperty":
		return fault.Unsupported
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.AuthFailed",
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fault.Denied
	case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout",
		"org.freedesktop.DBus.Error.TimedOut":
		return fault.Timeout
	case "org.freedesktop.systemd1.ShuttingDown", "org.freedesktop.DBus.Error.Disconnected",
		"org.freedesktop.DBus.Error.NoServer", "org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.LimitsExceeded":
		return fault.Unavailable
	case "org.freedesktop.DBus.Error.InvalidArgs":
		return fault.Invalid
	}
	return fault.Failed
}

// looking says of a call that only reads why it has no answer.
func looking(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return toFault(op, object, err, fault.Unavailable)
}

// acting is looking for a call that changes something: where it is not known
// whether it was done, the class must not claim that it was not.
func acting(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return toFault(op, object, err, fault.Timeout)
}

func toFault(op, object string, err error, lost fault.Class) error {
	var a *answer
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.As(err, &a):
		return fault.New(classOf(a.name), op, object, a)
	case errors.Is(err, errUnsent):
		return fault.New(fault.Unavailable, op, object, err)
	case errors.Is(err, errLost):
		return fault.New(lost, op, object, err)
	case errors.Is(err, errHung), errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Timeout, op, object, err)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Canceled, op, object, err)
	}
	return fault.New(fault.Internal, op, object, err)
}

// strange is the error for an answer that has another shape than systemd's
// interface states. What the answer holds may be long, and anything.
func strange(method string, err error) error {
	return fault.New(fault.Internal, "read answer", method, errors.New("unexpected shape: "+clip(err.Error())))
}
