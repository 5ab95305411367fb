// Package trail is the audit stream: what happened in the mesh, in the order in
// which controllers stored it, bounded in size and age.
package trail

import (
	"context"
	"errors"
	"log/slog"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/wire"
)

// Options bound the stream. Zero values are the defaults.
type Options struct {
	MaxBytes int64 // 0 is 32 MiB
	Replicas int   // 0 is one
	Logger   *slog.Logger
}

// Trail is the audit stream.
type Trail struct{ o Options }

var errLater = fault.New(fault.Unsupported, "", "", errors.New("not built yet"))

// Open makes the stream or finds it right.
func Open(ctx context.Context, c *mesh.Conn, o Options) (*Trail, error) { return nil, errLater }

// Append stores events in their order. An event whose node and id were stored in
// the last twenty minutes is not stored again, so a batch may be repeated.
func (t *Trail) Append(ctx context.Context, events ...wire.Event) error { return errLater }

// Page answers a request for events; it waits for r.Wait at most.
func (t *Trail) Page(ctx context.Context, r wire.EventsRequest) (wire.EventsReply, error) {
	return wire.EventsReply{}, errLater
}
