package system_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/arch"
	"stead/test/lab"
)

// root is the folder of the source tree, seen from this package.
const root = "../.."

// demonstrate runs a demonstration, and returns what it printed when it held. Nothing of it may be left behind.
func demonstrate(t *testing.T, within time.Duration, args ...string) string {
	t.Helper()
	lab.BuildStead(t) // so that the time below is the demonstration's own
	program := filepath.Join(t.TempDir(), "demo")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "stead/test/demo").CombinedOutput()
	require.NoError(t, err, "%s", said)
	cmd, scratch := exec.CommandContext(t.Context(), program, args...), t.TempDir()
	cmd.Dir, cmd.Env = root, append(os.Environ(), "TMPDIR="+scratch)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	require.NoError(t, err, "%s", out)
	t.Logf("%s\n%s", took.Round(time.Millisecond), out)
	require.Less(t, took, within)
	require.NotContains(t, string(out), "\x1b", "no colour when it is not a terminal")
	require.Regexp(t, `→ nothing else differs\n\n *\d+\.\d s  All of it held\.\n$`, string(out))
	for line := range strings.Lines(string(out)) {
		require.LessOrEqual(t, len([]rune(line)), 140, line)
	}
	files, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, files, "left behind")
	require.Empty(t, leftOf(fmt.Sprintf("demo-%d", cmd.Process.Pid)), "left behind")
	return string(out)
}

// leftOf is what there is still on this machine of lab nodes and networks of a name: folders, groups of processes, processes that were started for
// them, and mounts in whatever namespace, by which every namespace without a process would be held.
func leftOf(name string) []string {
	var left []string
	for _, pattern := range []string{lab.DefaultDir + "/*", "/sys/fs/cgroup/*/*", "/sys/fs/cgroup/*/*/*"} {
		found, _ := filepath.Glob(pattern) // of a pattern without a mistake
		left = append(left, found...)
	}
	left = slices.DeleteFunc(left, func(path string) bool { return !strings.Contains(filepath.Base(path), name) })
	facts, _ := filepath.Glob("/proc/[0-9]*/*")
	for _, path := range facts {
		if base := filepath.Base(path); base != "mountinfo" && base != "cmdline" && base != "cgroup" {
			continue
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), name) { // others' processes come and go
			left = append(left, path)
		}
	}
	return left
}

func TestTheDemonstrationHolds(t *testing.T) {
	text := demonstrate(t, time.Minute, "host")
	for _, want := range []string{
		`→ converged after \d`,
		`→ it runs again; by systemd's own stamps it was down for \d`,
		`\$ sed -i .*\n.*content was changed outside\n +→ it is as declared`,
		`\$ rm .*\n.*content was removed outside\n +→ it is as declared`,
		`Failed at step EXEC spawning /bin/shh: No such file or directory`,
		`which withdraws nothing`,
		`→ all five are given back after \d`,
	} {
		require.Regexp(t, regexp.MustCompile(want), text)
	}
}

func TestTheDemonstrationOfAMeshHolds(t *testing.T) {
	text := demonstrate(t, 2*time.Minute)
	for _, want := range []string{
		`claim of seat node-service-manager by module "systemd" on node "web2" refused: verb "journal" is not served\n`,
		`→ it runs again; by systemd's own stamps it was down for \d`,
		`declared  web, generation 1: running, enabled`,
		`note: declaration "web" ensures running: the host will start it again`,
		`│ .*Stopping web.service(.*\n)+.*│ .*Started web.service`,
		`→ it runs again; it was down for \d`,
		`→ it runs again after .*, without any mesh`,
		`web1 +\d+ entries on its disk, \d+ unit files, \d+ units: the same`,
		`web2 +\d+ entries on its disk, \d+ unit files, \d+ units: the same`,
	} {
		require.Regexp(t, regexp.MustCompile(want), text)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	blocks, err := arch.Blocks("README.md", string(readme))
	require.NoError(t, err)
	blocks = slices.DeleteFunc(blocks, func(b arch.Block) bool { return b.Tag != arch.Demo })
	require.Len(t, blocks, 1, "README shows it")
	// What is followed comes when it comes.
	for name, of := range map[string]func(line string) bool{"commands": func(line string) bool { return !followed(line) }, "followed": followed} {
		shown, printed := masked(blocks[0].Text, of), masked(text, of)
		require.True(t, arch.Command{Output: shown}.Matches(printed), "README's %s are\n%s\nand it printed\n%s", name, shown, printed)
	}
}

func followed(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "│") }

var (
	moments = regexp.MustCompile(`[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d|\d\d:\d\d:\d\d`)
	spans   = regexp.MustCompile(`\b\d+(\.\d+)? (ms|s)\b|\b(\d+[smhd]|now)\b`)
	numbers = regexp.MustCompile(`\b\d[\d,.]*\b`)
	gaps    = regexp.MustCompile(` +`)
)

// masked are the lines that are wanted, without what differs from run to run: times, numbers, and how wide they are.
func masked(text string, wanted func(line string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !wanted(line) && strings.TrimSpace(line) != arch.Ellipsis {
			continue
		}
		line = moments.ReplaceAllString(line, "TIME")
		line = spans.ReplaceAllString(line, "SPAN")
		line = numbers.ReplaceAllString(line, "N")
		b.WriteString(strings.TrimSpace(gaps.ReplaceAllString(line, " ")) + "\n")
	}
	return b.String()
}
