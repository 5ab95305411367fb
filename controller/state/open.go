package state

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"stead/host/fault"
	"stead/mesh/bucket"
)

// Open reads the store and holds it against the marker. It is refused, and
// nothing was written, when the store is not the one that the marker knows: empty,
// of another epoch, behind. A store that nobody wrote to yet gets its first epoch.
// One that is right as far as the marker knows and not sound is opened all the
// same, so that it can be looked at.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m, err := readMarker(o.Marker, o.Mesh)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, public: o.Key.Public().(ed25519.PublicKey), marker: m, //nolint:forcetypeassert // what an ed25519 key has
		turn: make(chan struct{}, 1), save: make(chan struct{}, 1), moved: make(chan struct{}), wakes: map[chan struct{}]struct{}{},
		reading: reading{items: map[string]*item{}, vanished: map[string]struct{}{}}}
	if err := o.Conn.Wait(ctx); err != nil {
		return nil, err
	}
	s.bucket, err = insist(ctx, o, bucket.Options{
		Name: "state", Description: "what is declared, and the nodes", MaxBytes: maxState, MaxValue: MaxCanonical + 16<<10,
		Existing: m.Epoch != "" && !o.BeginEpoch,
	}, bucket.Bytes())
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, s.refuse(fmt.Sprintf("the store is empty; revision %d of epoch %s was seen", m.Revision, m.Epoch))
	case err != nil:
		return nil, err
	}
	s.watch = bucket.NewWatcher(s.bucket, bucket.WatchOptions{})
	if err := s.begun(ctx); err != nil {
		return nil, err
	}
	if err := s.saveMarker(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.openProfiles(ctx), s.openReports(ctx), s.openClaims(ctx)); err != nil {
		return nil, err
	}
	return s, nil
}

// insist opens a bucket, and tries again for a while when the server has other
// things to do: controllers that make a bucket at the same time are told by the
// server that there is no room for both.
func insist[T any](ctx context.Context, o Options, b bucket.Options, codec bucket.Codec[T]) (*bucket.Bucket[T], error) {
	b.Replicas, b.Logger = o.Replicas, o.Logger
	ctx, cancel := context.WithTimeout(ctx, 2*glimpse)
	defer cancel()
	for {
		opened, err := bucket.Open(ctx, o.Conn, b, codec)
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Conflict) || !pause(ctx, again) {
			return opened, err
		}
	}
}

// refuse is the error of a controller that does not start.
func (s *Store) refuse(why string) error {
	return fault.New(fault.Refused, "open mesh state", s.o.Mesh, errors.New(why)).WithHint(cure)
}

// begun follows the bucket until it has an epoch that this controller may go on
// from.
func (s *Store) begun(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.together(ctx, s.watch.Run, s.follow, func(ctx context.Context) error {
		defer cancel()
		if err := s.Reach(ctx, 0); err != nil {
			return err
		}
		for {
			p := s.current()
			why := s.wanting(p)
			switch fresh := p.empty && s.known().Epoch == "" && len(p.strangers) == 0; {
			case why == "":
				return nil
			case !fresh && !s.o.BeginEpoch:
				if s.bearable(p) {
					return nil
				}
				return s.refuse(why)
			}
			s.o.Logger.Warn("a new epoch of mesh state begins", "reason", why)
			err := s.begin(ctx, p)
			if fault.Is(err, fault.Conflict) { // another controller was first
				err = s.beyond(ctx, p)
			}
			if err != nil {
				return err
			}
		}
	})
}

// wanting says why p wants a new epoch; "" when it does not.
func (s *Store) wanting(p *snapshot) string {
	m := s.known()
	switch {
	case m.doubt(p) != "":
		return m.doubt(p)
	case p.broken != nil:
		return causeOf(p.broken)
	case p.empty && len(p.strangers) > 0:
		return "no value in the store is of this mesh: " + few(p.strangers)
	case p.empty:
		return "the store is empty"
	case len(m.Strays) > 0:
		return fmt.Sprintf("nodes hold epoch %s, which this store does not know", m.Strays[0])
	case len(writable(p.strangers)) > 0:
		return "the store holds values that no controller wrote: " + few(writable(p.strangers))
	}
	return ""
}

// bearable reports whether a controller starts with p as it is, since it is the
// store that the marker knows.
func (s *Store) bearable(p *snapshot) bool { return !p.empty && s.known().doubt(p) == "" }
