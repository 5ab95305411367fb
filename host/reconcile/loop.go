// Package reconcile is the single-writer loop that keeps the declared units and files
// of one scope as declared.
//
// A turn takes all units that something happened to, looks at them in bulk, lets
// host/plan decide, puts on disk what belongs there, reloads the manager once,
// looks again and queues every job from one goroutine; it waits for no job.
// Signals and file watches only say "look again" and carry no truth; every
// FullLook the loop looks at everything. What stood on the machine and what is
// about to be written is durable in the ledger before the act, so a killed host
// goes on where it was.
//
// One goroutine, that of Run, owns all state. Declare, Plan, Reports, Published
// and Alive may be called from any goroutine. The loop owns no adapter: it neither opens nor
// closes the manager, disk, ledger and watcher that it is given. Errors end in
// reports and in the log, once, with what happens next.
package reconcile

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// signals is how a manager says that something changed.
type signals interface {
	Wake() <-chan struct{}
	Drain() unit.Changes
}

// manager is a service manager of the loop's scope.
type manager interface {
	signals
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
	Enqueue(ctx context.Context, jobs []unit.JobRequest) []unit.Queued
	Reload(ctx context.Context) (time.Duration, error)
	ResetFailed(ctx context.Context, names []unit.Name) []error
	// Reloads says when the last reload of each that has succeeded began, by
	// CLOCK_MONOTONIC; 0 where that is not known.
	Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error)
}

// disk is where unit files and links stand.
type disk interface {
	foresight
	Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error)
	Snapshot(path string) (plan.Entry, []byte, error)
	Apply(ctx context.Context, cs []plan.Change) plan.Applied
	Missing(paths []string) (dirs []string)
	RemoveDirs(paths []string) (removed []string)
}

// foresight says what a disk would say after changes that nobody has made, and
// keeps no note of having been asked.
type foresight interface {
	LookAfter(ctx context.Context, qs []plan.Query, changes []plan.Change) ([]plan.Disk, error)
	Peek(path string) (plan.Entry, []byte, error)
	KeptAs(path string, e plan.Entry) string
}

// ledger is the durable memory.
type ledger interface {
	Record(r plan.Record) error
	Blob(digest string) ([]byte, error)
}

// watcher says which watched paths changed.
type watcher interface {
	Set(dirs []string)
	Wake() <-chan struct{}
	Drain() (paths []string, all bool)
}

// adviser reads what systemd wrote about units; it may be slow and is only
// called off the loop.
type adviser interface {
	Lines(ctx context.Context, names []unit.Name) map[unit.Name][]string
	Verify(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string
}

// Declared is one accepted declaration.
type Declared struct {
	Service    *shape.Service
	UID        string
	Generation uint64
}

// Set is all that is declared for the scope of a loop.
type Set struct {
	Declared []Declared
	// Files are the paths of declared files of other scopes, by name; see Files.
	Files map[string]string
	// Leave are declarations that are in force and cannot be read: their units are
	// neither kept nor given back.
	Leave []Left
	// Pauses are the units that are left as they are for a while; of other scopes, and
	// those that have ended, among them.
	Pauses []report.Pause
}

// Left is a declaration that cannot be read.
type Left struct {
	Name       string
	Scope      unit.Scope // as far as it says so; "" is the system scope
	UID        string
	Generation uint64
	// Why says what cannot be read, for the report, which is refused; "" when there
	// is nothing to report of it.
	Why string
}

// Options are what a Loop is made of. All adapters are required.
type Options struct {
	Scope     unit.Scope
	ConfigDir string // where unit files and links are written
	Manager   manager
	Disk      disk
	Ledger    ledger
	Watcher   watcher
	Adviser   adviser
	Clock     func() plan.Clock
	Logger    *slog.Logger

	Memories []plan.Memory // what the ledger holds at the start
	Memory   plan.Manager
	FullLook time.Duration // default 5 minutes
	// Gate says what is in the way of the manager; nil for nothing ever. Where one
	// manager follows another, the Boot of Clock is another for each.
	Gate gate
	// GivenBack is told of each unit of which nothing is left to do: whose it was,
	// when that was so, and its last steps, which no report shows any more. It must
	// return at once; nil for nobody.
	GivenBack func(*report.Report)
	// Point is called at every boundary between two acts of a pass, with the
	// boundary's name; nil for none. Tests kill the host there.
	Point func(name string)
}

// Loop keeps the units of one scope. Make it with New.
type Loop struct {
	o      Options
	units  map[unit.Name]*managed
	owners map[string]*managed // path → the unit it belongs to
	places map[string]string   // of declared files, by name, as they are declared
	others map[string]string   // those of other scopes
	ids    map[unit.Name][]*managed
	memory plan.Manager
	saved  plan.Manager // as the ledger has it

	begun    bool             // a set was taken in
	obstacle *report.Obstacle // in the way; nil for none
	boot     string           // the life of the manager that was seen last
	fullAt   time.Time        // of the next full look
	passAt   time.Time        // no pass before; spaces passes while many jobs run
	pace     pace
	crowd    bool // the pass has very many units
	unreach  int  // passes given up in a row
	reloads  reloads
	watched  bool // the set of watched folders must be made anew
	side     side
	cited    citations
	folders  map[string][]*managed       // by the names of the folders from which they take drop-ins
	above    map[string]bool             // folders that declared files are below
	pullers  map[unit.Name]unit.Status   // units that others are enabled for, as they were at the last look
	pulledAt time.Time                   // of that look
	aside    map[string]aside            // by name
	rests    map[unit.Name]rest          // the pauses that were taken in, also those that have ended
	asked    map[string]bool             // of a dry run: the names that it asks about; nil in all other loops
	heard    func(*managed, report.Step) // is told of every step; nil for nobody
	declare  chan Set
	asks     chan chan struct{}
	shadows  chan chan *Loop
	told     chan struct{} // has a token when reports were published since it was last taken
	snapshot atomic.Pointer[[]*report.Report]
}

// New checks o and returns a loop that holds what the ledger remembers and
// waits for its first Declare. It starts nothing.
func New(o Options) *Loop {
	if o.FullLook == 0 {
		o.FullLook = 5 * time.Minute
	}
	if o.Point == nil {
		o.Point = func(string) {}
	}
	if o.Gate == nil {
		o.Gate = open{}
	}
	if o.GivenBack == nil {
		o.GivenBack = func(*report.Report) {}
	}
	l := &Loop{
		o: o, memory: o.Memory, saved: o.Memory,
		units:   make(map[unit.Name]*managed),
		owners:  make(map[string]*managed),
		ids:     make(map[unit.Name][]*managed),
		declare: make(chan Set),
		asks:    make(chan chan struct{}),
		told:    make(chan struct{}, 1),
		shadows: make(chan chan *Loop),
	}
	l.side.done = make(chan advice, 1)
	for _, m := range o.Memories {
		owes := ""
		if o.Memory.OwesReload && o.Memory.Boot == o.Clock().Boot {
			owes = "its files were changed before the host was started anew"
		}
		l.units[m.Unit] = &managed{name: m.Unit, mem: m, owes: owes}
	}
	l.snapshot.Store(&[]*report.Report{})
	return l
}

// Declare hands over the whole accepted set. What the loop holds and the set
// lacks is given back. It returns when the loop has taken the set in, not when
// it is applied.
func (l *Loop) Declare(ctx context.Context, set Set) error {
	select {
	case l.declare <- set:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reports returns how every declaration stands, sorted by unit. The reports are
// shared and must not be changed.
func (l *Loop) Reports() []*report.Report { return *l.snapshot.Load() }

// Published has a token when reports were published since the last one was
// taken. It is for one receiver, and never closed.
func (l *Loop) Published() <-chan struct{} { return l.told }

// Alive returns nil when the loop answers before ctx ends. It answers between
// turns, so a set that was declared before has been looked at, unless the
// manager does not answer.
func (l *Loop) Alive(ctx context.Context) error {
	ask := make(chan struct{})
	select {
	case l.asks <- ask:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run keeps the units until ctx ends, and returns nil then. It leaves the units
// and the jobs in flight as they are.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer l.side.wait()
	l.fullAt = l.now().Add(l.o.FullLook)
	for {
		timer.Reset(l.sleep())
		select {
		case <-ctx.Done():
			return nil
		case <-l.o.Manager.Wake():
			l.drain()
		case <-l.o.Watcher.Wake():
			l.paths()
		case <-l.o.Gate.Changed():
		case set := <-l.declare:
			l.accept(set)
		case <-l.asks:
		case ask := <-l.shadows:
			ask <- l.shadow()
		case a := <-l.side.done:
			l.advised(a)
		case <-timer.C:
		}
		l.turn(ctx)
	}
}

func (l *Loop) now() time.Time { return l.o.Clock().Wall }

// turn runs a pass when something is due. A panic in one turn is a defect of
// stead; it is logged, and the next full look tries again.
func (l *Loop) turn(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			l.o.Logger.Error("turn ended by a defect", "scope", l.o.Scope, "defect", p, "stack", string(debug.Stack()))
			l.passAt = l.now().Add(time.Minute)
		}
	}()
	now := l.now()
	l.resume()
	if !l.begun || l.barred() || now.Before(l.passAt) {
		return
	}
	l.life()
	if !now.Before(l.fullAt) {
		l.fullAt = now.Add(l.o.FullLook)
		l.all()
	}
	if batch := l.due(now); len(batch) > 0 {
		l.pass(ctx, batch)
		if next := l.pace.next(l.now()); next.After(l.passAt) {
			l.passAt = next
		}
		l.publish()
	}
	l.side.start(ctx, l.o.Adviser, now, l.flying())
}

// sleep is how long nothing is due.
func (l *Loop) sleep() time.Duration {
	next := l.fullAt
	if !l.begun || l.obstacle != nil {
		return l.untilRest(time.Hour)
	}
	for _, m := range l.units {
		if m.dirty {
			next = time.Time{}
			break
		}
		if !m.again.IsZero() && m.again.Before(next) {
			next = m.again
		}
	}
	if at := l.side.due(l.now(), l.flying()); !at.IsZero() && at.Before(next) {
		next = at
	}
	if next.Before(l.passAt) {
		next = l.passAt
	}
	return max(0, next.Sub(l.now()))
}
