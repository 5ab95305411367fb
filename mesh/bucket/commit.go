package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
)

const (
	// MaxCommit is how many writes one commit may hold.
	MaxCommit = 1000
	// MaxCommitBytes is how large their values may be together.
	MaxCommitBytes = 32 << 20
)

// Headers of an atomic batch, as the server's documentation of atomic batch
// publishing (ADR-50) names them.
const (
	batchHeader  = "Nats-Batch-Id"
	seqHeader    = "Nats-Batch-Sequence"
	commitHeader = "Nats-Batch-Commit"
)

// Commit writes all of writes or none, and returns the revision of the last:
// they have consecutive ones, in their order. Each write is held against what it
// expects. Conflict: one did not find what it expected (the error names it), and
// nothing was written. Timeout: it is not known whether all or none were.
func (b *Bucket[T]) Commit(ctx context.Context, writes []Write[T]) (uint64, error) {
	return b.CommitAt(ctx, Any, writes)
}

// CommitAt is Commit that also expects the whole bucket to be at revision: that
// nobody has written anything since. For decisions that rest on more than the
// keys which are written.
func (b *Bucket[T]) CommitAt(ctx context.Context, revision uint64, writes []Write[T]) (uint64, error) {
	messages, err := b.messages(revision, writes)
	if err != nil {
		return 0, err
	}
	s, err := b.conn.Current()
	if err != nil {
		return 0, err
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		ack, err := b.batch(ctx, s, messages)
		switch {
		case err == nil && ack.Count != len(writes) && len(writes) > 1:
			return 0, fault.New(fault.Failed, "commit", b.o.Name, fmt.Errorf("%d of %d writes acknowledged", ack.Count, len(writes)))
		case err == nil:
			return ack.Revision, nil
		case !isCrowded(err) || !pause(ctx, wait/2+mathrand.N(wait)):
			return 0, fault.New(fault.ClassOf(err), "commit", b.o.Name, b.blame(ctx, s, writes, err))
		}
	}
}

// isCrowded reports whether the server has too many open batches at the moment,
// and nothing was done.
func isCrowded(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.ErrCode == tooManyBatches
}

func (b *Bucket[T]) messages(revision uint64, writes []Write[T]) ([]*nats.Msg, error) {
	if len(writes) == 0 || len(writes) > MaxCommit {
		return nil, fault.New(fault.Invalid, "commit", b.o.Name, fmt.Errorf("%d writes; 1 to %d", len(writes), MaxCommit))
	}
	size := 0
	seen := make(map[string]bool, len(writes))
	messages := make([]*nats.Msg, 0, len(writes))
	for i, w := range writes {
		m, err := b.message(w)
		if err != nil {
			return nil, err
		}
		if seen[w.Key] {
			return nil, fault.New(fault.Invalid, "commit", b.object(w.Key), errTwice)
		}
		seen[w.Key] = true
		if size += len(m.Data); size > MaxCommitBytes {
			return nil, fault.New(fault.Invalid, "commit", b.o.Name, fmt.Errorf("more than %d bytes", MaxCommitBytes))
		}
		if len(writes) > 1 {
			m.Header.Set(placeHeader, place(i+1, len(writes)))
		}
		messages = append(messages, m)
	}
	if revision != Any {
		messages[0].Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(revision, 10))
	}
	return messages, nil
}

// batch sends messages under an id of its own. The server answers to the first,
// where it says that it takes no batch, and to the last, which commits.
func (b *Bucket[T]) batch(ctx context.Context, s *mesh.Session, messages []*nats.Msg) (stands, error) {
	last := len(messages) - 1
	if last > 0 {
		id := rand.Text()
		for i, m := range messages {
			m.Header.Set(batchHeader, id)
			m.Header.Set(seqHeader, strconv.Itoa(i+1))
		}
		messages[last].Header.Set(commitHeader, "1")
		if err := b.stage(ctx, s, messages[:last]); err != nil {
			return stands{}, err
		}
	}
	return b.send(ctx, s, messages[last])
}

// stage sends what is committed later. Nothing of it stands.
func (b *Bucket[T]) stage(ctx context.Context, s *mesh.Session, messages []*nats.Msg) error {
	answer, err := s.Ask(ctx, messages[0])
	switch {
	case fault.Is(err, fault.Timeout):
		return fault.New(fault.Unavailable, "", "", errors.New("no answer to the first write; nothing was done"))
	case err != nil:
		return err
	case len(answer.Data) > 0:
		if err := decode(answer.Data, &stands{}); err != nil {
			return err
		}
	}
	for _, m := range messages[1:] {
		if ctx.Err() != nil {
			return fault.New(fault.Canceled, "", "", ctx.Err())
		}
		if err := s.NATS().PublishMsg(m); err != nil {
			return fault.New(fault.Unavailable, "", "", err)
		}
	}
	return nil
}

// blame finds the first write that does not find what it expects, since the
// server does not say which it was. What is found may have changed since.
func (b *Bucket[T]) blame(ctx context.Context, s *mesh.Session, writes []Write[T], err error) error {
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	for _, w := range writes {
		if w.Expect == Any {
			continue
		}
		e, getErr := b.last(ctx, s, w.Key)
		switch {
		case fault.Is(getErr, fault.NotFound):
			e.Revision = 0
		case getErr != nil:
			return err
		}
		if e.Revision != w.Expect {
			return fault.New(fault.Conflict, "", b.object(w.Key), fmt.Errorf("it is at revision %d, not %d", e.Revision, w.Expect))
		}
	}
	return err
}

// pause waits, and returns false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
