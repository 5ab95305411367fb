package install

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first generated unit; 0 takes one from the clock")
	scenes = flag.Int("scenes", 200, "how many units to generate")
	record = flag.Bool("record", false, "write what the manager does with the named scenes to testdata/named.golden")
	inside = flag.Bool("inside", false, "this is the node")
)

// atNode reports whether the test runs in a lab node. Otherwise it has run there,
// with the same flags, and the test has to return.
func atNode(t *testing.T) bool {
	if *inside {
		return true
	}
	n := lab.Start(t, lab.Options{})
	n.RunTest(t, lab.Self(t), "-test.run", "^"+t.Name()+"$", "-inside", fmt.Sprintf("-seed=%d", *seed), fmt.Sprintf("-scenes=%d", *scenes))
	if data, err := n.ReadFile("/tmp/golden"); err == nil && *record {
		require.NoError(t, os.WriteFile("testdata/named.golden", data, 0o644))
	}
	return false
}

// onceWrong are seeds of scenes that were read otherwise than systemd does.
var onceWrong = []uint64{100146, 102295, 105352}

// TestManager enables generated units with a real manager and compares the
// links that it makes, path by path and target by target.
func TestManager(t *testing.T) {
	if !atNode(t) {
		return
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	c := comparison{facts: specifiers(t), search: unitPath(t), version: version(t)}
	for _, s := range onceWrong {
		c.compare(t, fmt.Sprintf("seed %d", s), generate(s))
	}
	for i := range *scenes {
		c.compare(t, fmt.Sprintf("seed %d", first+uint64(i)), generate(first+uint64(i)))
	}
	fmt.Printf("%d mismatches out of %d units, from seed %d; %d links made, %d calls answered with an error\n", c.bad, c.all, first, c.links, c.failed)
	require.Greater(t, c.links, *scenes)
}

// TestManagerNamed does so with what was tried by hand.
func TestManagerNamed(t *testing.T) {
	if !atNode(t) {
		return
	}
	c := comparison{facts: specifiers(t), search: unitPath(t), version: version(t)}
	var golden strings.Builder
	for i, n := range namedScenes() {
		links, answer := c.compare(t, n.name, n.scene)
		golden.WriteString(outcomeText(i, n, links, answer == nil))
	}
	fmt.Printf("%d mismatches out of %d scenes; %d links made, %d calls answered with an error\n", c.bad, c.all, c.links, c.failed)
	require.NoError(t, os.WriteFile("/tmp/golden", []byte(golden.String()), 0o644))
}

// comparison holds Links against one manager.
type comparison struct {
	facts                   Specifiers
	search                  []string
	version                 int
	all, bad, failed, links int
}

func (c *comparison) options(s scene) Options {
	o := s.disk.options()
	o.Specifiers, o.Search, o.Version = c.facts, c.search, c.version
	if o.is247() {
		parseText = unit.ParseFile247
	}
	o.Lookup = func(n unit.Name) (Unit, bool, error) { return s.disk.lookup(c.search, n) }
	return o
}

func (c *comparison) compare(t *testing.T, name string, s scene) (map[string]string, error) {
	o := c.options(s)
	r, err := Links(s.ask, o)
	require.NoError(t, err)
	want, good := s.disk.after(r, o)
	got, answer := enable(t, s)
	if o.is247() { // it keeps the spelling of a link that it followed
		got, want = spelled(got), spelled(want)
	}
	c.all++
	c.links += len(got) - len(s.disk.links())
	if answer != nil {
		c.failed++
	}
	if diff := cmp.Diff(got, want); diff != "" || good != (answer == nil) {
		c.bad++
		t.Errorf("%s: %v\n(-systemd +ours)\n%s\nsystemd answered: %v\nours: %v", name, s, diff, answer, r.Problems)
	}
	return got, answer
}

// spelled writes targets one way, where /lib is a link to /usr/lib.
func spelled(links map[string]string) map[string]string {
	for p, target := range links {
		if strings.HasPrefix(target, lib+"/") {
			links[p] = "/usr" + target
		}
	}
	return links
}

// enable puts a scene on disk, enables its unit, and returns the links that
// there are then and the manager's error.
func enable(t *testing.T, s scene) (links map[string]string, answer error) {
	before := tree(t)
	onDisk(t, s, func() {
		var out string
		if out, answer = ask("EnableUnitFiles", "asbb", "1", "--", string(s.ask), "false", "false"); answer != nil {
			require.Contains(t, out, "Call failed: ")
			answer = errors.New(out)
		}
		links = map[string]string{}
		for p, target := range tree(t) {
			if _, old := before[p]; !old && target != "" && below(p, etc) {
				links[p] = target
			}
		}
	})
	return links, answer
}

// onDisk runs f while a scene is on disk, which is as before afterwards.
func onDisk(t *testing.T, s scene, f func()) {
	before := tree(t)
	require.NoError(t, s.disk.write())
	defer func() {
		for p := range tree(t) {
			if _, ok := before[p]; !ok {
				require.NoError(t, os.RemoveAll(p))
			}
		}
	}()
	f()
}

// ask calls a method of the manager.
func ask(args ...string) (string, error) {
	args = append([]string{"call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"}, args...)
	out, err := exec.Command("busctl", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// tree returns all that stands in the folders that scenes write to, with the
// targets of links.
func tree(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, dir := range []string{etc, usr, run, loc, gen, "/opt/g"} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && p != dir {
				all[p], _ = os.Readlink(p)
			}
			return err
		}))
	}
	return all
}

func property(t *testing.T, name string) string {
	out, err := exec.Command("busctl", "get-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// unitPath asks the manager for its search path.
func unitPath(t *testing.T) []string {
	var dirs []string
	for _, word := range strings.Fields(property(t, "UnitPath")) {
		if dir, err := strconv.Unquote(word); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func version(t *testing.T) int {
	v := 0
	_, err := fmt.Sscanf(property(t, "Version"), "s \"%d", &v)
	require.NoError(t, err)
	return v
}

// specifiers reads the facts of this machine.
func specifiers(t *testing.T) Specifiers {
	read := func(p string) string {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		return strings.TrimSpace(string(data))
	}
	os := map[string]string{}
	for line := range strings.Lines(read("/etc/os-release")) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		os[k] = strings.Trim(v, `"`)
	}
	host := read("/proc/sys/kernel/hostname")
	return Specifiers{
		Arch: "x86-64", BootID: strings.ReplaceAll(read("/proc/sys/kernel/random/boot_id"), "-", ""), MachineID: read("/etc/machine-id"),
		Hostname: host, PrettyHost: host, User: "root", UID: "0", Group: "root", GID: "0", KernelRelease: read("/proc/sys/kernel/osrelease"),
		OS: os["ID"], OSVersion: os["VERSION_ID"], Variant: os["VARIANT_ID"], BuildID: os["BUILD_ID"], ImageID: os["IMAGE_ID"], ImageVersion: os["IMAGE_VERSION"],
	}
}

// TestManagerPresence holds presences against a manager.
func TestManagerPresence(t *testing.T) {
	if !atNode(t) {
		return
	}
	for _, p := range presences {
		links, answer := enable(t, scene{presence(p.target), "ga.service"})
		lax := p.laxer
		if o := (Options{Version: version(t)}); o.is247() {
			lax = p.is247
		}
		require.Equal(t, lax, answer == nil, "%s: %v", p.target, answer)
		require.Equal(t, p.target, links[etc+"/gal.service"])
	}
}

// TestManagerKinds compares Kind with the manager's state of unit files.
func TestManagerKinds(t *testing.T) {
	if !atNode(t) {
		return
	}
	kinds := map[string]Kind{"static": Static, "indirect": Indirect, "disabled": Enableable, "masked": Masked, "generated": Generated, "transient": Generated}
	c := comparison{facts: specifiers(t), search: unitPath(t), version: version(t)}
	told := 0
	for i := range *scenes {
		s := generate(*seed + uint64(i))
		r, err := Links(s.ask, c.options(s))
		require.NoError(t, err)
		var state string
		onDisk(t, s, func() { state, _ = ask("GetUnitFileState", "s", "--", string(s.ask)) })
		state = strings.Trim(state, "s \"\n")
		if state == "indirect" && r.Kind != Indirect { // also said of a unit of which another name or instance is there
			continue
		}
		want, known := kinds[state]
		if !known || r.Name != s.ask { // enabled by chance, an alias, linked, bad
			continue
		}
		told++
		require.Equal(t, want, r.Kind, "seed %d: %v\n%v", *seed+uint64(i), s, r.Problems)
	}
	fmt.Printf("%d kinds of %d units compared\n", told, *scenes)
	require.Greater(t, told, *scenes/2)
}
