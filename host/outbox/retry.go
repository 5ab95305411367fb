package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// line is one topic on which is sent, one message after the other.
type line struct {
	topic subject.Topic
	link  link
	log   *slog.Logger

	fails   int
	session uint64 // in which it failed
}

// ask sends a message and reads the answer into reply.
func (l *line) ask(ctx context.Context, message, reply any) error {
	payload, err := json.Marshal(message)
	if err != nil {
		return fault.New(fault.Internal, "send", string(l.topic), err)
	}
	if err = l.send(ctx, payload, reply); err == nil {
		l.worked()
	}
	return err
}

// send is ask for a message that was written before; the caller says whether it
// worked.
func (l *line) send(ctx context.Context, payload []byte, reply any) error {
	session := l.link.Session()
	answer, err := l.link.Ask(ctx, l.topic, payload)
	if err == nil {
		if err = json.Unmarshal(answer, reply); err != nil {
			err = fault.New(fault.Failed, "read the answer", string(l.topic), err)
		}
	}
	if err != nil && ctx.Err() == nil {
		l.failed(session, err)
	}
	return err
}

// worked ends a row of failures.
func (l *line) worked() {
	if l.fails > 0 {
		l.log.Info("sent again", "topic", l.topic, "failures", l.fails)
	}
	l.fails = 0
}

// failed counts a failure, and logs the first in a row.
func (l *line) failed(session uint64, err error) {
	l.fails, l.session = l.fails+1, session
	if l.fails == 1 {
		l.log.Warn("cannot send", "topic", l.topic, "error", err, "retry", "in a new connection, or with growing delay")
	}
}

// delay is how long to wait after the last failure, 0 when there was none or it
// was in another connection. A thousand nodes must not come at once.
func (l *line) delay() time.Duration {
	if l.fails == 0 || l.session != l.link.Session() {
		return 0
	}
	d := min(firstRetry<<min(l.fails-1, 10), lastRetry)
	return d/2 + rand.N(d/2)
}

// stored reports whether a message whose sending ended in err may have been
// stored.
func stored(err error) bool {
	switch fault.ClassOf(err) {
	case fault.Unavailable, fault.Denied, fault.Invalid, fault.Refused, fault.Unsupported, fault.NotFound:
		return false
	}
	return true
}

// connected waits until there is a connection and the delay of the last failure
// is over. It reports false when ctx ended.
func (l *line) connected(ctx context.Context, changed <-chan struct{}) bool {
	until := time.Now().Add(l.delay())
	for ctx.Err() == nil {
		left := time.Until(until)
		if l.link.Session() != 0 && (left <= 0 || l.session != l.link.Session()) {
			return true
		}
		if l.link.Session() == 0 {
			left = time.Hour // until there is news
		}
		if !pause(ctx, left, changed) {
			return false
		}
	}
	return false
}

func short(text string) string {
	if len(text) <= maxLine {
		return text
	}
	cut := maxLine
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut-- // not within a rune
	}
	return fmt.Sprintf("%s… and %d bytes", text[:cut], len(text)-cut)
}
