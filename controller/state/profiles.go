package state

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/wire"
)

const (
	// heard is how old what is stored of when a node was heard may be.
	heard = time.Minute
	// sweep is how often it is looked for.
	sweep = time.Second
	// maxTouched bounds the nodes that are remembered.
	maxTouched = 16384
	// maxProfile is the size of one profile, in bytes.
	maxProfile = 64 << 10
)

// presence is what is stored of a node by who hears it.
type presence struct {
	Profile *wire.Profile `json:"profile,omitempty"` // nil before the first
	Seen    time.Time     `json:"seen"`
	Past    []past        `json:"past,omitempty"` // the last ones, the newest last
	Double  *Double       `json:"double,omitempty"`
}

// presences are those of all nodes.
type presences struct {
	bucket *bucket.Bucket[presence]
	watch  *bucket.Watcher[presence]

	mu       sync.Mutex
	touched  map[string]time.Time    // by this controller
	profiles map[string]wire.Profile // made of revision
	revision uint64
	created  time.Time
}

func (s *Store) openProfiles(ctx context.Context) (err error) {
	p := &s.nodes
	p.touched = map[string]time.Time{}
	p.bucket, err = insist(ctx, s.o, bucket.Options{
		Name: "profiles", Description: "what nodes say of themselves", MaxBytes: maxProfiles, MaxValue: maxProfile,
	}, bucket.JSON[presence]())
	if err == nil {
		p.watch = bucket.NewWatcher(p.bucket, bucket.WatchOptions{})
	}
	return err
}

// Profiles are the profiles of all nodes by name. The map is shared and not
// changed.
func (s *Store) Profiles() map[string]wire.Profile {
	p := &s.nodes
	status := p.watch.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profiles == nil || status.Revision != p.revision || !status.Created.Equal(p.created) {
		all, revision, _ := p.watch.Snapshot()
		p.profiles, p.revision, p.created = make(map[string]wire.Profile, len(all)), revision, status.Created
		for name, e := range all {
			if e.Value.Profile != nil && !e.Deleted {
				p.profiles[name] = *e.Value.Profile
			}
		}
	}
	return p.profiles
}

// PutProfile stores the profile of a node, when it is another than the last one,
// and counts as Touch. Invalid: it is larger than 64 KiB.
func (s *Store) PutProfile(ctx context.Context, node string, profile wire.Profile) error {
	s.Touch(node)
	e, _ := s.nodes.watch.Entry(node)
	for {
		if !e.Deleted && e.Value.Profile != nil && same(*e.Value.Profile, profile) {
			return nil
		}
		if e.Deleted {
			e.Value = presence{}
		}
		e.Value.Seen = s.Seen(node)
		revision, err := s.nodes.bucket.Update(ctx, node, e.Value.follows(profile, s.o.Clock().UTC()), e.Revision)
		if err == nil {
			_ = s.nodes.watch.Reach(ctx, revision) // it is stored, whatever the copy has
			return nil
		}
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return err
		}
		if e, err = latest(ctx, s.nodes.bucket, node); err != nil {
			return err
		}
	}
}

// latest is what stands under key now; a zero entry when nothing does, or nothing
// that can be read.
func latest[T any](ctx context.Context, b *bucket.Bucket[T], key string) (bucket.Entry[T], error) {
	e, err := b.Get(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return bucket.Entry[T]{Key: key}, nil
	}
	return e, err
}

func same(a, b wire.Profile) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// Touch notes that something was heard of a node now. It does not block.
func (s *Store) Touch(node string) {
	p := &s.nodes
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.touched[node]; ok || len(p.touched) < maxTouched {
		p.touched[node] = s.o.Clock().UTC()
	}
}

// Seen is when something was last heard of a node by any controller, to two
// minutes for what others heard; zero for never.
func (s *Store) Seen(node string) time.Time {
	e, _ := s.nodes.watch.Entry(node)
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	if at := s.nodes.touched[node]; at.After(e.Value.Seen) {
		return at
	}
	return e.Value.Seen
}

// touching stores when nodes were heard, once a minute for each, until ctx ends.
func (s *Store) touching(ctx context.Context) error {
	for pause(ctx, sweep) {
		if err := s.storeTouched(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("when nodes were heard is not stored", "error", err, "retry", sweep)
		}
	}
	return nil
}

// storeTouched stores what is a minute newer than what is stored.
func (s *Store) storeTouched(ctx context.Context) error {
	p := &s.nodes
	p.mu.Lock()
	touched := maps.Clone(p.touched)
	p.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(touched)) {
		e, _ := p.watch.Entry(node)
		if e.Deleted || touched[node].Sub(e.Value.Seen) < heard {
			continue
		}
		e.Value.Seen = touched[node]
		// A conflict is another controller's word of the same.
		if _, err := p.bucket.Update(ctx, node, e.Value, e.Revision); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

// Profile reads the profile of a node from the store, nil for none: not the one of
// this controller's copy, which may be that of before.
func (s *Store) Profile(ctx context.Context, node string) (*wire.Profile, error) {
	e, err := latest(ctx, s.nodes.bucket, node)
	if err != nil || e.Deleted || e.Err != nil {
		return nil, err
	}
	return e.Value.Profile, nil
}

// Forget takes profile, reports and claims of a node that was removed away.
func (s *Store) Forget(ctx context.Context, node string) error {
	s.nodes.mu.Lock()
	delete(s.nodes.touched, node)
	s.nodes.mu.Unlock()
	if err := wipe(ctx, s.nodes.bucket, s.nodes.watch, node); err != nil {
		return err
	}
	if err := wipe(ctx, s.report.bucket, s.report.watch, node); err != nil {
		return err
	}
	return s.forgetClaims(ctx, node)
}

// wipe puts a tombstone in place of what is under key, and waits for the copy.
func wipe[T any](ctx context.Context, b *bucket.Bucket[T], w *bucket.Watcher[T], key string) error {
	for {
		e, err := latest(ctx, b, key)
		if err != nil || e.Revision == 0 || e.Deleted {
			return err
		}
		var nothing T
		revision, err := b.Delete(ctx, key, nothing, e.Revision)
		if err == nil {
			return w.Reach(ctx, revision)
		}
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return err
		}
	}
}
