package install

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"

	"stead/host/unit"
)

// scene is a machine and the unit that is to be enabled on it.
type scene struct {
	disk machine
	ask  unit.Name
}

// generator makes scenes of a few units that refer to each other.
type generator struct {
	*rand.Rand
	disk  machine
	names []string
}

func generate(seed uint64) scene {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), disk: machine{}}
	pool := []string{"ga.service", "gb.service", "gc-d.service", "gt@.service", "gt@one.service", "gu-v@.service", "gs.socket", "gz.target", "gi.timer", "gp.path", "gq.slice", "gt@two.service", "gt@.socket", `gx\x2dy.service`}
	g.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	g.names = pool[:1+g.IntN(5)]
	for _, n := range g.names {
		g.unit(n)
		for range g.IntN(3) {
			g.dropIn(n)
		}
	}
	if g.maybe(15) {
		g.stray()
	}
	s := scene{disk: g.disk, ask: unit.Name(g.pick(g.names))}
	if s.ask.IsTemplate() && g.maybe(40) {
		s.ask = s.ask.WithInstance(g.pick([]string{"one", "a-b", "x@y", `q\x2d`}))
	}
	if g.maybe(2) {
		s.ask = "gmissing.service"
	}
	return s
}

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

func (g *generator) pick(of []string) string { return of[g.IntN(len(of))] }

func (g *generator) dir() string {
	return g.pick([]string{etc, etc, etc, etc, etc, usr, usr, usr, run, loc})
}

// unit puts a unit on the disk: mostly as a file, else as a link of some kind.
func (g *generator) unit(n string) {
	at := path.Join(g.dir(), n)
	switch k := g.IntN(100); {
	case k < 74:
		g.disk[at] = thing{text: g.text(n)}
	case k < 84:
		g.disk[at] = thing{sort: link, text: g.target(path.Dir(at))}
	case k < 92:
		out := "/opt/g/" + g.pick([]string{n, n, "other.service", "other@.service", "odd"})
		g.disk[out] = thing{text: g.text(n)}
		g.disk[at] = thing{sort: link, text: out}
		if g.maybe(20) {
			g.disk["/opt/g/hop"] = thing{sort: link, text: path.Base(out)}
			g.disk[at] = thing{sort: link, text: "/opt/g/hop"}
		}
	case k < 94:
		g.disk[at] = thing{sort: link, text: "/dev/null"}
	case k < 96:
		g.disk[at] = thing{}
	case k < 97:
		g.disk[at] = thing{sort: folder}
	case k < 98:
		g.disk[path.Join(gen, n)] = thing{text: g.text(n)}
	default:
		g.disk[at] = thing{sort: link, text: "/opt/g/nothing.service"}
	}
	if g.maybe(10) {
		if at := path.Join(g.dir(), n); g.disk[at].text == "" {
			g.disk[at] = thing{text: g.text(n)}
		}
	}
}

// target is where an alias in dir leads.
func (g *generator) target(dir string) string {
	n := g.pick(append([]string{"ga.service", "gt@.service", "gmissing.service"}, g.names...))
	if g.maybe(50) {
		return n
	}
	return path.Join(g.pick([]string{dir, etc, usr, lib}), n)
}

func (g *generator) dropIn(n string) {
	of := n
	if unit.Name(n).IsTemplate() && g.maybe(30) {
		of = string(unit.Name(n).WithInstance("one"))
	}
	if g.maybe(8) {
		of = g.pick([]string{"service", "gc-.service", "ga.service", "gt@.service"})
	}
	at := path.Join(g.dir(), of+".d", g.pick([]string{"10-a.conf", "20-b.conf", "30-c.conf", "z.conf", "not-read", ".hidden.conf"}))
	switch k := g.IntN(100); {
	case k < 90:
		g.disk[at] = thing{text: g.text(n)}
	case k < 95:
		g.disk[at] = thing{sort: link, text: "/dev/null"}
	case k < 98:
		g.disk[at] = thing{}
	default:
		g.disk[at] = thing{sort: link, text: "/opt/g/nothing.conf"}
	}
}

// stray leaves a link where a link may be wanted.
func (g *generator) stray() {
	n := g.pick(g.names)
	dir := path.Join(etc, g.pick([]string{"ga.target.wants", "gz.target.wants", "multi-user.target.wants", "gz.target.requires"}))
	if g.maybe(30) {
		dir, n = etc, g.pick([]string{"gal.service", "gal@.service", "gal.socket"})
	}
	to := g.pick([]string{path.Join(usr, n), path.Join(lib, n), path.Join(etc, n), "/opt/g/" + n, "/nowhere/" + n, "/nowhere/else.service", "/dev/null"})
	if g.maybe(30) {
		to = "../" + n
	}
	if _, taken := g.disk[path.Join(dir, n)]; !taken {
		g.disk[path.Join(dir, n)] = thing{sort: link, text: to}
	}
}

// text is what a file of unit n says.
func (g *generator) text(n string) string {
	var b strings.Builder
	if g.maybe(70) {
		b.WriteString("[Unit]\nDescription=of " + g.pick([]string{"one", "two \\\n  three", "é # x"}) + "\n")
	}
	for range 1 + g.IntN(2) {
		if !g.maybe(88) {
			continue
		}
		b.WriteString(g.pick([]string{"[Install]\n", "[Install]\n", "[Install]\n", " [Install] \t\n", "[X-A]\nWantedBy=gno.target\n[Install]\n", "[Install]\n[Install]\n"}))
		for range g.IntN(5) {
			b.WriteString(g.line(n))
		}
	}
	if g.maybe(2) {
		b.WriteString(g.pick([]string{"[Broken\n", "[Bro\"ken]\n", "a=\xff\n", "[X-B]\nc=\ufdd0\n"}))
	}
	s := b.String()
	switch k := g.IntN(100); {
	case k < 3:
		s = strings.ReplaceAll(s, "\n", "\r\n")
	case k < 6:
		s = "\xef\xbb\xbf" + s
	case k < 8:
		s = strings.TrimRight(s, "\n")
	case k < 9:
		s = strings.ReplaceAll(s, "\n", "\r")
	}
	if s == "" {
		return "\n"
	}
	return s
}

// line is one assignment of [Install], with oddities.
func (g *generator) line(n string) string {
	var key string
	var words []string
	switch k := g.IntN(100); {
	case k < 40:
		key, words = "WantedBy", wanted
	case k < 52:
		key, words = "RequiredBy", wanted
	case k < 56:
		key, words = "UpheldBy", wanted
	case k < 74:
		key, words = "Alias", aliases
	case k < 88:
		key, words = "Also", append([]string{"gmissing.service", "gt@%i.service", "ga.service", "gt@.service", "gt@two.service", "g%p.service"}, g.names...)
		if g.maybe(4) {
			words = []string{"bad", "%h.service", `"ga.service"`, `g\a.service`}
		}
	case k < 94:
		return "DefaultInstance=" + g.pick([]string{"d", "one", "a-b", "%H", "%i-x", "%p", "", "two", "%A"}) + "\n"
	case k < 96:
		return g.pick([]string{"# WantedBy=gno.target\n", "; x\n", "\n", "wantedby=gno.target\n", "=gno.target\n", "WantedBy\n"})
	case k < 98:
		return g.pick([]string{"WantedBy=\n", "Alias=\n", "RequiredBy=\n", "Also=\n"})
	default:
		return g.pick([]string{"WantedBy=gm.target \\\n# c\n gn.target\n", "WantedBy=gm.target \\\n\n gn.target\n", "WantedBy=\"gm.target\" 'gn.target'\n", "WantedBy=gm.target \"gn.target\n", "DefaultInstance=a/b\n", "WantedBy=gm.target\\\\\n", "Alias=\"\"\n"})
	}
	line := key + g.pick([]string{"=", "=", "=", " = ", "=\t"})
	if g.maybe(2) {
		words = odd
	}
	for i := range 1 + g.IntN(3) {
		if i > 0 {
			line += g.pick([]string{" ", "  ", " \\\n\t"})
		}
		at := ""
		if unit.Name(n).Instance() != "" || unit.Name(n).IsTemplate() {
			at = "@"
		}
		line += strings.NewReplacer("NAME", n, "TYPE", unit.Name(n).Type(), "%AT%i.", at+strings.Repeat("%i", len(at))+".", "%ATone.", at+strings.Repeat("one", len(at))+".", "%AT", at).Replace(g.pick(words))
	}
	return line + "\n"
}

var wanted = []string{
	"multi-user.target", "multi-user.target", "ga.target", "gz.target", "gz.target", "gb.service", "gx@.target", "gx@%i.target", "gx@one.target", "g-%p.target", "g-%N.target",
	"gn-%n.target", "gj-%j.target", "g-%H-%m.target", "g-%b.target", "g-%a-%l-%q-%v.target", "g-%o-%w-%u-%U-%g-%G.target", "g-%A%B%M%W.target", "-g.target",
	`"gq.target"`, `gq\x2d.target`, "gt@.service", "g@a@b.target", "g.scope",
}

// odd are words that are mostly wrong, wherever they stand.
var odd = []string{
	"%i.target", "g%%.target", "g%h.target", "bad", "/g.target", "%h.service", "gal.slice", "-gal.service", "../x/NAME", "gw.target.upholds/NAME", "gw.target.wants/gno.service", "gal.socket", "gal.service", "gal@.service",
}

var aliases = []string{
	"gal%AT.TYPE", "gal%AT.TYPE", "gal2%AT.TYPE", "gal%AT%i.TYPE", "gal%ATone.TYPE", "NAME", "-gal-%p%AT.TYPE", "ga.service", "gt@.service", "gw.target.wants/NAME", "gw@.target.requires/NAME", "gw.target.wants/gt@one.service", "./gw.target.wants//NAME",
}

func (s scene) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ask %s\n", s.ask)
	for p, t := range s.disk {
		fmt.Fprintf(&b, "-- %s %d\n%q\n", p, t.sort, t.text)
	}
	return b.String()
}
