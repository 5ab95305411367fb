package systemd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/seats"
)

// fakeUnit is a unit of a fakeNode.
type fakeUnit struct {
	unit.Details
	loaded    bool            // it is in lists without being asked for
	result    unit.JobResult  // of its next jobs; "" is done
	err       error           // in place of a job
	hangs     bool            // its job does not end
	lines     []string        // in the journal
	leaves    bool            // it is gone once it is stopped
	links     []unit.LinkMade // that enabling makes
	passed    []string        // what systemd passes over then
	following unit.Name       // of a device that has another name
}

// fakeNode is what a Module is given: a manager, a journal and a root helper over
// units in memory. Fails holds what a method answers with in place of the truth.
type fakeNode struct {
	mu       sync.Mutex // guards what follows
	units    map[unit.Name]*fakeUnit
	files    []unit.ListedFile
	declared []wire.DeclaredUnit
	fails    map[string]error
	calls    map[string]int
	asked    []escalate.Request
	known    []escalate.Begun
	queried  []seats.JournalArguments
	jobs     uint32
	busy     int // acts under way
	busiest  int
	slow     time.Duration // of each act
	blind    bool          // the helper does not see how units stand behind their jobs
	hangs    bool          // it answers nothing
	user     *fakeNode     // the account's manager; nil: the node has no account
	account  escalate.Account
}

// errNobody is what the helper says of a node without an account.
var errNobody = fault.New(fault.Refused, "read account", "", errors.New("this node has no operator account")).WithHint("stead node account NODE LOGIN")

// noUser is the user scope of a node without an account.
func noUser() *fakeNode {
	f := newFakeNode()
	for _, method := range []string{"Account", "Units", "Named", "Files", "Enablement", "Stands", "Details", "Do"} {
		f.fails[method] = errNobody
	}
	return f
}

// opal gives f the user scope of an account, with units.
func (f *fakeNode) opal(units ...*fakeUnit) *fakeNode {
	f.user = newFakeNode(units...)
	f.user.account = escalate.Account{Name: "opal", UID: 1000}
	return f.user
}

// Account implements userReader.
func (f *fakeNode) Account(ctx context.Context) (escalate.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.account, f.enter(ctx, "Account")
}

func newFakeNode(units ...*fakeUnit) *fakeNode {
	f := &fakeNode{units: map[unit.Name]*fakeUnit{}, fails: map[string]error{}, calls: map[string]int{}}
	for _, u := range units {
		f.units[u.ID] = u
	}
	return f
}

// service is a loaded unit that runs, with further names.
func service(id unit.Name, aliases ...unit.Name) *fakeUnit {
	names := append([]unit.Name{id}, aliases...)
	slices.Sort(names)
	return &fakeUnit{loaded: true, Details: unit.Details{
		ID: id, Names: names, Description: "about " + string(id), Load: unit.Loaded, Active: unit.Active, Sub: "running",
		Enablement: "enabled", Preset: "enabled", Unset: map[string]string{unit.FigureMemory: "[not set]: it is"},
	}}
}

func (u *fakeUnit) state(active unit.ActiveState, sub string) *fakeUnit {
	u.Active, u.Sub = active, sub
	return u
}

// enter counts a call, and is its error.
func (f *fakeNode) enter(ctx context.Context, method string) error {
	f.calls[method]++
	if f.hangs {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return fault.New(fault.Unavailable, "read", "", ctx.Err())
	}
	if err := f.fails[method]; err != nil {
		return err
	}
	return ctx.Err()
}

// find returns a unit by any of its names; one of which there is none is
// not-found.
func (f *fakeNode) find(n unit.Name) *fakeUnit {
	if u := f.units[n]; u != nil {
		return u
	}
	for _, u := range f.units {
		if slices.Contains(u.Names, n) {
			return u
		}
	}
	return &fakeUnit{Details: unit.Details{ID: n, Names: []unit.Name{n}, Load: unit.NotFound, Active: unit.Inactive, Sub: "dead"}}
}

func (u *fakeUnit) listed() unit.Listed {
	return unit.Listed{Name: u.ID, Description: u.Description, Load: u.Load, Active: u.Active, Sub: u.Sub, Job: u.Job, Following: u.following}
}

// Units implements lister.
func (f *fakeNode) Units(ctx context.Context, by unit.Filter) ([]unit.Listed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Units"); err != nil {
		return nil, err
	}
	var out []unit.Listed
	for _, u := range f.units {
		if l := u.listed(); u.loaded && by.Names(u.ID) && by.Shows(l) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b unit.Listed) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out, nil
}

// Named implements lister.
func (f *fakeNode) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Named"); err != nil {
		return nil, err
	}
	out := make([]unit.Listed, len(names))
	for i, n := range names {
		out[i] = f.find(n).listed()
	}
	return out, nil
}

// Files implements lister.
func (f *fakeNode) Files(ctx context.Context, by unit.Filter) ([]unit.ListedFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Files"); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(f.files), func(l unit.ListedFile) bool { return !by.ShowsFile(l) }), nil
}

// Enablement implements lister.
func (f *fakeNode) Enablement(ctx context.Context, names []unit.Name) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Enablement"); err != nil {
		return nil, err
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = f.find(n).Enablement
	}
	return out, nil
}

// Details implements reader.
func (f *fakeNode) Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Stands"); err != nil {
		return nil, err
	}
	out := make([]unit.Stand, len(units))
	for i, u := range units {
		d := f.find(u.Name)
		out[i] = unit.Stand{Since: d.Since, Result: d.Result}
	}
	return out, nil
}

func (f *fakeNode) Details(ctx context.Context, n unit.Name) (unit.Details, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Details"); err != nil {
		return unit.Details{}, err
	}
	if n.IsTemplate() {
		return unit.Details{}, fault.New(fault.Invalid, "read unit", string(n), errors.New("it is a template, and only its instances have a state"))
	}
	return f.find(n).Details, nil
}

// Known implements acts.
func (f *fakeNode) Known(ctx context.Context) ([]escalate.Begun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known, f.enter(ctx, "Known")
}

// Do implements acts.
func (f *fakeNode) Do(ctx context.Context, r escalate.Request) (escalate.Outcome, error) {
	if r.Scope == unit.User && f.account.Name == "" {
		if f.user == nil {
			return escalate.Outcome{}, errNobody
		}
		return f.user.Do(ctx, r)
	}
	f.mu.Lock()
	asked := r
	asked.Before = ""
	f.asked = append(f.asked, asked)
	f.busy++
	f.busiest = max(f.busiest, f.busy)
	f.mu.Unlock()
	if f.slow > 0 {
		time.Sleep(f.slow)
	}
	f.mu.Lock()
	out, hangs, err := f.do(ctx, r)
	f.busy--
	f.mu.Unlock()
	if hangs && !r.NoWait {
		<-ctx.Done()
		return out, fault.New(fault.Timeout, string(r.Act), string(r.Unit), errors.New("it goes on"))
	}
	return out, err
}

func (f *fakeNode) do(ctx context.Context, r escalate.Request) (out escalate.Outcome, hangs bool, err error) {
	if err := f.enter(ctx, "Do"); err != nil {
		return out, false, err
	}
	u := f.find(r.Unit)
	switch {
	case u.err != nil:
		return out, false, u.err
	case r.Act == escalate.Enable && u.Load == unit.NotFound:
		return out, false, fault.New(fault.NotFound, "enable", string(r.Unit), errors.New("no such file"))
	case r.Act == escalate.Enable:
		u.Enablement = "enabled"
		return escalate.Outcome{Links: unit.Linking{Made: u.links, NoInstall: len(u.links) == 0, Notes: u.passed}}, false, nil
	case r.Act == escalate.Disable:
		for _, l := range u.links {
			out.Links.Removed = append(out.Links.Removed, l.Path)
		}
		return out, false, nil
	}
	if err := f.judge(r, u); err != nil {
		return out, false, err
	}
	f.jobs++
	out.Job = f.jobs
	out.Before = &escalate.Stood{Standing: escalate.Standing{Active: u.Active, Sub: u.Sub}, ID: u.ID, Names: slices.Clone(u.Names), TriggeredBy: u.TriggeredBy}
	if len(u.Names) > 64 {
		out.Before.Names, out.Before.TriggeredBy, out.Before.Cut = nil, nil, true
	}
	switch {
	case u.hangs:
		u.Active, u.Sub = unit.Activating, "start"
		return out, true, nil
	case r.Act == escalate.Stop:
		u.Active, u.Sub = unit.Inactive, "dead"
		if u.leaves {
			delete(f.units, u.ID)
		}
	default:
		u.Active, u.Sub = unit.Active, "running"
	}
	if r.NoWait {
		return out, false, nil
	}
	out.Took = 20 * time.Millisecond
	if out.Result = u.result; out.Result == "" {
		out.Result = unit.JobDone
	}
	if out.Result == unit.JobFailed {
		u.Active, u.Sub = unit.FailedState, "failed"
	}
	if !f.blind {
		out.After = escalate.Standing{Active: u.Active, Sub: u.Sub}
	}
	return out, false, nil
}

// judge is what the helper refuses, of a call that it does not know.
func (f *fakeNode) judge(r escalate.Request, u *fakeUnit) error {
	if slices.ContainsFunc(f.known, func(b escalate.Begun) bool { return b.Unit == r.Unit && b.Act == r.Act }) {
		return nil
	}
	d := u.Details
	d.Names = append(slices.Clone(d.Names), r.Unit)
	scope := cmp.Or(r.Scope, unit.System)
	if err := (view{scope: scope}).guard(r.Act, string(r.Unit), []unit.Details{d}); err != nil {
		return err
	}
	if !exists(u.Load, u.Active) {
		return fault.New(fault.NotFound, string(r.Act), string(r.Unit), fmt.Errorf("Unit %s not found.", r.Unit))
	}
	return nil
}

// Read implements journal.
func (f *fakeNode) Read(ctx context.Context, a seats.JournalArguments) (seats.JournalReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queried = append(f.queried, a)
	if err := f.enter(ctx, "Read"); err != nil {
		return seats.JournalReply{}, err
	}
	return f.entries(a), nil
}

func (f *fakeNode) entries(a seats.JournalArguments) seats.JournalReply {
	r := seats.JournalReply{Entries: []json.RawMessage{}}
	for i, line := range f.find(unit.Name(a.Unit)).lines {
		text, _ := json.Marshal(map[string]string{"MESSAGE": line})
		r.Entries, r.Cursor = append(r.Entries, text), fmt.Sprintf("i=%d", i)
	}
	return r
}

// Stream implements journal: what there is, and then ctx ends it.
func (f *fakeNode) Stream(ctx context.Context, a seats.JournalArguments, send func(seats.JournalReply) error) error {
	f.mu.Lock()
	f.queried = append(f.queried, a)
	err := f.enter(ctx, "Stream")
	r := f.entries(a)
	f.mu.Unlock()
	if err == nil {
		err = send(r)
	}
	if err == nil && a.Follow {
		<-ctx.Done()
		err = fault.New(fault.Canceled, "read", "journal", ctx.Err())
	}
	return err
}

// Tail implements journal.
func (f *fakeNode) Tail(ctx context.Context, n unit.Name, count int) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Tail"); err != nil {
		return nil, err
	}
	lines := f.find(n).lines
	return lines[max(0, len(lines)-count):], nil
}
