package bucket

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
)

const (
	pullMessages = 256
	pullBytes    = 4 << 20 // below what the server keeps for a connection that is slow
	pullFor      = 30 * time.Second
	heartbeat    = 3 * time.Second // the server sends one when there is nothing else
	silence      = 2*heartbeat + time.Second
	holdFor      = 2 * time.Second
	forgotten    = time.Minute // after which the server drops a consumer that nobody asks
)

// reader reads one bucket once, from its oldest value on, over one connection.
type reader[T any] struct {
	w        *Watcher[T]
	s        *mesh.Session
	sub      *nats.Subscription
	consumer string
	created  time.Time // of the bucket
	first    uint64    // revision of the bucket when the reading began

	left  int       // messages that the server may still send for the last pull
	heard time.Time // when anything came last

	whole  bool                // the first reading is done; the copy is followed
	staged map[string]Entry[T] // read and not visible yet
	seen   uint64              // revision of the last message
	commit uint64              // revision at which the commit that it is of is whole
	until  uint64              // revision from which on the copy can be exact, see settle
	gap    bool                // revisions were passed over since that was found out
	held   time.Time           // when it was found out first since flush
	idle   int                 // heartbeats since there was anything to wait for
	behind uint64              // 1 + seen at the last check that found more in the bucket; 0 is none
}

// open makes a consumer that begins with the last value of each key.
func (w *Watcher[T]) open(ctx context.Context, s *mesh.Session) (*reader[T], error) {
	info, err := w.b.info(ctx, s)
	if err != nil {
		return nil, err
	}
	sub, err := s.NATS().SubscribeSync(s.NATS().NewInbox())
	if err != nil {
		return nil, fault.New(fault.Unavailable, "", "", err)
	}
	r := &reader[T]{w: w, s: s, sub: sub, consumer: "watch-" + rand.Text(), created: info.Created, first: info.State.LastSeq,
		staged: map[string]Entry[T]{}, heard: time.Now()}
	request := map[string]any{"stream_name": w.b.stream, "action": "create", "config": jetstream.ConsumerConfig{
		Name: r.consumer, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		ReplayPolicy: jetstream.ReplayInstantPolicy, FilterSubject: w.b.prefix + ">",
		MemoryStorage: true, Replicas: 1, InactiveThreshold: forgotten,
	}}
	var made jetstream.ConsumerInfo
	if err := api(ctx, s, "CONSUMER.CREATE."+w.b.stream+"."+r.consumer, request, &made); err != nil {
		r.close()
		return nil, err
	}
	if made.NumPending == 0 {
		r.flush()
	}
	return r, nil
}

// close ends the subscription, and tells the server to drop the consumer; when
// that does not arrive it does so by itself.
func (r *reader[T]) close() {
	_ = r.sub.Unsubscribe()
	_ = r.s.NATS().Publish("$JS.API.CONSUMER.DELETE."+r.w.b.stream+"."+r.consumer, nil)
}

// next takes the next message, or returns at the latest at until.
func (r *reader[T]) next(ctx context.Context, until time.Time) error {
	if r.left == 0 {
		if err := r.pull(); err != nil {
			return err
		}
	}
	if end := r.heard.Add(silence); end.Before(until) {
		until = end
	}
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	m, err := r.sub.NextMsgWithContext(wait)
	switch {
	case err == nil:
		r.heard = time.Now()
		return r.take(ctx, m)
	case ctx.Err() != nil:
		return lostSession(ctx)
	case !errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Failed, "", "", err)
	case time.Since(r.heard) >= silence:
		r.w.b.conn.Doubt()
		return fault.New(fault.Unavailable, "", "", fmt.Errorf("nothing was heard of the server for %s", silence))
	}
	return nil
}

func (r *reader[T]) pull() error {
	text, err := json.Marshal(map[string]any{
		"batch": pullMessages, "max_bytes": pullBytes, "expires": pullFor, "idle_heartbeat": heartbeat,
	})
	if err != nil {
		return fault.New(fault.Internal, "", "", err)
	}
	r.left = pullMessages
	subject := "$JS.API.CONSUMER.MSG.NEXT." + r.w.b.stream + "." + r.consumer
	if err := r.s.NATS().PublishRequest(subject, r.sub.Subject, text); err != nil {
		return fault.New(fault.Unavailable, "", "", err)
	}
	return nil
}

// take looks at one message: a value, or a word of the server about the pull.
func (r *reader[T]) take(ctx context.Context, m *nats.Msg) error {
	if status := m.Header.Get("Status"); status != "" && len(m.Data) == 0 {
		return r.word(status, m.Header.Get("Description"))
	}
	r.left--
	about, err := m.Metadata()
	if err != nil {
		return fault.New(fault.Failed, "", "", err)
	}
	key, ours := strings.CutPrefix(m.Subject, r.w.b.prefix)
	revision := about.Sequence.Stream
	if !ours || revision <= r.seen {
		return errReread{fmt.Sprintf("revision %d came after %d", revision, r.seen)}
	}
	r.staged[key] = r.w.b.entry(key, m.Header, m.Data, revision, about.Timestamp)
	r.idle = 0
	r.gap = r.gap || revision != r.seen+1
	r.seen, r.commit = revision, max(r.commit, ends(m.Header, revision))
	switch {
	case r.seen < r.commit, r.seen < r.until:
		return nil
	case !r.whole && r.until == 0 && about.NumPending > 0:
		return nil
	case r.gap && (r.held.IsZero() || time.Since(r.held) < holdFor):
		return r.settle(ctx)
	}
	r.flush()
	return nil
}

// settle finds out from where on the copy can be exact. The bucket keeps one
// value of each key, so a revision that was passed over was overwritten by a
// later one before it was read. Until that comes the copy holds an older value,
// or none, beside newer ones of the same commit; it is in the bucket by now, so
// it comes at the latest with the bucket's last revision. Keys that are written
// all the time, each write before the last was read, would have it wait for ever:
// so not for longer than holdFor.
func (r *reader[T]) settle(ctx context.Context) error {
	info, err := r.w.b.info(ctx, r.s)
	if err != nil {
		return err
	}
	r.gap, r.until, r.idle = false, info.State.LastSeq, 0
	if r.held.IsZero() {
		r.held = time.Now()
	}
	if r.seen >= r.until {
		r.flush()
	}
	return nil
}

// word understands what the server says of a pull, as ADR-13 of NATS lists it.
func (r *reader[T]) word(status, description string) error {
	switch {
	case status == "100":
		r.rest()
		return nil
	case status == "404", status == "408",
		status == "409" && (strings.HasPrefix(description, "Message Size Exceeds MaxBytes") || strings.HasPrefix(description, "Batch Completed")):
		r.left = 0
		return nil
	}
	return fault.New(fault.Unavailable, "", "", fmt.Errorf("the server ended the reading: %s %s", status, description))
}

// rest takes note of a heartbeat: there was nothing to send for its time. The
// first may have been on its way while it was found out what to wait for. After
// the second that does not come any more: the last revisions were purged.
func (r *reader[T]) rest() {
	if waiting, _, err := r.sub.Pending(); err != nil || waiting > 0 || r.whole && len(r.staged) == 0 {
		return
	}
	if r.idle++; r.idle < 2 {
		return
	}
	if r.seen < r.commit {
		r.w.b.o.Logger.Error("half a commit stands in the bucket", "bucket", r.w.b.o.Name, "revision", r.seen, "whole_at", r.commit)
	}
	r.seen = max(r.seen, r.until)
	r.flush()
}

// flush makes what was read visible.
func (r *reader[T]) flush() {
	if r.whole {
		r.w.view.add(r.staged, r.seen)
	} else {
		r.seen = max(r.seen, r.first)
		r.w.view.replace(r.staged, r.seen, r.created)
	}
	r.whole, r.staged, r.held, r.gap = true, map[string]Entry[T]{}, time.Time{}, false
}

// check holds the copy against the bucket's own figures.
func (r *reader[T]) check(ctx context.Context) error {
	info, err := r.w.b.info(ctx, r.s)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	switch {
	case !info.Created.Equal(r.created):
		return errReread{"it was made anew"}
	case last < r.seen:
		return errReread{fmt.Sprintf("its revision went back from %d to %d", r.seen, last)}
	case r.whole && last == r.seen && len(r.staged) == 0 && int(info.State.Msgs) != r.w.view.size(): //nolint:gosec // a count of keys
		return errReread{fmt.Sprintf("it has %d keys, the copy %d", info.State.Msgs, r.w.view.size())}
	case last > r.seen && r.behind == r.seen+1:
		return errReread{fmt.Sprintf("it is at revision %d, and nothing came after %d", last, r.seen)}
	case last > r.seen:
		r.behind = r.seen + 1
	default:
		r.behind = 0
	}
	return nil
}
