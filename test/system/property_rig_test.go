package system

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// lib is where a vendor's unit files lie.
const lib = "/usr/lib/systemd/system"

// cell is one way in which a unit may stand before anything is declared of it.
type cell struct{ kind, mask, links, activity string }

func (c cell) String() string {
	return fmt.Sprintf("%-8s %-8s %-8s %s", c.kind, c.mask, c.links, c.activity)
}

// kinds are the types of units that a lab node can have started: its kernel is this
// machine's, whose swap and automounts are none of its business.
var kinds = strings.Fields("service oneshot socket timer path target slice mount")

// fails are the kinds that can fail to start.
var fails = strings.Fields("service oneshot socket mount")

// cells are all ways that there are.
func cells() []cell {
	var all []cell
	for _, kind := range kinds {
		for _, mask := range []string{"unmasked", "masked"} {
			for _, links := range []string{"disabled", "enabled", "stale"} {
				for _, activity := range []string{"inactive", "active", "failed"} {
					if activity != "failed" || slices.Contains(fails, kind) {
						all = append(all, cell{kind, mask, links, activity})
					}
				}
			}
		}
	}
	return all
}

// probe is one unit of the test: how it stands, and what is declared of it.
type probe struct {
	cell
	name, unit string
	bare       bool // there is no unit file at all
	vendor     bool // its file lies below /usr/lib
	runtime    bool // its mask lies below /run
	dropins    []string

	content         string // declared; "" for none
	ensure          string // "" for none, as of the others
	enabled, masked string
	onChange        string
}

// of makes probes from a seed: the cells in turn, all else by chance.
func of(seed uint64, from, n int) []*probe {
	rnd := rand.New(rand.NewPCG(seed, uint64(from)))
	all, list := []*probe(nil), cells()
	chance := func(one int) bool { return rnd.IntN(one) == 0 }
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	for i := range n {
		s := &probe{cell: list[(from+i)%len(list)], name: fmt.Sprintf("p%04d", from+i)}
		s.unit = unitOf(s.name, s.kind)
		if s.activity == "inactive" && s.mask == "unmasked" && s.links != "enabled" && chance(3) {
			s.bare = true
		}
		s.vendor = s.mask == "masked" || chance(3)
		s.runtime = s.mask == "masked" && chance(3)
		for _, d := range []string{"10-a.conf", "90-z.conf"} {
			if !s.bare && chance(4) {
				s.dropins = append(s.dropins, d)
			}
		}
		if s.bare || !chance(3) {
			s.content = contentOf(s.name, s.kind, rnd.IntN(2) == 0, 100000+rnd.IntN(3), chance(12))
		}
		switch s.masked = pick("", "", "false", "true"); s.masked {
		case "true":
			s.ensure, s.enabled = pick("", "stopped"), pick("", "false")
		default:
			s.ensure, s.enabled = pick("", "running", "running", "stopped", "restarted"), pick("", "true", "false")
		}
		if s.content+s.ensure+s.enabled+s.masked == "" {
			s.masked = "false" // or it would declare nothing
		}
		s.onChange = pick("", "", "none", "restart")
		all = append(all, s)
	}
	return all
}

func unitOf(name, kind string) string {
	switch kind {
	case "oneshot":
		return name + ".service"
	case "mount":
		return "mnt-" + name + ".mount"
	}
	return name + "." + kind
}

// contentOf is a unit file; install says whether it can be enabled, and bad that its
// start fails.
func contentOf(name, kind string, install bool, n int, bad bool) string {
	run, want := "/bin/sleep "+fmt.Sprint(n), "multi-user.target"
	text := ""
	switch kind {
	case "service":
		text = "[Service]\nExecStart=" + run + "\n"
	case "oneshot":
		text = fmt.Sprintf("[Service]\nType=oneshot\nRemainAfterExit=yes\nEnvironment=N=%d\nExecStart=/bin/true\n", n)
	case "socket":
		text, want = fmt.Sprintf("[Socket]\nListenStream=/run/%s\nService=sink.service\nSocketMode=0600\nBacklog=%d\n", name, n%100+1), "sockets.target"
	case "timer":
		text, want = fmt.Sprintf("[Timer]\nOnCalendar=yearly\nUnit=sink.service\nAccuracySec=%d\n", n), "timers.target"
	case "path":
		text, want = "[Path]\nPathExists=/run/never\nUnit=sink.service\n", "paths.target"
	case "slice":
		text, want = fmt.Sprintf("[Slice]\nTasksMax=%d\n", n), "slices.target"
	case "mount":
		text, want = fmt.Sprintf("[Mount]\nWhat=tmpfs\nWhere=/mnt/%s\nType=tmpfs\nOptions=size=%dk\n", name, n), "local-fs.target"
	}
	text = fmt.Sprintf("[Unit]\nDescription=%s %d\n", name, n) + text
	if bad {
		switch kind {
		case "service", "oneshot":
			text = strings.NewReplacer(run, "/bin/false", "/bin/true", "/bin/false").Replace(text)
		case "socket":
			text += "ExecStartPre=/bin/false\n"
		case "mount":
			text = strings.Replace(text, "Options=", "Options=nonsense,", 1)
		}
	}
	if install {
		text += "[Install]\nWantedBy=" + want + "\n"
	}
	return text
}

func (s *probe) file() string {
	if s.vendor {
		return path.Join(lib, s.unit)
	}
	return path.Join(etc, s.unit)
}

func (s *probe) target() string {
	_, rest, ok := strings.Cut(contentOf(s.name, s.kind, true, 1, false), "WantedBy=")
	if !ok {
		return ""
	}
	return strings.TrimSpace(rest)
}

// links are those by which it is enabled, or was once.
func (s *probe) linkPaths() []string {
	switch s.links {
	case "enabled":
		return []string{path.Join(etc, s.target()+".wants", s.unit)}
	case "stale":
		return []string{path.Join(etc, "graphical.target.requires", s.unit)}
	}
	return nil
}

// script makes the starting states, the manager's part of it included.
func script(all []*probe) string {
	var b strings.Builder
	b.WriteString("set -e\nmkdir -p /mnt\n")
	put := func(file, text string) {
		fmt.Fprintf(&b, "mkdir -p %s\ncat > %s <<'EOF'\n%sEOF\n", path.Dir(file), file, text)
	}
	var start, broken []string
	for _, s := range all {
		if !s.bare {
			put(s.file(), contentOf(s.name, s.kind, s.links == "enabled", 100000, s.activity == "failed"))
		}
		for _, d := range s.dropins {
			put(path.Join(etc, s.unit+".d", d), "[Unit]\nDocumentation=man:"+s.name+"\n")
		}
		for _, l := range s.linkPaths() {
			fmt.Fprintf(&b, "mkdir -p %s\nln -s %s %s\n", path.Dir(l), s.file(), l)
		}
		if s.kind == "mount" {
			fmt.Fprintf(&b, "mkdir -p /mnt/%s\n", s.name)
		}
		switch s.activity {
		case "active":
			start = append(start, s.unit)
		case "failed":
			broken = append(broken, s.unit)
		}
	}
	b.WriteString("systemctl daemon-reload\n")
	if len(start) > 0 {
		b.WriteString("systemctl start " + strings.Join(start, " ") + "\n")
	}
	if len(broken) > 0 {
		b.WriteString("systemctl start " + strings.Join(broken, " ") + " 2>/dev/null || true\n")
	}
	for _, s := range all {
		if s.mask == "masked" {
			dir := etc
			if s.runtime {
				dir = "/run/systemd/system"
			}
			fmt.Fprintf(&b, "mkdir -p %[1]s\nln -s /dev/null %[1]s/%[2]s\n", dir, s.unit)
		}
	}
	b.WriteString("systemctl daemon-reload\n")
	return b.String()
}

// document is what is declared of s.
func (s *probe) document() string {
	fields := "unit: " + s.unit + "\n"
	for _, f := range [][2]string{{"ensure", s.ensure}, {"enabled", s.enabled}, {"masked", s.masked}, {"on_change", s.onChange}} {
		if f[1] != "" && (f[0] != "on_change" || s.masked != "true") {
			fields += f[0] + ": " + f[1] + "\n"
		}
	}
	return text{s.name, fields, s.content}.String()
}

// mayFail says why the declaration need not come true; "" when it must.
func (s *probe) mayFail() string {
	starts := s.ensure == "running" || s.ensure == "restarted"
	held := s.mask == "masked" && s.masked == ""
	switch {
	case s.bare && s.content == "":
		return "there is no such unit"
	case held && (starts || s.enabled == "true" || s.content != ""):
		return "it is masked, and nothing is said of that"
	case s.content != "" && (strings.Contains(s.content, "/bin/false") || strings.Contains(s.content, "nonsense")):
		return "what is declared fails"
	case s.content == "" && s.activity == "failed":
		return "what is there fails"
	case s.enabled == "true" && s.content != "" && !strings.Contains(s.content, "[Install]"), s.enabled == "true" && s.content == "" && s.links != "enabled":
		return "there is nothing to enable"
	}
	return ""
}
