package install

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first generated unit; 0 takes one from the clock")
	scenes = flag.Int("scenes", 200, "how many units to generate")
	inside = flag.Bool("inside", false, "this is the node")
)

// atNode reports whether the test runs in a lab node. Otherwise it has run there,
// with the same flags, and the test has to return.
func atNode(t *testing.T) bool {
	if *inside {
		return true
	}
	self := "/proc/self/exe"
	root := os.Getenv(lab.RootEnv)
	if root != "" {
		self = lab.BuildTest(t, ".")
	}
	lab.Start(t, lab.Options{Root: root}).RunTest(t, self, "-test.run", "^"+t.Name()+"$", "-inside",
		fmt.Sprintf("-seed=%d", *seed), fmt.Sprintf("-scenes=%d", *scenes))
	return false
}

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
	facts := specifiers(t)
	bad, failed, links := 0, 0, 0
	for i := range *scenes {
		s := generate(first + uint64(i))
		o := s.disk.options()
		o.Specifiers = facts
		r, err := Links(s.ask, o)
		require.NoError(t, err)
		want, good := s.disk.after(r, o)
		got, answer := enable(t, s)
		links += len(got) - len(s.disk.links())
		if answer != nil {
			failed++
		}
		if diff := cmp.Diff(got, want); diff != "" || good != (answer == nil) {
			bad++
			t.Errorf("seed %d: %v\n%s (-systemd +ours)\n%s\nsystemd answered: %v\nours: %v", first+uint64(i), s, diff, "", answer, r.Problems)
		}
	}
	fmt.Printf("%d mismatches out of %d units, from seed %d; %d links made, %d calls answered with an error\n", bad, *scenes, first, links, failed)
	require.Greater(t, links, *scenes)
}

// enable puts a scene on disk, enables its unit, and returns the links that
// there are then and the manager's error. The disk is then as before.
func enable(t *testing.T, s scene) (map[string]string, error) {
	before := tree(t)
	require.NoError(t, s.disk.write())
	defer func() {
		for p := range tree(t) {
			if _, ok := before[p]; !ok {
				require.NoError(t, os.RemoveAll(p))
			}
		}
	}()
	out, answer := exec.Command("busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"EnableUnitFiles", "asbb", "1", "--", string(s.ask), "false", "false").CombinedOutput()
	if answer != nil {
		require.Contains(t, string(out), "Call failed: ")
		answer = fmt.Errorf("%s", bytes.TrimSpace(out))
	}
	links := map[string]string{}
	for p, target := range tree(t) {
		if _, old := before[p]; !old && target != "" && below(p, etc) {
			links[p] = target
		}
	}
	return links, answer
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
