package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"stead/host/plan"
	"stead/host/report"
)

// work is one disk step of one unit.
type work struct {
	m     *managed
	step  plan.Step
	first bool // the path was never touched before
}

// write puts on disk what the decisions ask for, and returns how many changes
// were made, and of which units and files. Before the first of them it is durable
// what stood there, what will stand there, and that a reload is owed.
func (l *Loop) write(ctx context.Context, batch []*managed) (int, map[*managed]bool, error) {
	var todo []work
	for _, m := range batch {
		for _, s := range m.plan.Steps {
			if s.OnDisk() {
				todo = append(todo, work{m: m, step: s})
			}
		}
	}
	if len(todo) == 0 {
		return 0, nil, nil
	}
	slices.SortStableFunc(todo, func(a, b work) int { return cmp.Compare(rank(a.step), rank(b.step)) })
	todo = once(todo)
	rec := plan.Record{Blobs: make(map[string][]byte)}
	before, debt := memories(todo), l.memory
	for m := range before {
		l.adopt(m, rec.Blobs)
	}
	changes, able := l.prepare(todo, rec.Blobs)
	if slices.ContainsFunc(todo, work.ofUnit) {
		l.memory.OwesReload, l.memory.Boot = true, l.o.Clock().Boot
	}
	l.making(changes)
	mem := l.memory
	rec.Manager = &mem
	if err := l.save(batch, rec); err != nil {
		// What is not in the ledger was not found and not written.
		l.memory = debt
		for m, mem := range before {
			m.mem = mem
		}
		return 0, nil, err
	}
	l.o.Point("recorded")
	applied := l.o.Disk.Apply(ctx, changes)
	l.o.Point("written")
	done := l.wrote(able, applied)
	judged := make(map[*managed]bool)
	for _, w := range todo {
		if !judged[w.m] {
			judged[w.m], w.m.stale = true, true
			l.blocked(w.m, done[w.m])
		}
	}
	l.memory.OwesReload = debt.OwesReload
	for m := range done {
		l.memory.OwesReload = l.memory.OwesReload || !m.ofFile()
	}
	return len(changes), done, nil
}

// ofUnit reports whether w changes a file that the manager reads.
func (w work) ofUnit() bool { return !w.m.ofFile() }

// once leaves each path to the first that would change it. The others look again
// when that is done: mostly nothing is left for them to do.
func once(todo []work) []work {
	first := make(map[string]bool, len(todo))
	return slices.DeleteFunc(todo, func(w work) bool {
		if first[w.step.Path] {
			w.m.dirty = true
			return true
		}
		first[w.step.Path] = true
		return false
	})
}

// memories are those of the units that have something to do; they are not
// changed by what follows.
func memories(todo []work) map[*managed]plan.Memory {
	all := make(map[*managed]plan.Memory)
	for _, w := range todo {
		all[w.m] = w.m.mem
	}
	return all
}

// making notes the folders that will have to be made, before they are.
func (l *Loop) making(changes []plan.Change) {
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		if c.Entry.Kind != plan.Absent {
			paths = append(paths, c.Path)
		}
	}
	for _, d := range l.o.Disk.Missing(paths) {
		if !slices.Contains(l.memory.Made, d) {
			l.memory.Made = append(slices.Clip(l.memory.Made), d)
		}
	}
}

// rank orders a batch: old links go before new content comes, new links come
// after it, files that are no longer wanted go last.
func rank(s plan.Step) int {
	return slices.Index([]plan.Action{plan.Unlink, plan.Write, plan.MakeLink, plan.Remove}, s.Action)
}

// prepare records in the memories what stands at each path and what will, and
// makes the changes. A step whose path cannot be recorded is not taken.
func (l *Loop) prepare(todo []work, blobs map[string][]byte) ([]plan.Change, []work) {
	changes := make([]plan.Change, 0, len(todo))
	kept := todo[:0:0]
	fresh := make(map[*managed]bool)
	for _, w := range todo {
		if !fresh[w.m] {
			fresh[w.m] = true
			mem := &w.m.mem
			mem.Found, mem.Wrote, mem.Before = orMake(maps.Clone(mem.Found)), orMake(maps.Clone(mem.Wrote)), orMake(maps.Clone(mem.Before))
		}
		_, touched := w.m.mem.Found[w.step.Path]
		w.first = !touched
		c, err := l.change(w, blobs)
		if err != nil {
			w.m.trials = append(w.m.trials, err)
			l.step(w.m, w.step, 0, err)
			continue
		}
		w.m.unsaved = true
		changes, kept = append(changes, c), append(kept, w)
	}
	return changes, kept
}

func orMake(m map[string]plan.Entry) map[string]plan.Entry {
	if m == nil {
		return make(map[string]plan.Entry)
	}
	return m
}

func (l *Loop) change(w work, blobs map[string][]byte) (plan.Change, error) {
	s, mem := w.step, &w.m.mem
	now := w.m.disk.At[s.Path]
	c := plan.Change{Path: s.Path, Entry: s.Want, Content: s.Content}
	found, touched := mem.Found[s.Path]
	if !touched {
		found = plan.Entry{Kind: plan.Absent}
		if now.Kind != plan.Absent && now.Kind != "" {
			entry, data, err := l.o.Disk.Snapshot(s.Path)
			if err != nil {
				return c, err
			}
			if found = entry; entry.Kind == plan.File {
				blobs[entry.Digest] = data
			}
		}
	}
	if s.Action == plan.Write && s.Content == nil && s.Want.Digest != "" {
		data, err := l.o.Ledger.Blob(s.Want.Digest)
		if err != nil {
			return c, err
		}
		c.Content = data
	}
	ours := touched && (now == mem.Wrote[s.Path] || now == mem.Before[s.Path])
	c.Keep = now.Kind != plan.Absent && !ours && now != found
	if !touched {
		// The ledger has the bytes for as long as the unit may be given back; what
		// was a user's is not to be lost even then.
		c.Keep = found.Kind == plan.File && found.Digest != s.Want.Digest
	}
	delete(mem.Before, s.Path)
	if ours && now.Kind != plan.Absent {
		mem.Before[s.Path] = now
	}
	mem.Found[s.Path], mem.Wrote[s.Path] = found, s.Want
	return c, nil
}

// wrote takes the result of a batch of changes in, and returns the units of
// which something was changed.
func (l *Loop) wrote(todo []work, applied plan.Applied) map[*managed]bool {
	done := make(map[*managed]bool)
	for i, w := range todo {
		err := applied.Errs[i]
		if kept := applied.Kept[w.step.Path]; kept != "" {
			l.o.Logger.Info("kept what is overwritten", "scope", l.o.Scope, "unit", w.m.name, "path", w.step.Path, "copy", kept)
			if w.first {
				w.step.Reason += "; what stood there is kept as " + kept
			} else {
				w.m.keeps(fmt.Sprintf("%s was changed by somebody; that version is kept as %s", w.step.Path, kept))
			}
		}
		l.step(w.m, w.step, 0, err)
		if err != nil {
			w.m.trials = append(w.m.trials, err)
			continue
		}
		done[w.m] = true
		if w.ofUnit() {
			w.m.owes, w.m.owed = reasonOf(w.m), l.now()
		}
		if _, under := w.m.mem.Before[w.step.Path]; under {
			w.m.mem.Before, w.m.unsaved = maps.Clone(w.m.mem.Before), true
			delete(w.m.mem.Before, w.step.Path)
		}
		l.side.wantVerify(w.m)
	}
	l.tidy(todo)
	for _, m := range l.units {
		if !m.ofFile() && m.name.IsInstance() && done[l.units[m.name.Template()]] {
			m.owes, m.owed = "its template changed", l.now()
		}
	}
	return done
}

// keeps adds to the last few notes on what was kept.
func (m *managed) keeps(note string) {
	const most = 10 // the folder itself has them all
	notes := slices.DeleteFunc(slices.Clone(m.kept), func(n string) bool { return n == note })
	m.kept = append(notes[max(0, len(notes)-most+1):], note)
}

// blocked takes in, after each try, whether the disk of a unit could be put
// right. A unit of which nothing was changed waits for no reload.
func (l *Loop) blocked(m *managed, changed bool) {
	if len(m.trials) == 0 {
		m.track = m.track.Unblocked()
		return
	}
	m.track = m.track.Blocked(m.trials[0], l.now())
	m.again = m.track.NotBefore
	if !changed && m.owes == "" {
		m.plan.Steps = slices.DeleteFunc(slices.Clone(m.plan.Steps), func(s plan.Step) bool { return s.Action == plan.Reload })
	}
}

// tidy removes folders that stead made and that its removals have emptied.
func (l *Loop) tidy(todo []work) {
	var dirs []string
	for _, w := range todo {
		if w.step.Want.Kind != plan.Absent {
			continue
		}
		for d := filepath.Dir(w.step.Path); slices.Contains(l.memory.Made, d); d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	l.removeDirs(slices.Compact(dirs))
}

func (l *Loop) removeDirs(dirs []string) {
	if len(dirs) == 0 {
		return
	}
	removed := l.o.Disk.RemoveDirs(dirs)
	l.memory.Made = slices.DeleteFunc(slices.Clone(l.memory.Made), func(d string) bool { return slices.Contains(removed, d) })
}

// empty removes folders that stead made and in which nothing of stead's is when
// those units have gone: a host that was killed behind its last removal could not.
func (l *Loop) empty(gone []*managed) {
	used := make(map[string]bool)
	for _, m := range l.units {
		if slices.Contains(gone, m) {
			continue
		}
		for p, e := range m.mem.Wrote {
			for p != "/" && e.Kind != plan.Absent {
				p = filepath.Dir(p)
				used[p] = true
			}
		}
	}
	l.removeDirs(slices.DeleteFunc(slices.Clone(l.memory.Made), func(d string) bool { return used[d] }))
}

// step keeps a step for the report and the log. In the log of a pass over very
// many units the steps are for debugging: the pass counts them, and the journal
// would work as hard as the manager.
func (l *Loop) step(m *managed, s plan.Step, took time.Duration, err error) {
	r := report.Step{At: l.now(), Action: string(s.Action), Object: s.Path, Reason: s.Reason, Took: took}
	if r.Object == "" {
		r.Object = string(s.Unit)
	}
	if s.Action == plan.Reload {
		r.Object = string(l.o.Scope) + " manager"
	}
	say := l.o.Logger.Info
	if l.crowd || s.Action == plan.Reload {
		say = l.o.Logger.Debug // one reload, and a step of each unit that waited for it
	}
	if err != nil {
		r.Error = err.Error()
	}
	say("step", "scope", l.o.Scope, "unit", m.name, "action", r.Action, "object", r.Object, "reason", r.Reason, "error", r.Error)
	if l.heard != nil {
		l.heard(m, r)
	}
	const most = 12
	if len(m.steps) >= most {
		m.steps = slices.Clone(m.steps[len(m.steps)-most+1:])
	}
	m.steps = append(slices.Clip(m.steps), r)
}
