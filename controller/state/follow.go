package state

import (
	"context"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/bucket"
)

const (
	// patience is how long a copy that looks unsound is doubted before it is said
	// so, when it cannot be read anew.
	patience = 10 * time.Second
	// pace is how often the marker is written at most.
	pace = time.Second
)

// reading is what one goroutine knows of the bucket.
type reading struct {
	items    map[string]*item
	vanished map[string]struct{} // open keys that went, since all was sound
	sequence uint64
	missing  bool      // the bucket is gone
	asked    int       // 1 + readings of the watcher when a doubt came up; 0 is none
	since    time.Time // of the doubt
}

// Run follows the buckets until ctx ends, and returns nil then. An error means
// that the connection was closed for good.
func (s *Store) Run(ctx context.Context) error {
	err := s.together(ctx, s.watch.Run, s.follow, s.nodes.watch.Run, s.report.watch.Run, s.claim.watch.Run, s.touching, s.marking)
	if markErr := s.saveMarker(); err == nil && markErr != nil {
		return markErr
	}
	return err
}

// Ready waits until Run has read the profiles, reports and claims too; timeout when ctx
// ends before.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.nodes.watch.Reach(ctx, 0); err != nil {
		return err
	}
	if err := s.report.watch.Reach(ctx, 0); err != nil {
		return err
	}
	return s.claim.watch.Reach(ctx, 0)
}

// together runs all until ctx ends or one of them returns an error, which is
// returned when all have ended.
func (s *Store) together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	var once sync.Once
	var first error
	for _, run := range all {
		wait.Go(func() {
			if err := run(ctx); err != nil {
				once.Do(func() { first = err; cancel() })
			}
		})
	}
	wait.Wait()
	return first
}

// follow makes snapshots of what the watcher reads until ctx ends.
func (s *Store) follow(ctx context.Context) error {
	for {
		s.look()
		var doubted <-chan time.Time
		if s.reading.asked > 0 {
			doubted = time.After(patience / 10)
		}
		select {
		case <-s.watch.Wake():
		case <-doubted:
		case <-ctx.Done():
			return nil
		}
	}
}

// look takes what changed and publishes it when it is more than a doubt.
func (s *Store) look() {
	r := &s.reading
	changes, ok := s.watch.Take()
	if !ok {
		return
	}
	status := s.watch.Status()
	missing := !status.Current && fault.Is(status.Err, fault.NotFound)
	if s.current() != nil && r.asked == 0 && missing == r.missing &&
		len(changes.Entries)+len(changes.Gone) == 0 && changes.Revision == r.sequence {
		return
	}
	r.missing, r.sequence = missing, changes.Revision
	s.apply(changes)
	p := take(s.o.Mesh, r.items, r.sequence, sorted(r.vanished))
	switch {
	case missing:
		p.broken = unsound("the store is gone: it has no bucket of mesh state any more")
	case p.broken == nil:
		r.asked, r.vanished = 0, map[string]struct{}{}
	case !s.confirmed(status.Readings):
		return
	}
	s.publish(p)
}

// apply puts changes into items.
func (s *Store) apply(changes bucket.Changes[[]byte]) {
	r := &s.reading
	for _, key := range changes.Gone {
		if i := r.items[key]; i != nil && i.closed == "" {
			r.vanished[key] = struct{}{}
		}
		delete(r.items, key)
	}
	for _, e := range changes.Entries {
		r.items[e.Key] = read(s.o.Mesh, s.public, e)
		delete(r.vanished, e.Key)
	}
}

// confirmed reports whether what looks unsound was read twice. A reader that is
// outpaced can see half a commit for a moment; that is no reason to stop telling
// nodes their sets.
func (s *Store) confirmed(readings int) bool {
	r := &s.reading
	if r.asked == 0 {
		r.asked, r.since = readings+1, time.Now()
		s.watch.Reread()
	}
	return readings >= r.asked || time.Since(r.since) > patience
}

// marking writes the marker when it is another one, until ctx ends.
func (s *Store) marking(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-s.save:
		case <-ctx.Done():
			return nil
		}
		if err := s.saveMarker(); err != nil {
			s.o.Logger.Error("the marker of mesh state is not written", "error", err, "retry", pace)
			s.mark()
		}
		pause(ctx, pace)
	}
	return nil
}

func (s *Store) saveMarker() error {
	m := s.known()
	if m.Epoch == "" {
		return nil
	}
	return m.write(s.o.Marker)
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

func sorted(set map[string]struct{}) []string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
