package state

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"sync"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/bucket"
)

// Bounds of the buckets, in bytes. MaxStore is what the NATS server must be
// allowed for all of them.
const (
	maxState    = 96 << 20
	maxProfiles = 16 << 20
	maxReports  = 96 << 20
	maxClaims   = 8 << 20
	MaxStore    = maxState + maxProfiles + maxReports + maxClaims
)

// Options are what a Store is made of. BeginEpoch, Replicas and Clock may be left
// out.
type Options struct {
	Conn *mesh.Conn
	Mesh string // the mesh's id
	Key  ed25519.PrivateKey
	// Marker is the path of the file that says which epoch and revision this
	// controller saw last. It must not lie in the NATS server's store; its folder
	// must be there and be writable.
	Marker string
	// BeginEpoch begins a new epoch when the store is not the one that the marker
	// knows, or not sound; otherwise it does nothing. What opens is taken over, what
	// does not is taken out of the state.
	BeginEpoch bool
	By         string // who this controller is, for the records: "controller c1"
	Replicas   int    // of each bucket; 0 is one
	Clock      func() time.Time
	Logger     *slog.Logger
}

// Store is one controller's copy of mesh state. Make one with Open and run it
// once.
type Store struct {
	o      Options
	public ed25519.PublicKey

	bucket  *bucket.Bucket[[]byte]
	watch   *bucket.Watcher[[]byte]
	reading reading // of the goroutine that follows the bucket

	turn chan struct{} // capacity one: decisions of this controller take turns
	save chan struct{} // capacity one: the marker is to be written

	nodes  presences
	report reports
	claim  claims

	mu     sync.Mutex
	now    *snapshot
	marker marker
	moved  chan struct{} // closed and replaced with each snapshot
	wakes  map[chan struct{}]struct{}
}

// Now is the newest state; it is never nil. Its Revision is that of the last
// commit in it.
func (s *Store) Now() *assign.State { return s.current().state }

func (s *Store) current() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// known is what this controller knows of the store that is right.
func (s *Store) known() marker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marker
}

// Strangers are keys of the store whose value no controller of this mesh wrote.
// They change nothing; beginning an epoch takes them away. Sorted.
func (s *Store) Strangers() []string { return s.current().strangers }

// Subscribe returns a channel of capacity one that holds a token whenever Now
// may be another, and a first one at once. It is never closed. The caller calls
// the function when it is done.
func (s *Store) Subscribe() (<-chan struct{}, func()) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes[wake] = struct{}{}
	return wake, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.wakes, wake)
	}
}

// Reach waits until Now holds what was committed up to revision; timeout when ctx
// ends before.
func (s *Store) Reach(ctx context.Context, revision uint64) error {
	for {
		s.mu.Lock()
		there, moved := s.now != nil && s.now.sequence >= revision, s.moved
		s.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.New(fault.Timeout, "follow", "mesh state", ctx.Err())
		}
	}
}

// publish makes p what everybody sees, unless the marker doubts it: then it is
// seen as unsound.
func (s *Store) publish(p *snapshot) {
	s.mu.Lock()
	before := s.now
	p = p.doubted(s.marker)
	s.now = p
	if m := s.marker.after(p); p.state.Unsound == nil && !p.empty && !m.equal(s.marker) {
		s.marker = m
		s.mark()
	}
	s.wakeAll()
	s.mu.Unlock()
	s.tell(before, p)
}

// wakeAll wakes everybody who waits for another snapshot. The caller holds mu.
func (s *Store) wakeAll() {
	close(s.moved)
	s.moved = make(chan struct{})
	for wake := range s.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// mark asks for the marker to be written.
func (s *Store) mark() {
	select {
	case s.save <- struct{}{}:
	default:
	}
}

// tell logs what is another with p than with before.
func (s *Store) tell(before, p *snapshot) {
	if before == nil {
		before = &snapshot{state: &assign.State{}}
	}
	was, is := before.state, p.state
	switch {
	case is.Unsound != nil && (was.Unsound == nil || was.Unsound.Error() != is.Unsound.Error()):
		s.o.Logger.Error("mesh state is unsound", "reason", causeOf(is.Unsound), "revision", is.Revision, "hint", fault.HintOf(is.Unsound))
	case is.Unsound == nil && was.Unsound != nil:
		s.o.Logger.Info("mesh state is sound again", "revision", is.Revision)
	}
	if is.Epoch != was.Epoch && was.Epoch != "" {
		s.o.Logger.Info("mesh state is of another epoch", "epoch", is.Epoch, "before", was.Epoch, "revision", is.Revision)
	}
	if len(p.strangers) > len(before.strangers) {
		s.o.Logger.Warn("the store holds values that no controller wrote", "keys", few(p.strangers), "count", len(p.strangers))
	}
}

// check returns an error of class internal when something is missing.
func (o *Options) check() error {
	if o.Conn == nil || o.Mesh == "" || len(o.Key) != ed25519.PrivateKeySize || o.Marker == "" || o.Logger == nil {
		return fault.New(fault.Internal, "open mesh state", o.Mesh, errors.New("connection, mesh, key, marker and logger are required"))
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.By == "" {
		o.By = "controller"
	}
	return nil
}
