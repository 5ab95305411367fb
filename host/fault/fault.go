// Package fault holds the closed set of error classes and the one error type
// that carries them across a boundary of stead.
//
// A class is stable on the wire and decides what a caller may do (retry, ask
// for another name, give up). The text is for people and is never parsed. The
// package is words only: it imports nothing of stead.
package fault

import (
	"errors"
	"strings"
)

// Class says what kind of failure an error is. The set is closed.
type Class string

// The classes, as they stand on the wire.
const (
	Invalid     Class = "invalid"     // the input breaks a rule; the same call fails again
	NotFound    Class = "not_found"   // the object does not exist
	Refused     Class = "refused"     // well-formed, and a rule of stead or systemd forbids it
	Conflict    Class = "conflict"    // somebody else holds or changed the object
	Denied      Class = "denied"      // the caller may not do this
	Unsupported Class = "unsupported" // this version cannot do this
	Unavailable Class = "unavailable" // the other side cannot be reached; nothing was done
	Timeout     Class = "timeout"     // no answer by the deadline; it may have been done
	Canceled    Class = "canceled"    // the caller went away
	Failed      Class = "failed"      // it was tried and did not succeed
	Internal    Class = "internal"    // a defect of stead
)

// Known reports whether c is one of the classes.
func (c Class) Known() bool {
	switch c {
	case Invalid, NotFound, Refused, Conflict, Denied, Unsupported, Unavailable, Timeout, Canceled, Failed, Internal:
		return true
	}
	return false
}

// Retry reports whether the same call may succeed later without any change of
// its input.
func (c Class) Retry() bool {
	switch c {
	case Unavailable, Timeout, Failed, Conflict:
		return true
	}
	return false
}

// Error is a failure with its class. It reads "operation: object: cause".
type Error struct {
	Class  Class
	Op     string // what was being done: "write", "start", "read declarations"
	Object string // to what: a path, a unit, a declaration
	Cause  error  // why it did not succeed; may be nil
	Hint   string // for a person: the exact command or edit that cures it; may be empty
}

// New returns an error of class c. Op and object may be empty; cause may be nil.
func New(c Class, op, object string, cause error) *Error {
	return &Error{Class: c, Op: op, Object: object, Cause: cause}
}

// WithHint returns e with the cure for a person set.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// Error implements error.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{e.Op, e.Object} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	switch {
	case e.Cause != nil:
		parts = append(parts, e.Cause.Error())
	case len(parts) == 0:
		parts = append(parts, string(e.Class))
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ClassOf returns the class of the outermost Error in err's chain, Internal
// when there is none, and "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Internal
}

// HintOf returns the cure that the outermost Error in err's chain knows, "" when
// there is none.
func HintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// Is reports whether err carries class c.
func Is(err error, c Class) bool { return ClassOf(err) == c }
