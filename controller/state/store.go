package state

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/host/report"
	"stead/mesh"
	"stead/mesh/wire"
)

// Options are what a Store is made of. BeginEpoch, Replicas and Clock may be left
// out.
type Options struct {
	Conn *mesh.Conn
	Mesh string // the mesh's id
	Key  ed25519.PrivateKey
	// Marker is the path of the file that says which epoch and revision this
	// controller saw last. It must not lie in the NATS server's store.
	Marker string
	// BeginEpoch begins a new epoch when the store is not the one that the marker
	// knows, or not sound; otherwise it does nothing.
	BeginEpoch bool
	By         string // who this controller is, for the records: "controller c1"
	Replicas   int    // of each bucket; 0 is one
	Clock      func() time.Time
	Logger     *slog.Logger
}

// Store is one controller's copy of mesh state.
type Store struct{ o Options }

// Change is one write of a commit: exactly one of its fields is set. Service and
// Revision of a declaration and Revision of a node are not looked at.
type Change struct {
	Declaration *assign.Declaration
	Node        *assign.Node
}

// Line is what is known of one report without reading it whole.
type Line struct {
	Name       string
	UID        string
	Generation uint64
	Outcome    report.Outcome
	Reason     report.Reason
}

// Summary is what a node reported last. It is shared and not changed.
type Summary struct {
	At     time.Time // when it was stored
	Source wire.Source
	Lines  []Line // sorted by name
}

var errLater = fault.New(fault.Unsupported, "", "", errors.New("not built yet"))

// Open reads the store and checks it against the marker.
func Open(ctx context.Context, o Options) (*Store, error) { return nil, errLater }

// Run follows the buckets until ctx ends, and returns nil then.
func (s *Store) Run(ctx context.Context) error { return errLater }

// Now is the newest state; it is never nil. Its Revision is that of the last
// commit in it.
func (s *Store) Now() *assign.State { return nil }

// Subscribe returns a channel of capacity one that holds a token whenever Now,
// may be another, and a first one at once. It is never closed. The caller calls
// the function when it is done.
func (s *Store) Subscribe() (<-chan struct{}, func()) { return nil, nil }

// Reach waits until Now holds what was committed up to revision; timeout when ctx
// ends before.
func (s *Store) Reach(ctx context.Context, revision uint64) error { return errLater }

// Commit writes all changes or none, decided on base, and returns exactly the
// state that follows base. Conflict: base is not the newest any more.
func (s *Store) Commit(ctx context.Context, base *assign.State, changes []Change) (*assign.State, error) {
	return nil, errLater
}

// Decide commits what decide wants of the newest state, and lets it decide again
// when another commit was first. No changes: nothing is committed and after is
// before. An error of decide ends it and is returned as it is. Decide is called
// in the caller's goroutine; decisions of one controller take turns.
func (s *Store) Decide(ctx context.Context, decide func(*assign.State) ([]Change, error)) (before, after *assign.State, err error) {
	return nil, nil, errLater
}

// Prove weighs the index that a node holds and that is newer than Now, or of an
// epoch that Now does not know. Refused: it proves nothing. Otherwise Now says
// what follows from it: with a newer revision of the same epoch, Unsound.
func (s *Store) Prove(node string, held wire.Signed) error { return errLater }

// Profiles are the profiles of all nodes by name. The map is shared and not
// changed.
func (s *Store) Profiles() map[string]wire.Profile { return nil }

// PutProfile stores the profile of a node, when it is another than the last one,
// and counts as Touch.
func (s *Store) PutProfile(ctx context.Context, node string, p wire.Profile) error { return errLater }

// Touch notes that something was heard of a node now. It does not block.
func (s *Store) Touch(node string) {}

// Seen is when something was last heard of a node by any controller, to two
// minutes for what others heard; zero for never.
func (s *Store) Seen(node string) time.Time { return time.Time{} }

// StoreReports stores a batch. Full: nothing was stored, and the host is to send
// everything.
func (s *Store) StoreReports(ctx context.Context, node string, b wire.ReportBatch) (full bool, err error) {
	return false, errLater
}

// Summary is what a node reported last; nil for nothing.
func (s *Store) Summary(node string) *Summary { return nil }

// Reports are the reports of one node, sorted by name; those of names when any
// are given.
func (s *Store) Reports(node string, names ...string) ([]*report.Report, error) { return nil, errLater }

// Forget takes profile and reports of a removed node away.
func (s *Store) Forget(ctx context.Context, node string) error { return errLater }
