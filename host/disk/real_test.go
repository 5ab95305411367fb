package disk

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/unit"
	"stead/test/lab"
)

// TestSearchIsSystemds lays out many units in every way that the search path
// allows, and compares what we say that systemd reads with what it reads.
func TestSearchIsSystemds(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	g := &layouts{random: rand.New(rand.NewPCG(7, 11)), files: make(map[string]string)}
	for i := range 150 {
		g.family(i)
	}
	g.files[etc+"/service.d/50-all.conf"] = "[Unit]\n"
	g.files["/usr/lib/systemd/system/service.d/40-all.conf"] = "[Unit]\n"
	g.files["/run/systemd/system/target.d/all.conf"] = "[Unit]\n"
	for _, p := range slices.Sorted(maps.Keys(g.files)) {
		if err := lay("/", p, g.files[p]); err != nil {
			delete(g.files, p) // what is above it is no folder
		}
	}
	run(t, "systemctl", "daemon-reload")
	real := ask(t, g.units)
	d, err := New(Options{UnitPath: strings.Fields(strings.TrimPrefix(run(t, "systemctl", "show", "-p", "UnitPath"), "UnitPath=")), Version: version(t)})
	require.NoError(t, err)
	queries := make([]plan.Query, len(g.units))
	for i, n := range g.units {
		queries[i].Unit = n
	}
	looks, err := d.Look(t.Context(), queries)
	require.NoError(t, err)
	states := make(map[string]int)
	for i, n := range g.units {
		states[real[i].load]++
		got := said{load: real[i].load, fragment: looks[i].Fragment, dropins: looks[i].DropIns}
		if len(got.dropins) > 0 {
			states["with drop-ins"]++
		}
		if got.fragment != "" && !strings.HasSuffix(got.fragment, "/"+string(n)) {
			states["by another name"]++
		}
		if real[i].load == "masked" { // 257 reads no drop-ins of it, and 247 says that /dev/null is its file: nothing depends on either
			got = real[i]
		}
		if d.o.Version < 251 && n == "other83@one.service" {
			// 247 alone reads no drop-ins of a template for its alias's instance, of which the template has a file of its own; ours lists them, and a
			// reload is owed once.
			continue
		}
		if !slices.Equal(got.dropins, real[i].dropins) || got.fragment != real[i].fragment || (looks[i].Mask != "") != (real[i].load == "masked") {
			t.Errorf("%s:\nsystemd: %+v\nwe:      %+v, mask %q\n%s", n, real[i], got, looks[i].Mask, g.about(n))
		}
	}
	t.Logf("%d units of %d files: %v", len(g.units), len(g.files), states)
	for _, s := range []string{"loaded", "masked", "not-found", "with drop-ins", "by another name"} {
		require.Greater(t, states[s], 10, s)
	}
}

// TestSystemdReadsWhatWasApplied has a unit with a drop-in and links put down, and
// taken away again.
func TestSystemdReadsWhatWasApplied(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	facts, err := HostSpecifiers("/")
	require.NoError(t, err)
	d, err := New(Options{UnitPath: searchPath(), Specifiers: facts})
	require.NoError(t, err)
	s := enabled(service("web.service", plain+"[Install]\nWantedBy=multi-user.target\nAlias=www.service %H-%b.service\n"), true)
	s.DropIns = map[string]string{"10-b.conf": "[Unit]\nDescription=by drop-in\n"}
	q := []plan.Query{{Unit: s.Unit, Service: s}}
	look := func() plan.Disk {
		all, err := d.Look(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, all[0].Errs)
		return all[0]
	}
	var puts, takes []plan.Change
	for _, w := range look().Wants {
		puts = append(puts, plan.Change{Path: w.Path, Entry: w.Entry, Content: w.Content})
		takes = append(takes, plan.Change{Path: w.Path, Entry: absent()})
	}
	require.Len(t, puts, 5)
	before := run(t, "find", etc, "-printf", "%p %y %l\n")
	r := d.Apply(t.Context(), puts)
	run(t, "systemctl", "daemon-reload")
	require.Equal(t, "by drop-in", run(t, "systemctl", "show", "-P", "Description", "web.service"))
	require.Equal(t, "enabled", run(t, "systemctl", "is-enabled", "web.service"))
	names := strings.Fields(run(t, "systemctl", "show", "-P", "Names", "www.service"))
	slices.Sort(names)
	require.Equal(t, []string{facts.Hostname + "-" + facts.BootID + ".service", "web.service", "www.service"}, names)
	is, now := ask(t, []unit.Name{"www.service"})[0], look()
	require.Equal(t, said{"loaded", now.Fragment, now.DropIns}, is)
	require.Len(t, now.OwnLinks, 3)

	for _, err := range d.Apply(t.Context(), takes).Errs {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, r.Made, d.RemoveDirs(r.Made))
	require.Equal(t, before, run(t, "find", etc, "-printf", "%p %y %l\n"))
}

// said is what systemd says of a unit.
type said struct {
	load, fragment string
	dropins        []string
}

func ask(t *testing.T, units []unit.Name) []said {
	t.Helper()
	args := []string{"show", "-p", "LoadState,FragmentPath,DropInPaths", "--"}
	for _, n := range units {
		args = append(args, string(n))
	}
	var all []said
	for block := range strings.SplitSeq(strings.TrimSpace(run(t, "systemctl", args...)), "\n\n") {
		var s said
		for line := range strings.Lines(block) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
			case "LoadState":
				s.load = value
			case "FragmentPath":
				s.fragment = value
			case "DropInPaths":
				for _, p := range strings.Fields(value) {
					if plain, err := strconv.Unquote(p); err == nil {
						p = plain
					}
					s.dropins = append(s.dropins, p)
				}
			}
		}
		all = append(all, s)
	}
	require.Len(t, all, len(units))
	return all
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// layouts makes up units and what is on disk of them.
type layouts struct {
	random *rand.Rand
	files  map[string]string
	units  []unit.Name
}

func pick[T any](g *layouts, of ...T) T { return of[g.random.IntN(len(of))] }

func (g *layouts) chance(percent int) bool { return g.random.IntN(100) < percent }

// folder is one of the search path, the usual one more often.
func (g *layouts) folder() string {
	return pick(g, etc, etc, etc, "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
		"/usr/local/lib/systemd/system", "/etc/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system.attached")
}

// family lays out units whose names have to do with each other.
func (g *layouts) family(i int) {
	kind := pick(g, "service", "service", "service", "socket", "target", "timer", "path", "slice", "mount")
	stem := fmt.Sprintf("lay%d", i)
	if kind != "mount" && kind != "slice" {
		stem += pick(g, "", "-a", "-a-b", "-a-", ".x", `\x2dz`)
	}
	names := []string{stem + "." + kind}
	other := fmt.Sprintf("other%d", i)
	switch {
	case kind == "mount" || kind == "slice":
	case g.chance(40):
		names = []string{stem + "@one." + kind, stem + "@two-x." + kind}
		g.fragment(stem+"@."+kind, other+"@."+kind)
		if g.chance(50) {
			names = append(names, other+"@one."+kind)
			g.fragment(other+"@."+kind, stem+"@."+kind)
		}
	case g.chance(50):
		names = append(names, other+"."+kind)
	}
	for j, n := range names {
		g.units = append(g.units, unit.Name(n))
		if !strings.Contains(n, "@") || g.chance(30) {
			g.fragment(n, names[(j+1)%len(names)])
		}
		for _, v := range variants(n) {
			if g.chance(45) {
				g.dropins(v)
			}
		}
	}
}

// fragment lays out up to two entries of a name.
func (g *layouts) fragment(name, other string) {
	in := g.folder()
	for range 1 + g.random.IntN(2) {
		p := in + "/" + name
		switch g.random.IntN(14) {
		case 0:
			g.files[p] = "-> /dev/null"
		case 1:
			g.files[p] = ""
		case 2:
			g.files[p] = "-> " + other
		case 3:
			g.files[p] = "-> " + g.folder() + "/" + other
		case 4:
			g.files["/opt/"+name] = text(name)
			g.files[p] = "-> /opt/" + name
		case 5:
			g.files["/opt/else-"+name] = text(name)
			g.files[p] = "-> /opt/else-" + name
		case 6:
			g.files[p] = pick(g, "-> /opt/nowhere/"+name, "-> nowhere.service", "-> nowhere-"+name, "-> ../system/"+other, "-> "+name)
		case 7:
			g.files[p+"/"] = ""
		default:
			g.files[p] = text(name)
		}
		in = g.folder()
	}
}

// dropins lays out a drop-in folder of a name.
func (g *layouts) dropins(name string) {
	in := g.folder() + "/" + name + ".d"
	switch g.random.IntN(10) {
	case 0:
		g.files[in] = "-> /opt/" + name + ".conf.d"
		in = "/opt/" + name + ".conf.d"
	case 1:
		g.files[in] = pick(g, "no folder", "-> /opt/nowhere", "-> /dev/null")
		return
	}
	for range 1 + g.random.IntN(3) {
		conf := in + "/" + pick(g, "10-a", "20-b", "30", ".hidden", "x+y") + ".conf"
		switch g.random.IntN(9) {
		case 0:
			g.files[conf] = ""
		case 1:
			g.files[conf] = "-> /dev/null"
		case 2:
			g.files[conf] = "-> /opt/nowhere.conf"
		case 3:
			g.files[conf+"~"] = "[Unit]\n"
		case 4:
			g.files[in+"/README"] = "[Unit]\n"
		default:
			g.files[conf] = "[Unit]\nDescription=" + conf + "\n"
		}
	}
}

func text(name string) string {
	switch unit.Name(name).Type() {
	case "service":
		return plain
	case "socket":
		return "[Socket]\nListenStream=/run/" + name + "\n"
	case "timer":
		return "[Timer]\nOnBootSec=1h\n"
	case "path":
		return "[Path]\nPathExists=/nope\n"
	case "mount":
		return "[Mount]\nWhat=tmpfs\nWhere=/" + unit.Name(name).Stem() + "\n"
	}
	return "[Unit]\n"
}

// about lists the files that have to do with a unit.
func (g *layouts) about(n unit.Name) string {
	number := strings.TrimLeft(string(n), "layother")
	for i, c := range number {
		if c < '0' || c > '9' {
			number = number[:i]
			break
		}
	}
	var all strings.Builder
	for _, p := range slices.Sorted(maps.Keys(g.files)) {
		base := strings.TrimPrefix(p[strings.LastIndex(strings.TrimSuffix(strings.Split(p, ".d/")[0], "/"), "/")+1:], "else-")
		for _, f := range []string{"lay" + number, "other" + number} {
			if rest, ok := strings.CutPrefix(base, f); ok && (rest == "" || rest[0] < '0' || rest[0] > '9') {
				fmt.Fprintf(&all, "  %s: %.40q\n", p, g.files[p])
			}
		}
	}
	return all.String()
}

// version is the number of the running systemd.
func version(t *testing.T) (number int) {
	_, err := fmt.Sscanf(run(t, "systemctl", "show", "-P", "Version"), "%d", &number)
	require.NoError(t, err)
	return number
}
