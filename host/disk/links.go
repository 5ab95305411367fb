package disk

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"stead/host/install"
	"stead/host/plan"
	"stead/host/unit"
)

// links fills in what the unit's [Install] section is about.
func (u *one) links(text def, names []unit.Name) {
	enabled := u.q.Service.Enabled
	if enabled != nil && !*enabled {
		u.now.trace.more()
		u.d.Vendor = u.pulledIn(names)
	}
	if u.d.Mask != "" && (u.q.Service.IsMasked() || enabled != nil && !*enabled) {
		for _, t := range u.behind() {
			u.own(u.install(u.now.with(map[string]*thing{u.o.ConfigDir + "/" + string(u.q.Unit): t}), ""))
		}
	}
	if !text.install || u.d.Text.Kind != plan.Plain {
		return
	}
	r := u.install(u.then, text.key)
	u.d.Text.HasInstall = r.Kind == install.Enableable || r.Kind == install.Indirect
	for _, p := range r.Problems {
		u.d.Text.InstallErrors = append(u.d.Text.InstallErrors, p.String())
	}
	u.d.Text.InstallFailed = r.Failed()
	u.own(r)
	if enabled == nil || u.q.Service.IsMasked() {
		return
	}
	if !*enabled {
		// Links of the section that stands on disk still go too, or the unit would
		// stay enabled by them.
		if u.differs() {
			u.own(u.install(u.now, ""))
		}
		return
	}
	if !u.d.Text.HasInstall {
		return // it cannot be enabled: a link that only brings it into the search path is of no use
	}
	for _, l := range r.Links {
		if slices.ContainsFunc(u.d.Wants, func(w plan.Want) bool { return w.Path == l.Path }) {
			u.d.Text.InstallErrors = slices.Insert(u.d.Text.InstallErrors, 0, fmt.Sprintf("%s asks for a link %s, where a declared file stands", l.Owner, l.Path))
			u.d.Text.InstallFailed = true
			continue
		}
		w := plan.Want{Path: l.Path, Entry: plan.Entry{Kind: plan.Link, Target: l.Target}, Why: "enabled"}
		if is := u.now.at(l.Path).entry; is.Kind == plan.Link && is.Target != l.Target && u.present(l, is.Target) {
			w.Entry = is // written another way, and the manager takes it
		}
		u.d.Wants = append(u.d.Wants, w)
	}
}

// install asks what enabling the unit means. The answer is kept for as long as it
// depends on nothing but the unit's own files.
func (u *one) install(s *search, definition string) install.Result {
	p := u.o.ConfigDir + "/" + string(u.q.Unit)
	known := strings.HasPrefix(definition, p+"\x00") && (s.over[p] != nil || u.now.at(p).entry.Kind == plan.File)
	if known {
		if r, ok := u.results.known(definition); ok {
			return r
		}
	}
	u.now.trace.more()
	o := u.installer(s)
	o.Lookup = func(n unit.Name) (install.Unit, bool, error) {
		known = known && n == u.q.Unit
		return s.lookup(n)
	}
	r, err := install.Links(u.named(), o)
	if err != nil {
		u.d.Errs = append(u.d.Errs, failure("read", string(u.named()), err))
		return r
	}
	if known {
		u.results.keep(definition, r)
	}
	return r
}

// named is the unit whose [Install] section counts: where the declared name is an alias,
// the one that it stands for.
func (u *one) named() unit.Name {
	if st := u.q.Status; st.Load == unit.Loaded && st.ID != "" && u.q.Service.Content == nil {
		return st.ID
	}
	return u.q.Unit
}

// present reports whether a link that leads elsewhere does for l all the same.
func (u *one) present(l install.Link, target string) bool {
	u.now.trace.more()
	return u.installer(u.now).Present(l, target)
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
	for _, l := range r.Links {
		if l.Owner != r.Name || l.Linked || slices.Contains(u.d.OwnLinks, l.Path) {
			continue
		}
		is := u.now.at(l.Path).entry
		in, _ := split(l.Path)
		if is.Kind != plan.Link || in == u.o.ConfigDir && is.Target != l.Target && !u.present(l, is.Target) {
			continue
		}
		u.at(l.Path)
		u.d.OwnLinks = append(u.d.OwnLinks, l.Path)
	}
	slices.Sort(u.d.OwnLinks)
	u.d.Vendor = slices.DeleteFunc(u.d.Vendor, func(p string) bool { return slices.Contains(u.d.OwnLinks, p) }) // they go
}

// behind are the definitions that a mask hides: the one that is kept aside, and the
// first on the search path. The links of either are the unit's own.
func (u *one) behind() []*thing {
	var all []*thing
	if c := u.q.Service.Content; c != nil {
		all = append(all, &thing{entry: plan.Entry{Kind: plan.File}, text: u.reader.syntax([]byte(*c)), null: len(*c) == 0})
	}
	for _, d := range u.now.live {
		if t := u.now.at(d.path + "/" + string(u.q.Unit)); t.entry.Kind == plan.File && !t.null {
			return append(all, t)
		}
	}
	return all
}

// pulledIn returns links to the unit in .wants and .requires folders, whoever made
// them.
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
	for _, d := range l.now.live {
		p := d.path
		if listed[d.real] {
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
