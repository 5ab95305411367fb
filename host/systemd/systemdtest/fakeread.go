package systemdtest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// look lets do read f's state in one call.
func (f *Fake) look(ctx context.Context, call string, do func()) error {
	_, after, err := f.enter(ctx, call)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.collect()
	return after(nil)
}

// Units is systemd.Reader's.
func (f *Fake) Units(ctx context.Context, by unit.Filter) ([]unit.Listed, error) {
	var out []unit.Listed
	err := f.look(ctx, "Units", func() {
		for _, u := range f.units {
			l := f.listed(u)
			if by.Names(l.Name) && by.Shows(l) {
				out = append(out, l)
			}
		}
		slices.SortFunc(out, func(a, b unit.Listed) int { return cmp.Compare(a.Name, b.Name) })
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (f *Fake) listed(u *loaded) unit.Listed {
	l := unit.Listed{Name: u.name, Description: u.def.description, Load: u.def.load, Active: u.active, Sub: u.sub}
	if u.job != nil {
		l.Job = unit.Job{ID: u.job.id, Type: u.job.kind}
	}
	return l
}

// Named is systemd.Reader's.
func (f *Fake) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	out := make([]unit.Listed, len(names))
	err := f.look(ctx, "Named", func() {
		for i, n := range names {
			if _, err := unit.ParseName(string(n)); err != nil || n.IsTemplate() {
				out[i] = unit.Listed{Name: n, Load: unit.LoadFailed, Active: unit.Inactive}
				continue
			}
			out[i] = f.listed(f.load(n))
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Files is systemd.Reader's.
func (f *Fake) Files(ctx context.Context, by unit.Filter) ([]unit.ListedFile, error) {
	var out []unit.ListedFile
	err := f.look(ctx, "Files", func() {
		for _, dir := range f.opts.Dirs {
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				n, err := unit.ParseName(e.Name())
				if err != nil || e.IsDir() || slices.ContainsFunc(out, func(l unit.ListedFile) bool { return l.Name == n }) {
					continue
				}
				l := unit.ListedFile{Name: n, Path: f.find(n), State: f.enablement(n)}
				if unit.HasPreset(l.State) {
					l.Preset = f.opts.Presets.Of(n)
				}
				out = append(out, l)
			}
		}
		out = slices.DeleteFunc(out, func(l unit.ListedFile) bool { return !by.ShowsFile(l) })
		slices.SortFunc(out, func(a, b unit.ListedFile) int { return cmp.Compare(a.Name, b.Name) })
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Enablement is systemd.Reader's.
func (f *Fake) Enablement(ctx context.Context, names []unit.Name) ([]string, error) {
	out := make([]string, len(names))
	err := f.look(ctx, "Enablement", func() {
		for i, n := range names {
			if _, err := unit.ParseName(string(n)); err == nil && !n.IsTemplate() {
				out[i] = f.enablement(f.load(n).name)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Stands is systemd.Reader's.
func (f *Fake) Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error) {
	out := make([]unit.Stand, len(units))
	err := f.look(ctx, "Stands", func() {
		for i, u := range units {
			d := f.details(f.load(u.Name))
			out[i] = unit.Stand{Since: d.Since, Result: d.Result}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Details is systemd.Reader's. What runs uses 1 MiB, 1 ms and one task.
func (f *Fake) Details(ctx context.Context, n unit.Name) (unit.Details, error) {
	if _, err := unit.ParseName(string(n)); err != nil {
		return unit.Details{}, fault.New(fault.Invalid, "read unit", "", err)
	}
	if n.IsTemplate() {
		return unit.Details{}, fault.New(fault.Invalid, "read unit", string(n), errors.New("it is a template, and only its instances have a state"))
	}
	var d unit.Details
	err := f.look(ctx, "Details", func() { d = f.details(f.load(n)) })
	if err != nil {
		return unit.Details{}, err
	}
	return d, nil
}

func (f *Fake) details(u *loaded) unit.Details {
	l := f.listed(u)
	d := unit.Details{
		ID: u.name, Names: []unit.Name{u.name}, Description: l.Description, Documents: slices.Clone(u.def.documents),
		Load: l.Load, Active: l.Active, Sub: l.Sub, Job: l.Job,
		Fragment: u.def.fragment, DropIns: slices.Clone(u.def.dropIns), Invocation: u.invocation,
		TriggeredBy: f.triggersOf(u.name), Unmet: slices.Clone(u.unmet), Unset: map[string]string{},
	}
	for _, a := range f.aliases(u.name) {
		d.Names = append(d.Names, unit.Name(a))
	}
	slices.Sort(d.Names)
	if d.Load != unit.Loaded {
		d.LoadError = u.def.words
	}
	if d.Fragment != "" {
		d.Enablement, d.Preset = f.enablement(u.name), f.opts.Presets.Of(u.name)
	}
	if u.def.triggers != "" {
		d.Triggers = []unit.Name{u.def.triggers}
	}
	if hasResult(u.name) {
		d.Result = u.result
	}
	if u.since.IsZero() {
		d.Unset[unit.FigureSince] = "it has been so ever since it was loaded"
	} else {
		at := u.since.Truncate(time.Microsecond).UTC()
		d.Since = &at
	}
	f.figures(u, &d)
	return d
}

func (f *Fake) figures(u *loaded, d *unit.Details) {
	unset := func(why string, keys ...string) {
		for _, k := range keys {
			d.Unset[k] = why
		}
	}
	process := []string{unit.FigureMainPID, unit.FigureRestarts, unit.FigureExitStatus}
	usage := []string{unit.FigureMemory, unit.FigureCPU, unit.FigureTasks}
	switch {
	case u.name.Type() != "service":
		unset("units of type "+u.name.Type()+" have none", append(process, usage...)...)
		return
	case u.pid == 0:
		unset("[not set]: it does not run", usage...)
		unset("it has no main process", unit.FigureMainPID)
	default:
		pid, memory, cpu, tasks := u.pid, uint64(1<<20), uint64(time.Millisecond), uint64(1)
		d.MainPID, d.Memory, d.CPU, d.Tasks = &pid, &memory, &cpu, &tasks
	}
	restarts := u.restarts
	d.Restarts = &restarts
	d.ExitCode = map[int32]string{exited: "exited", signaled: "killed"}[u.last.code]
	if d.ExitCode == "" {
		unset("no main process of it has ended", unit.FigureExitStatus)
		return
	}
	status := int(u.last.status)
	d.ExitStatus = &status
}
