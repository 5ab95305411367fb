package system_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// root is the folder of the source tree, seen from this package.
const root = "../.."

func TestTheDemonstrationHolds(t *testing.T) {
	lab.BuildStead(t) // so that the time below is the demonstration's own
	program := filepath.Join(t.TempDir(), "demo")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "stead/test/demo").CombinedOutput()
	require.NoError(t, err, "%s", said)

	cmd := exec.CommandContext(t.Context(), program, "host")
	cmd.Dir = root
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	require.NoError(t, err, "%s", out)
	t.Logf("%s\n%s", took.Round(time.Millisecond), out)
	require.Less(t, took, time.Minute)

	text := string(out)
	require.NotContains(t, text, "\x1b", "no colour when it is not a terminal")
	for _, want := range []string{
		`→ converged after \d`,
		`→ it runs again; by systemd's own stamps it was down for \d`,
		`\$ sed -i .*\n.*content was changed outside\n +→ it is as declared`,
		`\$ rm .*\n.*content was removed outside\n +→ it is as declared`,
		`Failed at step EXEC spawning /bin/shh: No such file or directory`,
		`which withdraws nothing`,
		`→ all five are given back after \d`,
		`→ nothing else differs\n\n +\d+\.\d s  All of it held\.\n$`,
	} {
		require.Regexp(t, regexp.MustCompile(want), text)
	}
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len([]rune(line)), 140, line)
	}
	require.NoDirExists(t, filepath.Join(lab.DefaultDir, fmt.Sprintf("demo-%d", cmd.Process.Pid)), "a node was left behind")
}

func TestTheDemonstrationOfAMeshHolds(t *testing.T) {
	lab.BuildStead(t)
	program := filepath.Join(t.TempDir(), "demo")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "stead/test/demo").CombinedOutput()
	require.NoError(t, err, "%s", said)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	text := string(out)
	require.NotContains(t, text, "\x1b", "no colour when it is not a terminal")
	for _, want := range []string{
		`→ it runs again; by systemd's own stamps it was down for \d`,
		`declared  web, generation 1: running, enabled`,
		`note: declaration "web" ensures running: the host will start it again`,
		`→ it runs again after .*, without any mesh`,
		`→ nothing else differs\n\n +\d+\.\d s  All of it held\.\n$`,
	} {
		require.Regexp(t, regexp.MustCompile(want), text)
	}
	left, err := filepath.Glob(filepath.Join(lab.DefaultDir, fmt.Sprintf("demo-%d*", cmd.Process.Pid)))
	require.NoError(t, err)
	require.Empty(t, left, "left behind")
}
