package server

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands on what the NATS server logs. Its errors are warnings here: a
// client that broke off is one of them, and nobody has to act for that. Its
// notices are for who debugs.
type logger struct {
	to *slog.Logger

	mu   sync.Mutex
	last string // of the fatal messages
}

// errSilent: the server neither answers nor says why.
var errSilent = fmt.Errorf("it does not answer after %s", startFor)

// Noticef implements the NATS server's Logger.
func (l *logger) Noticef(format string, v ...any) { l.to.Debug("nats server", "text", text(format, v)) }

// Warnf implements the NATS server's Logger.
func (l *logger) Warnf(format string, v ...any) { l.to.Warn("nats server", "text", text(format, v)) }

// Errorf implements the NATS server's Logger.
func (l *logger) Errorf(format string, v ...any) { l.to.Warn("nats server", "text", text(format, v)) }

// Fatalf implements the NATS server's Logger. The text is the cause of a start
// that did not succeed.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = text(format, v)
}

// Debugf implements the NATS server's Logger; it is never on.
func (l *logger) Debugf(string, ...any) {}

// Tracef implements the NATS server's Logger; it is never on, since traces hold
// what messages say.
func (l *logger) Tracef(string, ...any) {}

// fatal is what the server could not start for, nil when it said nothing of the
// kind.
func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return nil
	}
	return errors.New(l.last)
}

func text(format string, v []any) string { return fmt.Sprintf(format, v...) }
