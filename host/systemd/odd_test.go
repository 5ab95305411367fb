package systemd

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
	"stead/test/odd"
)

// comparingEnv tells the test binary that it is the process without rights.
const comparingEnv = "STEAD_READER_COMPARES"

// TestReaderSaysWhatSystemctlSays makes units of all types in odd states and
// holds a Reader in an account without rights against systemctl, field by field.
func TestReaderSaysWhatSystemctlSays(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	if os.Getenv(comparingEnv) != "" {
		require.NotZero(t, os.Geteuid())
		t.Run("details", compareDetails)
		t.Run("units", compareUnits)
		t.Run("files", compareFiles)
		t.Run("enablement", compareEnablement)
		return
	}
	run := here(t)
	odd.Make(run)
	exe, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/opt/reader", exe, 0o755))
	require.NoError(t, os.WriteFile("/run/reader.conf", []byte("u reader - \"reads\"\n"), 0o644))
	run("systemd-sysusers", "/run/reader.conf")
	args := []string{"--quiet", "--pipe", "--wait", "--unit=odd-reader", "-p", "User=reader", "-p", "DynamicUser=yes",
		"-p", "SupplementaryGroups=systemd-journal", "--setenv=" + comparingEnv + "=1"}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "STEAD_") || strings.HasPrefix(e, "PATH=") {
			args = append(args, "--setenv="+e)
		}
	}
	t.Log(run(append(append([]string{"systemd-run"}, args...), "/opt/reader", "-test.run=^TestReaderSaysWhatSystemctlSays$", "-test.v")...))
}

// here runs commands on this machine.
func here(t *testing.T) odd.Run {
	return func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Stdout, c.Stderr = &stdout, &stderr
		err := c.Run()
		require.NoError(t, err, "%.100q: %s%s", args, stdout.String(), stderr.String())
		return stdout.String()
	}
}

func compareDetails(t *testing.T) {
	r, run := reading(t, ReaderOptions{}), here(t)
	names := odd.Names(run)
	types, states := map[string]int{}, map[string]int{}
	for _, n := range names {
		d := compareOne(t, r, run, n)
		types[n.Type()]++
		states[string(d.Load)+" "+string(d.Active)+" "+d.Sub]++
	}
	require.Greater(t, len(names), 200)
	require.Len(t, types, 11, "%v", types)
	require.Greater(t, len(states), 17, "%v", states)
	t.Logf("%d units of %v in %v", len(names), types, states)
}

// compareOne asks until what it is told before and after systemctl is the same,
// and then holds that against it. What grows all the time must be in between.
func compareOne(t *testing.T, r *Reader, run odd.Run, n unit.Name) unit.Details {
	t.Helper()
	details := func() unit.Details {
		d, err := r.Details(t.Context(), n)
		require.NoError(t, err, n)
		return d
	}
	still := cmpopts.IgnoreFields(unit.Details{}, "CPU", "Memory", "Tasks")
	deadline := time.Now().Add(10 * time.Second)
	for before := details(); ; {
		said := odd.Details(run, n)
		after := details()
		if diff := cmp.Diff(before, after, still, cmpopts.EquateEmpty()); diff != "" {
			require.True(t, time.Now().Before(deadline), "%s does not come to rest: %s", n, diff)
			before = after
			continue
		}
		require.Empty(t, cmp.Diff(said, after, still, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(unit.Details{}, "Unmet"),
			cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Unset" }, cmp.Comparer(sameKeys))), n)
		for figure, three := range map[string][3]*uint64{
			"memory": {before.Memory, said.Memory, after.Memory}, "cpu": {before.CPU, said.CPU, after.CPU}, "tasks": {before.Tasks, said.Tasks, after.Tasks},
		} {
			require.Equal(t, three[1] == nil, three[2] == nil, "%s of %s", figure, n)
			if figure == "cpu" && three[1] != nil {
				require.LessOrEqual(t, *three[0], *three[1], n)
				require.LessOrEqual(t, *three[1], *three[2], n)
			}
		}
		return after
	}
}

func sameKeys(a, b map[string]string) bool {
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

func compareUnits(t *testing.T) {
	r, run := reading(t, ReaderOptions{}), here(t)
	for _, c := range []struct {
		args   string
		filter unit.Filter
	}{
		{"--all", unit.Filter{All: true}},
		{"", unit.Filter{}},
		{"*odd*", unit.Filter{Patterns: []string{"*odd*"}}},
		{"--all odd-[a-d]*.service odd-?????.socket *.mount", unit.Filter{All: true, Patterns: []string{"odd-[a-d]*.service", "odd-?????.socket", "*.mount"}}},
		{"--all --type=timer --type=socket", unit.Filter{All: true, Types: []string{"timer", "socket"}}},
		{"--type=service", unit.Filter{Types: []string{"service"}}},
		{"--state=failed", unit.Filter{States: []string{"failed"}}},
		{"--state=not-found,masked,auto-restart", unit.Filter{States: []string{"not-found", "masked", "auto-restart"}}},
		{"--state=inactive *odd*", unit.Filter{States: []string{"inactive"}, Patterns: []string{"*odd*"}}},
		{"odd-nick.service", unit.Filter{Patterns: []string{"odd-nick.service"}}},
		{"--state=nonsense", unit.Filter{States: []string{"nonsense"}}},
	} {
		got, err := r.Units(t.Context(), c.filter)
		require.NoError(t, err)
		for i := range got {
			got[i].Job.ID = 0
			require.Empty(t, got[i].Following)
		}
		require.Empty(t, cmp.Diff(odd.Units(run, strings.Fields(c.args)...), got, cmpopts.EquateEmpty()), c.args)
	}
}

func compareFiles(t *testing.T) {
	r, run := reading(t, ReaderOptions{}), here(t)
	states := map[string]bool{}
	for _, c := range []struct {
		args   string
		filter unit.Filter
	}{
		{"", unit.Filter{}},
		{"odd-* *.slice", unit.Filter{Patterns: []string{"odd-*", "*.slice"}}},
		{"--type=timer --type=service --state=enabled,masked,generated", unit.Filter{Types: []string{"timer", "service"}, States: []string{"enabled", "masked", "generated"}}},
		{"--state=static *odd*", unit.Filter{States: []string{"static"}, Patterns: []string{"*odd*"}}},
	} {
		got, err := r.Files(t.Context(), c.filter)
		require.NoError(t, err)
		for _, f := range got {
			states[f.State+" "+f.Preset] = true
			require.True(t, strings.HasSuffix(f.Path, "/"+string(f.Name)))
		}
		require.Empty(t, cmp.Diff(odd.Files(run, strings.Fields(c.args)...), got, cmpopts.IgnoreFields(unit.ListedFile{}, "Path"), cmpopts.EquateEmpty()), c.args)
	}
	require.Greater(t, len(states), 12, "%v", states)
	got, err := r.Files(t.Context(), unit.Filter{Patterns: []string{"nonsense"}})
	require.NoError(t, err)
	require.Empty(t, got)
}

func compareEnablement(t *testing.T) {
	r, run := reading(t, ReaderOptions{}), here(t)
	names := odd.Names(run)
	got, err := r.Enablement(t.Context(), names)
	require.NoError(t, err)
	for i, n := range names {
		d, err := r.Details(t.Context(), n)
		require.NoError(t, err)
		require.Equal(t, d.Enablement, got[i], n)
	}
}
