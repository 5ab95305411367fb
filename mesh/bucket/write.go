package bucket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
)

// Get returns the last value under key, a tombstone too. It is not_found when
// the key was never written.
func (b *Bucket[T]) Get(ctx context.Context, key string) (Entry[T], error) {
	if err := CheckKey(key); err != nil {
		return Entry[T]{}, err
	}
	s, err := b.conn.Current()
	if err != nil {
		return Entry[T]{}, err
	}
	e, err := b.last(ctx, s, key)
	if err == nil {
		err = e.Err
	}
	if err != nil {
		return Entry[T]{}, fault.New(fault.ClassOf(err), "get", b.object(key), err)
	}
	return e, nil
}

// At returns the value that was written at revision. It is not_found when there
// was none, and when its key was written again since.
func (b *Bucket[T]) At(ctx context.Context, revision uint64) (Entry[T], error) {
	s, err := b.conn.Current()
	if err != nil {
		return Entry[T]{}, err
	}
	e, err := b.find(ctx, s, map[string]any{"seq": revision})
	if err == nil {
		err = e.Err
	}
	if err != nil {
		return Entry[T]{}, fault.New(fault.ClassOf(err), "get revision", b.object(strconv.FormatUint(revision, 10)), err)
	}
	return e, nil
}

// Figures are a bucket's own.
type Figures struct {
	Revision uint64 // of the last write, also of one that was overwritten
	Keys     int    // tombstones among them
	Bytes    int64
	Created  time.Time
}

// Figures asks for the bucket's figures of now; not_found when it is gone.
func (b *Bucket[T]) Figures(ctx context.Context) (Figures, error) {
	s, err := b.conn.Current()
	if err != nil {
		return Figures{}, err
	}
	info, err := b.info(ctx, s)
	if err != nil {
		return Figures{}, fault.New(fault.ClassOf(err), "ask bucket", b.o.Name, err)
	}
	return Figures{info.State.LastSeq, int(info.State.Msgs), int64(info.State.Bytes), info.Created}, nil //nolint:gosec // counts
}

// Put writes value whatever is there, and returns its revision.
func (b *Bucket[T]) Put(ctx context.Context, key string, value T) (uint64, error) {
	return b.write(ctx, "put", Write[T]{Key: key, Value: value, Expect: Any})
}

// Update writes value when the key is at revision, and returns the new one. A
// revision of 0 expects that the key was never written. Conflict: it is at
// another one, and nothing was written.
func (b *Bucket[T]) Update(ctx context.Context, key string, value T, revision uint64) (uint64, error) {
	return b.write(ctx, "update", Write[T]{Key: key, Value: value, Expect: revision})
}

// Create writes value when there is none under key: it was never written or is
// deleted. Conflict: there is one.
func (b *Bucket[T]) Create(ctx context.Context, key string, value T) (uint64, error) {
	revision, err := b.write(ctx, "create", Write[T]{Key: key, Value: value})
	if !fault.Is(err, fault.Conflict) {
		return revision, err
	}
	e, getErr := b.Get(ctx, key)
	if getErr != nil || !e.Deleted {
		return 0, err
	}
	return b.write(ctx, "create", Write[T]{Key: key, Value: value, Expect: e.Revision})
}

// Delete puts a tombstone in place of what is at revision, and returns the
// tombstone's. It holds value, which says what was deleted, and stays.
func (b *Bucket[T]) Delete(ctx context.Context, key string, value T, revision uint64) (uint64, error) {
	return b.write(ctx, "delete", Write[T]{Key: key, Value: value, Expect: revision, Delete: true})
}

// Write is one of the writes of a commit.
type Write[T any] struct {
	Key    string
	Value  T
	Delete bool   // Value becomes a tombstone
	Expect uint64 // the revision that the key must be at; 0: never written; Any: whatever it is
}

func (b *Bucket[T]) write(ctx context.Context, op string, w Write[T]) (uint64, error) {
	m, err := b.message(w)
	if err != nil {
		return 0, err
	}
	s, err := b.conn.Current()
	if err != nil {
		return 0, err
	}
	ack, err := b.send(ctx, s, m)
	if err != nil {
		return 0, fault.New(fault.ClassOf(err), op, b.object(w.Key), err)
	}
	return ack.Revision, nil
}

// message is what is stored for a write.
func (b *Bucket[T]) message(w Write[T]) (*nats.Msg, error) {
	if err := CheckKey(w.Key); err != nil {
		return nil, err
	}
	data, err := b.codec.Encode(w.Value)
	if err != nil {
		return nil, fault.New(fault.Invalid, "write value", b.object(w.Key), err)
	}
	if len(data) > b.o.MaxValue {
		return nil, fault.New(fault.Invalid, "write value", b.object(w.Key), fmt.Errorf("%d bytes; at most %d", len(data), b.o.MaxValue))
	}
	m := &nats.Msg{Subject: b.prefix + w.Key, Data: data, Header: nats.Header{}}
	m.Header.Set(jetstream.ExpectedStreamHeader, b.stream)
	if w.Expect != Any {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.Expect, 10))
	}
	if w.Delete {
		m.Header.Set(operationHeader, deleted)
	}
	return m, nil
}

var errTwice = errors.New("the key stands twice in one commit")
