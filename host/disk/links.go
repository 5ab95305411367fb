package disk

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"stead/host/install"
	"stead/host/plan"
	"stead/host/unit"
)

// links fills in what the unit's [Install] section is about.
func (u *one) links(text unit.File, names []unit.Name) {
	enabled := u.q.Service.Enabled
	if enabled != nil && !*enabled {
		u.d.Vendor = u.pulledIn(names)
	}
	if !text.HasSection("Install") || u.d.Text.Kind != plan.Plain {
		return
	}
	r := u.install(u.then)
	u.d.Text.HasInstall = r.Kind == install.Enableable || r.Kind == install.Indirect
	for _, p := range r.Problems {
		u.d.Text.InstallErrors = append(u.d.Text.InstallErrors, p.String())
	}
	u.own(r)
	if enabled == nil {
		return
	}
	if !*enabled {
		// Links of the section that stands on disk still go too, or the unit would
		// stay enabled by them.
		if u.differs() {
			u.own(u.install(u.now))
		}
		return
	}
	for _, l := range r.Links {
		w := plan.Want{Path: l.Path, Entry: plan.Entry{Kind: plan.Link, Target: l.Target}, Why: "enabled"}
		if is := u.now.at(l.Path).entry; is.Kind == plan.Link && u.installer(u.now).Present(l, is.Target) {
			w.Entry = is // written another way, and the manager takes it
		}
		u.d.Wants = append(u.d.Wants, w)
	}
}

func (u *one) install(s *search) install.Result {
	r, err := install.Links(u.q.Unit, u.installer(s))
	if err != nil {
		u.d.Errs = append(u.d.Errs, failure("read", string(u.q.Unit), err))
	}
	return r
}

func (l *look) installer(s *search) install.Options {
	return install.Options{
		Lookup: s.lookup, Search: l.o.UnitPath, Config: l.o.ConfigDir, Runtime: l.o.RuntimeDir,
		Specifiers: l.o.Specifiers, Version: l.o.Version, Same: s.same,
	}
}

// differs reports whether a declared file is not on disk as declared.
func (u *one) differs() bool {
	return slices.ContainsFunc(u.declaredOf(u.q.Service).wants, func(w plan.Want) bool {
		return u.now.at(w.Path).entry.Digest != w.Entry.Digest
	})
}

// own notes those of the unit's own links that are on disk. A link in a .wants
// folder pulls the unit in wherever it leads to; under an alias's name, only one
// that leads to the unit is the unit's.
func (u *one) own(r install.Result) {
	for _, l := range r.Own() {
		is := u.now.at(l.Path).entry
		if is.Kind != plan.Link || path.Dir(l.Path) == u.o.ConfigDir && !u.installer(u.now).Present(l, is.Target) {
			continue
		}
		if u.at(l.Path); !slices.Contains(u.d.OwnLinks, l.Path) {
			u.d.OwnLinks = append(u.d.OwnLinks, l.Path)
		}
	}
	slices.Sort(u.d.OwnLinks)
}

// pulledIn returns links to the unit in the .wants and .requires folders that are
// not ours to write.
func (u *one) pulledIn(names []unit.Name) []string {
	if u.vendor == nil {
		u.look.vendor = u.vendorLinks()
	}
	var all []string
	for _, n := range names {
		all = append(all, u.vendor[string(n)]...)
	}
	slices.Sort(all)
	return all
}

// vendorLinks returns the entries of those folders, by name.
func (l *look) vendorLinks() map[string][]string {
	all := make(map[string][]string)
	listed := make(map[string]bool)
	for _, p := range l.o.UnitPath {
		d := l.now.dir(p)
		if p == l.o.ConfigDir || listed[d.real] {
			continue
		}
		listed[d.real] = true
		for name, kind := range d.kinds {
			if !kind.IsDir() && kind&fs.ModeSymlink == 0 || !pulls(name) {
				continue
			}
			for entry := range l.now.dir(p + "/" + name).kinds {
				all[entry] = append(all[entry], p+"/"+name+"/"+entry)
			}
		}
	}
	return all
}

func pulls(dir string) bool {
	return strings.HasSuffix(dir, ".wants") || strings.HasSuffix(dir, ".requires") || strings.HasSuffix(dir, ".upholds")
}
