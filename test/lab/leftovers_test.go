package lab_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// It runs in a node, where nothing else goes on and all that is there before must be all that is there after.
func TestNothingIsLeftBehind(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	// What nodes outside leave there for a while shows through the overlay.
	require.NoError(t, syscall.Mount("none", "/var/tmp", "tmpfs", 0, ""))
	before := everything(t)
	w, err := lab.MakeNetwork(t.Context(), lab.NetworkOptions{Name: "w"})
	require.NoError(t, err)
	kept, err := lab.MakeNetwork(t.Context(), lab.NetworkOptions{Name: "kept", Keep: true})
	require.NoError(t, err)
	a, err := lab.Boot(t.Context(), lab.Options{Name: "a", Networks: []*lab.Network{w, kept}})
	require.NoError(t, err)
	b, err := lab.Boot(t.Context(), lab.Options{Name: "b", Keep: true, Networks: []*lab.Network{w}})
	require.NoError(t, err)
	require.Greater(t, len(everything(t)), len(before)+20, "the look would see them")
	require.NoError(t, a.Reboot(t.Context()))
	require.NoError(t, b.PowerCut(t.Context()))
	require.NoError(t, b.PowerOn(t.Context()))
	require.NoError(t, b.PowerCut(t.Context()))
	a.Run(t, "systemd-run", "--unit=busy", "-p", "PrivateTmp=yes", "-p", "KillSignal=SIGCONT", "sleep", "300")
	require.NoError(t, a.Down(t.Context()))
	require.NoError(t, w.Cut(t.Context(), b))
	require.NoError(t, w.Down(t.Context()))
	require.NoError(t, b.Down(t.Context()))
	require.NoError(t, kept.Down(t.Context()))
	require.NoError(t, a.Down(t.Context()), "it may be taken down twice")
	_, err = lab.Boot(t.Context(), lab.Options{Name: "c", Root: "/proc"})
	require.Error(t, err)

	after := everything(t)
	for end := time.Now().Add(10 * time.Second); !slices.Equal(before, after) && time.Now().Before(end); after = everything(t) {
		time.Sleep(5 * time.Millisecond)
	}
	require.Empty(t, cmp.Diff(before, after))
}

// everything is what nodes and networks could leave: mounts, cgroups, namespaces, processes, interfaces, and the files of the folders they use.
func everything(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		seen["mount "+line] = true
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/var/tmp", "/tmp"} {
		require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if d.IsDir() || dir != "/sys/fs/cgroup" {
				seen["path "+p] = true
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	interfaces, err := filepath.Glob("/sys/class/net/*")
	require.NoError(t, err)
	for _, i := range interfaces {
		seen["interface "+i] = true
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range procs {
		comm, _ := os.ReadFile(p + "/comm")
		seen[fmt.Sprintf("process %s %s", p, comm)] = true
		spaces, _ := filepath.Glob(p + "/ns/*")
		for _, ns := range spaces {
			to, _ := os.Readlink(ns)
			seen["namespace "+to] = true
		}
	}
	var all []string
	for s := range seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func TestNodeGoesWithTheProcessThatBootedIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodes")
	owner := bootElsewhere(t, dir)
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	require.Equal(t, lab.Up, n.Condition())
	_, err = lab.Boot(t.Context(), lab.Options{Name: "other", Dir: dir})
	require.ErrorContains(t, err, fmt.Sprintf("of process %d, which still runs", owner.Pid))
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, swept, "other")

	require.NoError(t, owner.Kill())
	within(t, func() bool { return n.PID() == 0 }, "its PID 1 lives on")
	within(t, func() bool { _, err := os.Stat(dir); return errors.Is(err, fs.ErrNotExist) }, "its state folder stays")
	within(t, func() bool { return len(labCgroups(t, "other")) == 0 }, "its cgroup stays")
}

func TestNetworkGoesWithTheProcessThatMadeIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodes")
	owner := bootElsewhere(t, dir, "LAB_TEST_NETWORK=w")
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	w, err := lab.OpenNetwork(dir, "w")
	require.NoError(t, err)
	require.Equal(t, lab.Joined, w.Link(n))
	_, err = lab.MakeNetwork(t.Context(), lab.NetworkOptions{Name: "w", Dir: dir})
	require.ErrorContains(t, err, fmt.Sprintf("of process %d, which still runs", owner.Pid))
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, swept, "net.w")

	require.NoError(t, owner.Kill())
	within(t, func() bool { _, err := os.Stat(dir); return errors.Is(err, fs.ErrNotExist) }, "its state folder stays")
	within(t, func() bool { return len(labCgroups(t, "net.w")) == 0 }, "its cgroup stays")
}

func TestKeptNetworkOutlivesTheProcessThatMadeIt(t *testing.T) {
	dir := t.TempDir()
	owner := bootElsewhere(t, dir, "LAB_TEST_NETWORK=w", "LAB_TEST_KEEP=1")
	require.NoError(t, owner.Kill())
	owner.Wait()
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, swept, "net.w")
	nets, err := lab.Networks(dir)
	require.NoError(t, err)
	require.Len(t, nets, 1)
	require.Equal(t, lab.Up, nets[0].Condition)
	require.Equal(t, "other", nets[0].Ports[0].Hostname)
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	w, err := lab.OpenNetwork(dir, "w")
	require.NoError(t, err)
	require.NoError(t, w.Cut(t.Context(), n))
	nets, err = lab.Networks(dir)
	require.NoError(t, err)
	require.Equal(t, lab.Severed, nets[0].Ports[0].Link)
	require.NoError(t, n.Down(t.Context()))
	nets, err = lab.Networks(dir)
	require.NoError(t, err)
	require.Empty(t, nets[0].Ports, "a node that is gone is still attached")
	require.NoError(t, w.Down(t.Context()))
	_, err = lab.OpenNetwork(dir, "w")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestSweepRemovesNetworksThatADeadProcessLeft(t *testing.T) {
	dir := t.TempDir()
	owner := bootElsewhere(t, dir, "LAB_TEST_NETWORK=w")
	killKeeper(t, dir, "net.w")
	require.NoError(t, owner.Kill())
	owner.Wait()
	within(t, func() bool { _, err := lab.Open(dir, "other"); return err != nil }, "the node stays")
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, swept, "net.w")
	require.NoDirExists(t, filepath.Join(dir, "net.w"))
}

func TestKeptNodeOutlivesTheProcessThatBootedIt(t *testing.T) {
	dir := t.TempDir()
	owner := bootElsewhere(t, dir, "LAB_TEST_KEEP=1")
	require.NoError(t, owner.Kill())
	owner.Wait()
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, swept, "other")
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	require.NoError(t, n.Reboot(t.Context()))
	require.Equal(t, "other\n", n.Run(t, "hostname"))
	nodes, err := lab.List(dir)
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	require.Equal(t, lab.Up, nodes[0].Condition)
	require.Equal(t, n.PID(), nodes[0].PID)
	require.Equal(t, 2, nodes[0].Boots)
	_, err = lab.Boot(t.Context(), lab.Options{Name: "other", Dir: dir})
	require.ErrorContains(t, err, "there is one already, up")
	require.NoError(t, n.Down(t.Context()))
	_, err = lab.Open(dir, "other")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// leftover leaves a node with a running PID 1 and neither keeper nor owner.
func leftover(t *testing.T, dir string) *lab.Node {
	t.Helper()
	owner := bootElsewhere(t, dir)
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	killKeeper(t, dir, "other")
	require.NoError(t, owner.Kill())
	owner.Wait()
	within(t, func() bool { return n.Condition() == lab.Leftover }, "somebody answers for it")
	require.NotZero(t, n.PID(), "it should run on")
	return n
}

func killKeeper(t *testing.T, dir, name string) {
	t.Helper()
	groups := labCgroups(t, name)
	for _, g := range groups {
		procs, err := os.ReadFile(g + "/keeper/cgroup.procs")
		require.NoError(t, err)
		for pid := range strings.FieldsSeq(string(procs)) {
			environ, err := os.ReadFile("/proc/" + pid + "/environ")
			require.NoError(t, err)
			if strings.Contains(string(environ), "STEAD_LAB_STATE="+dir+"/") {
				var id int
				fmt.Sscan(pid, &id)
				require.NoError(t, syscall.Kill(id, syscall.SIGKILL))
			}
		}
	}
}

func TestBootCleansUpWhatADeadProcessLeft(t *testing.T) {
	dir := t.TempDir()
	old := leftover(t, dir)
	n, err := lab.Boot(t.Context(), lab.Options{Name: "other", Dir: dir})
	require.NoError(t, err)
	defer n.Down(t.Context())
	require.Zero(t, old.PID())
	require.Equal(t, "running\n", n.Run(t, "systemctl", "is-system-running"))
}

func TestSweepRemovesWhatADeadProcessLeft(t *testing.T) {
	dir := t.TempDir()
	old := leftover(t, dir)
	swept, err := lab.Sweep(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, swept)
	require.Zero(t, old.PID())
	require.NoDirExists(t, filepath.Join(dir, "other"))
}

func TestSweepRemovesNodesWhoseStateFolderIsGone(t *testing.T) {
	dir := t.TempDir()
	owner := bootElsewhere(t, dir, "LAB_TEST_KEEP=1")
	require.NoError(t, owner.Kill())
	owner.Wait()
	n, err := lab.Open(dir, "other")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "other")))
	_, err = lab.Sweep(t.Context(), dir) // or that of another test at this moment
	require.NoError(t, err)
	within(t, func() bool { return n.PID() == 0 }, "its PID 1 lives on")
}

func TestDownLeavesASuccessorOfTheSameNameAlone(t *testing.T) {
	dir := t.TempDir()
	first, err := lab.Boot(t.Context(), lab.Options{Name: "other", Dir: dir})
	require.NoError(t, err)
	again, err := lab.Open(dir, "other")
	require.NoError(t, err)
	require.NoError(t, again.Down(t.Context()))
	second, err := lab.Boot(t.Context(), lab.Options{Name: "other", Dir: dir})
	require.NoError(t, err)
	defer second.Down(t.Context())
	require.NoError(t, first.Down(t.Context()))
	require.Equal(t, "running\n", second.Run(t, "systemctl", "is-system-running"))
}
