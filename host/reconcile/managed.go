package reconcile

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// managed is one unit or file that is declared, or is being given back.
type managed struct {
	name  unit.Name // of a file its path, as it is declared
	decl  *Declared // nil: being given back
	mem   plan.Memory
	track plan.Track
	rival unit.Name  // runs as declared, and would be stopped by a start of this one
	owner plan.Owner // zero when it is this declaration

	status   unit.Status
	disk     plan.Disk
	citing   map[string]plan.Cited // triggers that are watched
	plan     plan.Decision
	decided  *Declared                 // for which plan was made
	pulledBy []unit.Name               // units that it is enabled for
	pullers  map[unit.Name]unit.Status // of all units; shared
	reload   time.Duration             // when the unit last reloaded, where that had to be asked for
	same     bool                      // the last look found what the one before found, and it was calm
	trials   []error                   // what the disk or the manager answered to the last acts

	dirty   bool
	resting bool      // it was left as it is, as a pause asks for
	barred  bool      // an obstacle is what was last reported of it
	again   time.Time // look again by then
	looked  time.Time
	stale   bool      // disk is older than what was last written
	unsaved bool      // mem differs from the ledger
	owes    string    // why a reload is owed: its files were changed, and the manager has not reloaded since
	owed    time.Time // when they were changed
	reread  bool      // somebody else's reload has paid that, and m was not looked at since

	rep      *report.Report
	steps    []report.Step
	kept     []string // where versions of somebody else's were kept
	verified []string // warnings of systemd's verifier
	lines    []string
	words    string // in which systemd said why it cannot load the unit
	linesFor string // what the lines were read for
}

func (m *managed) input(c plan.Clock) plan.Input {
	in := plan.Input{Status: m.status, Disk: m.disk, Memory: m.mem, Track: m.track, Clock: c, Owner: m.owner, Rival: string(m.rival),
		Owes: m.owes, Reloaded: m.reload, Pullers: m.pullers}
	if m.decl != nil {
		in.Service, in.Generation = m.decl.Service, m.decl.Generation
	}
	return in
}

// accept takes a whole set over.
func (l *Loop) accept(set Set) {
	l.begun = true
	l.cite(set)
	declared, taken := l.claims(set.Declared)
	told := l.setAside(set.Leave, taken) || len(declared) == 0
	for _, d := range declared {
		m := l.units[d.Service.Object()]
		if m == nil {
			m = &managed{name: d.Service.Object()}
			l.units[m.name] = m
		}
		news := m.decl == nil || m.decl.UID != d.UID || m.decl.Generation != d.Generation
		m.decl = d
		if m.rep != nil && m.rep.Origin != origin(d) {
			r := *m.rep
			r.Origin = origin(d)
			m.rep, told = &r, true
		}
		m.mem.Scope, m.mem.Unit = l.o.Scope, m.name
		if m.mem.Name != d.Service.Name || m.mem.UID != d.UID || m.mem.Generation != d.Generation ||
			m.mem.OnWithdraw != d.Service.OnWithdraw || m.mem.OnChange != d.Service.OnChange || m.mem.Sensitive != d.Service.Sensitive || m.mem.Withdrawn {
			m.mem.Name, m.mem.UID, m.mem.Generation, m.mem.OnChange = d.Service.Name, d.UID, d.Generation, d.Service.OnChange
			m.mem.OnWithdraw, m.mem.Sensitive, m.mem.Withdrawn, m.unsaved = d.Service.OnWithdraw, d.Service.Sensitive, false, true
		}
		if news {
			m.dirty, m.barred, m.words, told = true, false, "", true
			l.expect(m, report.Pending)
		}
	}
	for _, m := range l.units {
		if declared[m.name] != nil {
			continue
		}
		if l.leaves(m) {
			l.letBe(m)
			continue
		}
		if m.decl != nil || !m.mem.Withdrawn || m.looked.IsZero() {
			m.decl, m.dirty, m.barred, m.unsaved = nil, true, false, true
			m.mem.Withdrawn, told = true, true
			l.expect(m, report.Withdrawing)
			l.o.Logger.Info("giving back", "scope", l.o.Scope, "unit", m.name, "declaration", m.mem.Name)
		}
	}
	l.pause(set.Pauses)
	if told {
		l.disowned()
		l.publish()
	}
}

// expect takes back what was reported of m before it was declared anew: until a
// pass is over, which a reload can make long, nothing is known of it.
func (l *Loop) expect(m *managed, why report.Reason) {
	if m.rep == nil {
		return
	}
	r := *m.rep
	r.Name, r.UID, r.Generation, r.Origin = m.mem.Name, m.mem.UID, m.mem.Generation, origin(m.decl)
	r.Outcome, r.Reason, r.Text, r.Hint, r.Since = report.Waiting, why, "", "", l.now()
	m.rep = &r
}

// origin is where a declaration stands, "" for one that is known from the ledger
// alone.
func origin(d *Declared) string {
	if d == nil || d.Service.Origin.File == "" {
		return ""
	}
	return d.Service.Origin.String()
}

// all marks every unit.
func (l *Loop) all() {
	for _, m := range l.units {
		m.dirty = true
	}
}

// due takes the units that are to be looked at, in the order of their names.
func (l *Loop) due(now time.Time) []*managed {
	var batch []*managed
	for _, m := range l.units {
		if m.isLeft() {
			m.dirty, m.again = false, time.Time{} // in force and unreadable: left as it is
			continue
		}
		if m.dirty || (!m.again.IsZero() && !now.Before(m.again)) {
			m.dirty, m.barred, m.again = false, false, time.Time{}
			batch = append(batch, m)
		}
	}
	slices.SortFunc(batch, func(a, b *managed) int { return cmp.Compare(a.name, b.name) })
	return batch
}

// drain takes the manager's changes in.
func (l *Loop) drain() {
	ch := l.o.Manager.Drain()
	l.heardReload(ch.Reloaded)
	if ch.All {
		l.all()
	}
	now := l.now()
	for _, e := range ch.Jobs {
		for _, m := range l.ids[e.Unit] {
			m.track, m.dirty = m.track.Ended(e, now), true
		}
	}
	for _, id := range ch.Units {
		for _, m := range l.ids[id] {
			m.dirty = true
		}
	}
}

// paths takes changes of watched paths in. What stands as stead wrote it is no
// news.
func (l *Loop) paths() {
	changed, all := l.o.Watcher.Drain()
	if all {
		l.all()
		return
	}
	for _, p := range changed {
		if p == l.o.ConfigDir || strings.HasPrefix(l.o.ConfigDir, p+"/") {
			l.all() // it is another one now
		}
		for _, m := range []*managed{l.owners[p], l.owners[filepath.Dir(p)], l.units[unit.Name(plan.UnitOfPath(p))]} {
			if m != nil && !m.dirty && !l.asWritten(m, p) {
				m.dirty = true
			}
		}
		l.folderOfFiles(p)
		l.cited.changed(p)
		l.dropInPath(p)
	}
}

// folderOfFiles takes in that p changed, where it is a folder that declared files are
// below: what is renamed, or becomes a link, takes them along without a word of them.
func (l *Loop) folderOfFiles(p string) {
	if !l.above[p] {
		return
	}
	for q, m := range l.owners {
		if m.ofFile() && !m.dirty && strings.HasPrefix(q, p+"/") && !l.asWritten(m, q) {
			m.dirty = true
		}
	}
}

// asWritten reports whether what stands at p is what stead wrote there, and that is
// no news: of a unit that is not right, somebody else may have put it right.
func (l *Loop) asWritten(m *managed, p string) bool {
	if m.rep != nil && (m.rep.Outcome == report.Failed || m.rep.Outcome == report.Contested) {
		return false
	}
	wrote, ok := m.mem.Wrote[p]
	if !ok {
		return slices.Contains(l.memory.Made, p)
	}
	now, _, err := l.o.Disk.Snapshot(p)
	return err == nil && now == wrote
}

// index notes which paths and which primary name belong to m.
func (l *Loop) index(m *managed, oldID unit.Name) {
	if id := m.status.ID; id != oldID || !slices.Contains(l.ids[id], m) {
		l.unindex(m, oldID)
		l.ids[id] = append(l.ids[id], m)
		l.watched = true
	}
	own := func(p string) {
		if p != "" && l.owners[p] != m {
			l.owners[p], l.watched = m, true
		}
	}
	if cites(m.disk, m.citing) {
		m.citing, l.watched = m.disk.Triggers, true
	}
	own(m.disk.Fragment)
	for _, p := range m.disk.DropIns {
		own(p)
		own(filepath.Dir(p))
	}
	for p := range m.mem.Found {
		own(p)
	}
}

func (l *Loop) unindex(m *managed, id unit.Name) {
	if rest := slices.DeleteFunc(l.ids[id], func(o *managed) bool { return o == m }); len(rest) > 0 {
		l.ids[id] = rest
	} else {
		delete(l.ids, id)
	}
}

// drop forgets units that were given back.
func (l *Loop) drop(done []*managed) {
	gone := make(map[*managed]bool, len(done))
	for _, m := range done {
		gone[m] = true
		l.unindex(m, m.status.ID)
		delete(l.units, m.name)
	}
	for p, o := range l.owners {
		if gone[o] {
			delete(l.owners, p)
		}
	}
	l.disowned()
	l.watched = true
}

// watch tells the watcher the folders that matter.
func (l *Loop) watch() {
	if !l.watched {
		return
	}
	l.watched = false
	dirs := map[string]bool{l.o.ConfigDir: true}
	l.above = make(map[string]bool)
	for p, m := range l.owners {
		if m.ofFile() {
			for d := filepath.Dir(p); len(d) > 1 && !l.above[d]; d = filepath.Dir(d) {
				l.above[d] = true
			}
		}
		if strings.HasSuffix(p, ".d") {
			dirs[p] = true
			continue
		}
		dirs[filepath.Dir(p)] = true
	}
	l.folders = make(map[string][]*managed)
	for n, m := range l.units {
		if m.ofFile() {
			continue
		}
		for _, d := range dropInFolders(n) {
			dirs[filepath.Join(l.o.ConfigDir, d)] = true
			l.folders[d] = append(l.folders[d], m)
		}
	}
	l.cited = l.citations(dirs)
	list := make([]string, 0, len(dirs))
	for d := range dirs {
		list = append(list, d)
	}
	slices.Sort(list)
	l.o.Watcher.Set(list)
}
