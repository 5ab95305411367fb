package disk

import (
	"slices"
	"strings"

	"stead/host/unit"
)

// confs collects drop-ins: of files of one name the first counts.
type confs struct {
	names []string
	paths map[string]string // name → path, in the folder's real place
}

func (c *confs) add(real, name string) {
	if !strings.HasSuffix(name, ".conf") || name[0] == '.' || c.paths[name] != "" {
		return
	}
	if c.paths == nil {
		c.paths = make(map[string]string)
	}
	c.paths[name] = real + "/" + name
	c.names = append(c.names, name)
}

// sorted returns the paths in the order in which systemd reads them: by name,
// whatever folder they are in.
func (c *confs) sorted() []string {
	slices.Sort(c.names)
	var paths []string
	for _, n := range c.names {
		paths = append(paths, c.paths[n])
	}
	return paths
}

// dropins returns the drop-ins of a unit with all its names, as systemd lists
// them: masked and empty ones too.
func (s *search) dropins(names []unit.Name) []string {
	var c confs
	for _, n := range names {
		v := s.known.get(n, func() []string {
			v := variants(string(n))
			for i := range v {
				v[i] += ".d"
			}
			return v
		})
		for _, d := range s.live {
			for _, folder := range v {
				s.conf(&c, d, folder)
			}
		}
	}
	folder := names[0].Type() + ".d"
	for _, d := range s.live {
		s.conf(&c, d, folder)
	}
	return c.sorted()
}

// conf adds the drop-ins of one folder in a folder of the search path.
func (s *search) conf(c *confs, in *dir, folder string) {
	_, there := in.kinds[folder]
	var declared []string
	if s.over != nil && in.path == s.config {
		declared = s.overDir[in.path+"/"+folder]
	}
	if !there && declared == nil {
		return
	}
	real := in.real + "/" + folder
	if there {
		d := s.dir(in.path + "/" + folder)
		s.trace.listed(d)
		if d.there() {
			real = d.real
		}
		for f := range d.kinds {
			c.add(real, f)
		}
	}
	for _, f := range declared {
		c.add(real, f)
	}
}

// variants returns the names whose drop-in folders count for a unit, most
// specific first: itself and its template, then the same for what stands before
// each dash of its prefix.
func variants(name string) []string {
	var all []string
	for {
		n := unit.Name(name)
		all = append(all, name)
		if n.IsInstance() {
			all = append(all, string(n.Template()))
		}
		prefix := n.Prefix()
		dash := strings.LastIndexByte(strings.TrimSuffix(prefix, "-"), '-')
		if dash < 0 {
			return all
		}
		name = prefix[:dash+1] + strings.TrimPrefix(name, prefix)
	}
}

// read returns what systemd reads at the path of a fragment or drop-in: a
// declared file where there is one.
func (s *search) read(p string) *thing {
	if t := s.over[p]; t != nil {
		return t
	}
	return s.through(p)
}
