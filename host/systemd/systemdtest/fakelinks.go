package systemdtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/host/install"
	"stead/host/unit"
)

// Enable is systemd.Manager's. Links go into the first of Options.Dirs.
func (f *Fake) Enable(ctx context.Context, names []unit.Name) (unit.Linking, error) {
	return f.relink(ctx, "Enable", names, f.enable)
}

// Disable is systemd.Manager's.
func (f *Fake) Disable(ctx context.Context, names []unit.Name) (unit.Linking, error) {
	return f.relink(ctx, "Disable", names, f.disable)
}

func (f *Fake) relink(ctx context.Context, call string, names []unit.Name, one func(unit.Name, *unit.Linking) error) (unit.Linking, error) {
	_, after, err := f.enter(ctx, call)
	if err != nil {
		return unit.Linking{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := unit.Linking{NoInstall: call == "Enable"}
	for _, n := range names {
		if _, err := unit.ParseName(string(n)); err != nil {
			return unit.Linking{}, fault.New(fault.Invalid, strings.ToLower(call), "", err)
		}
		if err := one(n, &out); err != nil {
			return unit.Linking{}, err
		}
		f.log = append(f.log, strings.ToLower(call)+" "+string(n))
	}
	if err := after(nil); err != nil {
		return unit.Linking{}, err
	}
	return out, nil
}

// links asks what enabling n means, by the rules that were seen on real managers.
func (f *Fake) links(n unit.Name) (install.Result, error) {
	return install.Links(n, install.Options{Lookup: f.lookup, Search: f.opts.Dirs, Config: f.opts.Dirs[0], Runtime: "/run/systemd/system"})
}

func (f *Fake) lookup(n unit.Name) (install.Unit, bool, error) {
	path := f.find(n)
	if path == "" {
		return install.Unit{}, false, nil
	}
	u := install.Unit{Path: path}
	for _, p := range f.dropIns(n) {
		data, err := os.ReadFile(p)
		u.DropIns = append(u.DropIns, install.DropIn{Path: p, Text: unit.ParseFile(data), Err: err})
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		u.Target, u.Gone = target, err != nil
	}
	data, err := os.ReadFile(path)
	u.Masked = err == nil && len(data) == 0
	u.Text, u.Err = unit.ParseFile(data), err
	return u, true, nil
}

func (f *Fake) enable(n unit.Name, out *unit.Linking) error {
	r, err := f.links(n)
	if err != nil {
		return err
	}
	for _, l := range r.Links {
		if target, err := os.Readlink(l.Path); err == nil && filepath.Base(target) == filepath.Base(l.Target) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(l.Path), 0o755), os.Symlink(l.Target, l.Path)); err != nil {
			return fault.New(fault.Failed, "enable", string(n), err)
		}
		out.Made = append(out.Made, unit.LinkMade{Path: l.Path, To: l.Target})
	}
	for _, p := range r.Problems {
		switch {
		case p.Fatal:
			return refusal("enable", n, p)
		case p.Code == install.IsMasked:
			out.Notes = append(out.Notes, p.Object+": masked")
		}
	}
	out.NoInstall = out.NoInstall && r.Kind == install.Static
	return nil
}

// refusal is a problem in systemd's words.
func refusal(op string, n unit.Name, p install.Problem) error {
	switch p.Code {
	case install.NoUnit:
		return fault.New(fault.NotFound, op, string(n), says("Unit file %s does not exist.", n))
	case install.IsMasked:
		return fault.New(fault.Refused, op, string(n), says("Unit file %s is masked.", p.Object))
	case install.IsAlias:
		return fault.New(fault.Refused, op, string(n), says("Refusing to operate on alias name or linked unit file: %s", n))
	}
	return fault.New(fault.Failed, op, string(n), says("%s", p))
}

func (f *Fake) disable(n unit.Name, out *unit.Linking) error {
	if f.find(n) == "" && f.find(n.Template()) == "" {
		return refusal("disable", n, install.Problem{Code: install.NoUnit})
	}
	r, err := f.links(n)
	if err != nil {
		return err
	}
	doomed := map[unit.Name]bool{}
	if r.Kind != install.Masked {
		doomed[n] = true
	}
	for _, l := range r.Links {
		doomed[l.Owner] = true // what Also= led to
	}
	for _, link := range f.linksInConfig() {
		target, _ := os.Readlink(link)
		if !doomed[unit.Name(filepath.Base(link))] && !doomed[unit.Name(filepath.Base(target))] {
			continue
		}
		if err := os.Remove(link); err != nil {
			return fault.New(fault.Failed, "disable", string(n), err)
		}
		out.Removed = append(out.Removed, link)
	}
	return nil
}

// linksInConfig lists the symbolic links in the first folder, and in its folders
// of dependencies.
func (f *Fake) linksInConfig() []string {
	var out []string
	for _, pattern := range []string{"*", "*.wants/*", "*.requires/*"} {
		paths, _ := filepath.Glob(filepath.Join(f.opts.Dirs[0], pattern))
		for _, p := range paths {
			info, err := os.Lstat(p)
			if _, bad := unit.ParseName(filepath.Base(p)); err == nil && bad == nil && info.Mode()&fs.ModeSymlink != 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// enablement is the state of the unit file of n; "" where it has none.
func (f *Fake) enablement(n unit.Name) string {
	path := f.find(n)
	if path == "" {
		if path = f.find(n.Template()); path == "" {
			return ""
		}
	}
	if data, err := os.ReadFile(path); err != nil || len(data) == 0 {
		return "masked"
	}
	target, err := os.Readlink(path)
	isLink := err == nil
	if isLink && filepath.Base(target) != filepath.Base(path) {
		return "alias"
	}
	r, err := f.links(n)
	state := f.stateByLinks(n, r)
	switch {
	case err != nil || r.Kind == install.Invalid:
		return "bad"
	case state != "":
		return state
	case isLink && !slices.Contains(f.opts.Dirs, filepath.Dir(target)):
		return "linked"
	case r.Kind == install.Static:
		return "static"
	case r.Kind == install.Indirect:
		return "indirect"
	}
	return "disabled"
}

// stateByLinks is the state that the links to n give it: enabled for one that n asks
// for, and for each dependency on it; indirect for other names and for instances;
// "" for none.
func (f *Fake) stateByLinks(n unit.Name, r install.Result) string {
	asked := map[string]bool{}
	for _, l := range r.Own() {
		asked[l.Path] = true
	}
	state := ""
	for _, link := range f.linksInConfig() {
		target, _ := os.Readlink(link)
		name := unit.Name(filepath.Base(link))
		switch {
		case filepath.Base(target) != string(n.Template()):
		case asked[link], name == n && filepath.Dir(link) != f.opts.Dirs[0]:
			return "enabled"
		case name != n && !n.IsInstance():
			state = "indirect"
		}
	}
	return state
}
