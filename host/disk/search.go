package disk

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"stead/host/plan"
	"stead/host/unit"
)

// search follows a manager's search path as the manager does when it reloads.
// The rules are those of systemd 252, held against it by a test.
type search struct {
	*folders
	known  *cache[unit.Name, []string] // the drop-in folders of names
	live   []*dir                      // those of the search path that exist, and the configuration folder
	config string
	is247  bool // systemd is older than 251
	// over are declared files, by path, that count in the place of what stands
	// there; nil to see the disk as it is.
	over    map[string]*thing
	overDir map[string][]string // the names in over, by folder
	links   map[string]linked
	aliases map[string][]string // file name of a fragment → names that lead to it by links
}

// linked is what a link in a folder of the search path means: an alias of
// another unit, or a unit file of its own. Neither: systemd ignores it.
type linked struct {
	alias string
	own   bool
}

// followMax is how many aliases systemd follows for one name.
const followMax = 8

func newSearch(d *Disk, f *folders) *search {
	s := &search{folders: f, known: d.folders, config: d.o.ConfigDir, is247: older(d.o.Version, 251), links: make(map[string]linked)}
	for _, p := range d.o.UnitPath {
		if d := f.dir(p); (d.there() || p == s.config) && !slices.Contains(s.live, d) {
			s.live = append(s.live, d)
		}
	}
	return s
}

// with returns the same search with declared files in place. They are found by
// the path at which they are declared and by where that really is.
func (s *search) with(over map[string]*thing) *search {
	c := *s
	c.over, c.overDir, c.aliases = make(map[string]*thing, 2*len(over)), make(map[string][]string), nil
	for p, t := range over {
		in, name := path.Split(p)
		in = path.Clean(in)
		c.overDir[in] = append(c.overDir[in], name)
		c.over[p] = t
		real := s.dir(path.Dir(in)).real + "/" + path.Base(in)
		if d := s.dir(in); d.there() {
			real = d.real
		}
		c.over[real+"/"+name] = t
	}
	return &c
}

// declared reports whether a declared unit file of that name counts in d.
func (s *search) declared(d *dir, name string) bool {
	return s.over != nil && d.path == s.config && s.over[s.config+"/"+name] != nil
}

// entry returns the first path of the search path that has the name, directories
// aside, which only systemd 247 takes for unit files; from is where to begin, and next
// where to go on.
func (s *search) entry(name string, from int) (p string, link bool, next int) {
	for i := from; i < len(s.live); i++ {
		d := s.live[i]
		if s.declared(d, name) {
			return d.path + "/" + name, false, i + 1
		}
		if kind, ok := d.kinds[name]; ok && (s.is247 || !kind.IsDir()) {
			return d.path + "/" + name, kind&fs.ModeSymlink != 0, i + 1
		}
	}
	return "", false, len(s.live)
}

// id returns what a name stands for in the search path: a fragment's path, or
// the name that it is an alias of; "" for nothing.
func (s *search) id(name string) (fragment, alias string) {
	for i := 0; i < len(s.live); {
		p, link, next := s.entry(name, i)
		if i = next; p == "" {
			break
		}
		if !link {
			return p, ""
		}
		if l := s.link(p); l.own {
			return p, ""
		} else if l.alias != "" {
			return "", l.alias
		}
	}
	return "", ""
}

// link says what the link at p means.
func (s *search) link(p string) linked {
	l, ok := s.links[p]
	if !ok {
		l = s.readLink(p)
		s.links[p] = l
	}
	return l
}

func (s *search) readLink(p string) linked {
	t := s.at(p)
	if t.entry.Target == "" {
		return linked{}
	}
	to := s.real(s.dir(path.Dir(p)), t.entry.Target)
	if !slices.ContainsFunc(s.live, func(d *dir) bool { return below(to, d.path) || below(to, d.real) }) {
		return linked{own: true}
	}
	if path.Base(p) != path.Base(to) && mayAlias(path.Base(p), path.Base(to)) {
		return linked{alias: path.Base(to)}
	}
	return linked{}
}

func below(p, dir string) bool {
	return len(p) > len(dir) && p[len(dir)] == '/' && strings.HasPrefix(p, dir)
}

// mayAlias reports whether systemd takes a link named from, in its search path,
// to a unit named to for an alias.
func mayAlias(from, to string) bool {
	a, errA := unit.ParseName(from)
	b, errB := unit.ParseName(to)
	if errA != nil || errB != nil || a.Type() != b.Type() {
		return false
	}
	switch a.Type() {
	case "service", "socket", "target", "device", "timer", "path":
	default:
		return false
	}
	switch {
	case a.IsInstance() && b.IsInstance():
		return a.Instance() == b.Instance()
	case a.IsInstance():
		return b.IsTemplate()
	}
	return a.IsTemplate() == b.IsTemplate() && !b.IsInstance()
}

// fragment returns the path of the file that the manager would load the unit
// from, "" when there is none. A mask is a fragment. A link to nothing is none;
// gone then tells that it hides all that comes later in the search path.
func (s *search) fragment(n unit.Name) (p string, gone bool) {
	if p = s.resolve(n); p == "" && n.IsInstance() {
		p = s.resolve(n.Template())
	}
	if p != "" && s.read(p).entry.Kind == plan.Absent {
		return "", true
	}
	return p, p != "" && s.is247 && s.read(p).entry.Kind == plan.Dir // nothing is read for a folder
}

// told is how the manager tells of a fragment: before 251 it says where a link
// out of the search path ends.
func (s *search) told(fragment string) string {
	if s.is247 && fragment != "" && s.at(fragment).entry.Kind == plan.Link && !s.read(fragment).null {
		fragment, _ = s.end(fragment)
	}
	return fragment
}

// resolve follows aliases from n to a fragment. An instance without an entry of
// its own goes by its template from there on.
func (s *search) resolve(n unit.Name) string {
	for range followMax {
		p, alias := s.id(string(n))
		if p == "" && alias == "" && n.IsInstance() {
			p, alias = s.id(string(n.Template()))
		}
		if alias == "" {
			return p
		}
		n = unit.Name(alias)
	}
	return ""
}

// names returns all names of the unit that n is loaded as, the primary one
// first. Those that lead to a mask do not know of each other.
func (s *search) names(n unit.Name, fragment string) []unit.Name {
	if fragment == "" {
		return []unit.Name{n}
	}
	base := path.Base(fragment)
	var all []unit.Name
	add := func(m unit.Name) {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	id := unit.Name(base)
	if id.IsTemplate() && n.Instance() != "" {
		id = id.WithInstance(n.Instance())
	}
	// An instance that has a file of its own beside its template's is not the
	// primary name of those who come by the template, and neither is one that the
	// template masks; its drop-ins count for them.
	own, gone := s.fragment(id)
	if own == fragment && (base == string(id) || !s.read(fragment).null) {
		add(id)
	}
	add(n)
	if !gone {
		add(id)
	}
	for _, alias := range s.aliasesOf(base) {
		a := unit.Name(alias)
		if a.IsTemplate() && n.IsInstance() {
			a = a.WithInstance(n.Instance())
		}
		if to, _ := s.fragment(a); a.Instance() == n.Instance() && to == fragment {
			add(a)
		}
	}
	slices.Sort(all[1:])
	return all
}

// aliasesOf returns the names of links that lead to a fragment of that file
// name.
func (s *search) aliasesOf(base string) []string {
	if s.aliases == nil {
		// What this comes to is compared as a whole.
		defer func(t *trace) { s.trace = t }(s.trace)
		s.trace = nil
		s.aliases = make(map[string][]string)
		for _, d := range s.live {
			for name, kind := range d.kinds {
				if kind&fs.ModeSymlink == 0 || s.declared(d, name) {
					continue
				}
				n, err := unit.ParseName(name)
				if err != nil || s.link(d.path+"/"+name).alias == "" {
					continue
				}
				p, _ := s.fragment(n)
				if p == "" || s.read(p).null {
					continue
				}
				if to := path.Base(p); to != name && !slices.Contains(s.aliases[to], name) {
					s.aliases[to] = append(s.aliases[to], name)
				}
			}
		}
		for _, names := range s.aliases {
			slices.Sort(names)
		}
	}
	return s.aliases[base]
}
