package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"stead/host/plan"
	"stead/host/unit"
)

// imagined is a machine as it would be after acts that nobody does: what nobody
// acts on is read from the real one, each unit once. It is manager, disk and
// ledger to a dry run, and used by one goroutine.
type imagined struct {
	foresight // of the real disk

	real   Options
	began  plan.Clock
	late   time.Duration // by which its clock is ahead of began
	took   time.Duration // what a reload takes
	status map[unit.Name]unit.Status
	asked  map[unit.Name]plan.Query // the last question about each unit, and the answer
	disk   map[unit.Name]plan.Disk

	at        map[string]plan.Change // what was put at a path last
	loaded    []plan.Change          // those that the last reload has read; nil before the first one
	blobs     map[string][]byte
	diffs     map[string][]string // path → what was changed there last
	concealed map[string][]string // the same, without bytes

	jobs    uint32
	changes unit.Changes
	err     error // why the real machine could not be looked at
}

func imagine(real Options) *imagined {
	return &imagined{foresight: real.Disk, real: real, began: real.Clock(), took: time.Millisecond, status: make(map[unit.Name]unit.Status),
		asked: make(map[unit.Name]plan.Query), disk: make(map[unit.Name]plan.Disk),
		at: make(map[string]plan.Change), blobs: make(map[string][]byte), diffs: make(map[string][]string), concealed: make(map[string][]string)}
}

func (g *imagined) clock() plan.Clock {
	c := g.began
	c.Wall, c.Monotonic = c.Wall.Add(g.late), c.Monotonic+g.late
	return c
}

// Wake implements signals; nobody waits for an imagined machine.
func (g *imagined) Wake() <-chan struct{} { return nil }

// Drain implements signals.
func (g *imagined) Drain() unit.Changes {
	ch := g.changes
	g.changes = unit.Changes{}
	return ch
}

// Observe implements manager.
func (g *imagined) Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error) {
	var fresh []unit.Name
	for _, n := range names {
		if _, known := g.status[n]; !known {
			fresh = append(fresh, n)
		}
	}
	if len(fresh) > 0 {
		all, err := g.real.Manager.Observe(ctx, fresh)
		if err != nil {
			return nil, g.fail(err)
		}
		for i, n := range fresh {
			g.status[n] = all[i]
		}
		if g.loaded != nil {
			if err := g.reread(ctx, fresh, nil, g.loaded); err != nil {
				return nil, err
			}
		}
	}
	out := make([]unit.Status, len(names))
	for i, n := range names {
		out[i] = g.status[n]
	}
	return out, nil
}

func (g *imagined) fail(err error) error {
	g.err = err
	return err
}

// imaginedJobs is beyond the numbers that a manager gives to jobs.
const imaginedJobs = 1 << 31

// Enqueue implements manager: every job ends at once, as it is asked to.
func (g *imagined) Enqueue(_ context.Context, jobs []unit.JobRequest) []unit.Queued {
	out := make([]unit.Queued, len(jobs))
	for i, j := range jobs {
		g.jobs++
		out[i] = unit.Queued{Request: j, ID: imaginedJobs + g.jobs}
		id := g.status[j.Name].ID
		for n, st := range g.status {
			if st.ID == id {
				g.status[n] = plan.Obeyed(st, j.Type, g.disk[n], g.clock(), fmt.Sprintf("imagined %d", g.jobs))
			}
		}
		g.changes.Jobs = append(g.changes.Jobs, unit.JobEnd{ID: out[i].ID, Unit: id, Result: unit.JobDone})
	}
	return out
}

// Reload implements manager. Like a real one's it has everything looked at anew.
func (g *imagined) Reload(ctx context.Context) (time.Duration, error) {
	now := g.made()
	err := g.reread(ctx, slices.Collect(maps.Keys(g.status)), g.loaded, now)
	g.loaded, g.changes.All = now, true
	g.late += g.took
	return g.took, err
}

// ResetFailed implements manager.
func (g *imagined) ResetFailed(_ context.Context, names []unit.Name) []error {
	for _, name := range names {
		id := g.status[name].ID
		for n, st := range g.status {
			if st.ID == id && st.Active == unit.FailedState {
				st.Active, st.Sub, st.Trouble.Result = unit.Inactive, "dead", "success"
				g.status[n] = st
			}
		}
		g.changes.Units = append(g.changes.Units, id)
	}
	return make([]error, len(names))
}

// Reloads implements manager.
func (g *imagined) Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error) {
	return g.real.Manager.Reloads(ctx, names)
}

// made are all changes, by path.
func (g *imagined) made() []plan.Change {
	all := make([]plan.Change, 0, len(g.at))
	for _, p := range slices.Sorted(maps.Keys(g.at)) {
		all = append(all, g.at[p])
	}
	return all
}

// reread takes units for reloaded when was had been read of the disk before.
func (g *imagined) reread(ctx context.Context, names []unit.Name, was, now []plan.Change) error {
	qs := make([]plan.Query, len(names))
	for i, n := range names {
		qs[i] = g.asked[n]
		qs[i].Unit, qs[i].Status = n, g.status[n]
	}
	before, err := g.LookAfter(ctx, qs, was)
	if err != nil {
		return g.fail(err)
	}
	after, err := g.LookAfter(ctx, qs, now)
	if err != nil {
		return g.fail(err)
	}
	for i, n := range names {
		g.status[n] = plan.Reread(g.status[n], before[i], after[i])
	}
	for _, n := range names { // all names of a unit tell the same
		if st, known := g.status[g.status[n].ID]; known && st.ID == g.status[n].ID {
			st.Asked = n
			g.status[n] = st
		}
	}
	return nil
}

// Look implements disk.
func (g *imagined) Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error) {
	all, err := g.LookAfter(ctx, qs, g.made())
	if err != nil {
		return nil, g.fail(err)
	}
	for i, q := range qs {
		g.asked[q.Unit], g.disk[q.Unit] = q, all[i]
	}
	return all, nil
}

// Snapshot implements disk.
func (g *imagined) Snapshot(p string) (plan.Entry, []byte, error) {
	if c, changed := g.at[p]; changed {
		return c.Entry, c.Content, nil
	}
	return g.Peek(p)
}

// Apply implements disk.
func (g *imagined) Apply(_ context.Context, cs []plan.Change) plan.Applied {
	res := plan.Applied{Errs: make([]error, len(cs)), Kept: make(map[string]string)}
	for i, c := range cs {
		was, data, err := g.Snapshot(c.Path)
		if err != nil {
			res.Errs[i] = err
			continue
		}
		if c.Keep && was.Kind != plan.Absent {
			res.Kept[c.Path] = g.KeptAs(c.Path, was)
		}
		g.diffs[c.Path] = plan.Diff(c.Path, plan.Version{Entry: was, Content: data}, plan.Version{Entry: c.Entry, Content: c.Content})
		g.concealed[c.Path] = plan.Diff(c.Path, plan.Version{Entry: was}, plan.Version{Entry: c.Entry})
		g.at[c.Path] = c
	}
	return res
}

// Missing implements disk: folders come and go without a step of their own.
func (g *imagined) Missing([]string) []string { return nil }

// RemoveDirs implements disk.
func (g *imagined) RemoveDirs([]string) []string { return nil }

// Record implements ledger.
func (g *imagined) Record(r plan.Record) error {
	maps.Copy(g.blobs, r.Blobs)
	return nil
}

// Blob implements ledger.
func (g *imagined) Blob(digest string) ([]byte, error) {
	if data, is := g.blobs[digest]; is {
		return data, nil
	}
	return g.real.Ledger.Blob(digest)
}
