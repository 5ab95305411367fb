package lab_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestBootRunsSystemd(t *testing.T) {
	begun := time.Now()
	n := lab.Start(t, lab.Options{Hostname: "ws1"})
	require.Less(t, time.Since(begun), 10*time.Second)
	require.Equal(t, "running\n", n.Run(t, "systemctl", "is-system-running"))
	require.Equal(t, "ws1\n", n.Run(t, "hostname"))
	require.Equal(t, "systemd\n", n.Run(t, "cat", "/proc/1/comm"))
	require.Empty(t, n.Run(t, "systemctl", "list-units", "--failed", "--no-legend"))
	require.Empty(t, n.Run(t, "find", "/etc/systemd/system", "-mindepth", "1"), "units of this machine are there")
	require.Regexp(t, "^[0-9a-f]{32}\n$", n.Run(t, "cat", "/etc/machine-id"))
}

func TestExecTellsHowTheCommandEnded(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	for name, c := range map[string]struct {
		args []string
		want lab.Output
	}{
		"done":          {[]string{"sh", "-c", "echo out; echo err >&2"}, lab.Output{Stdout: "out\n", Stderr: "err\n"}},
		"failed":        {[]string{"sh", "-c", "exit 7"}, lab.Output{Code: 7}},
		"killed":        {[]string{"sh", "-c", "kill -TERM $$"}, lab.Output{Code: 128 + 15}},
		"no such":       {[]string{"/no/such"}, lab.Output{Stderr: "lab: 1: exec: /no/such: not found\n", Code: 127}},
		"odd arguments": {[]string{"printf", "%s|", "", "a b", "$HOME", "-x"}, lab.Output{Stdout: "|a b|$HOME|-x|"}},
		"its cgroup":    {[]string{"grep", "^0::", "/proc/self/cgroup"}, lab.Output{Stdout: "0::/init.scope\n"}},
		"background":    {[]string{"sh", "-c", "sleep 300 & echo on"}, lab.Output{Stdout: "on\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := n.Exec(t.Context(), c.args...)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestExecEndsWithItsContext(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := n.Exec(ctx, "sleep", "4711")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, commands(t, n), "sleep 4711", "it goes on inside")
}

// commands are the command lines of all that runs in the node.
func commands(t *testing.T, n *lab.Node) []string {
	t.Helper()
	files, err := filepath.Glob(n.Path("/proc") + "/[0-9]*/cmdline")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []string
	for _, f := range files {
		b, _ := os.ReadFile(f)
		all = append(all, strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " ")))
	}
	return all
}

func TestCommandStreams(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	cmd := n.Command(t.Context(), "sh", "-c", `while read -r line; do echo "got $line"; done`)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for i := range 3 {
		fmt.Fprintln(in, i)
		var got, number string
		_, err := fmt.Fscan(out, &got, &number)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("got ", i), got+" "+number)
	}
	in.Close()
	require.NoError(t, cmd.Wait())
}

func TestNodesAreIsolated(t *testing.T) {
	a, b := lab.Start(t, lab.Options{Hostname: "a"}), lab.Start(t, lab.Options{Hostname: "b"})
	require.Equal(t, "a\n", a.Run(t, "hostname"))
	require.Equal(t, "b\n", b.Run(t, "hostname"))
	require.NotEqual(t, a.Run(t, "cat", "/etc/machine-id"), b.Run(t, "cat", "/etc/machine-id"))
	a.Run(t, "systemd-run", "--unit=only-a", "sh", "-c", "exec sleep 4712")
	require.Equal(t, "active\n", a.Run(t, "systemctl", "is-active", "only-a"))
	out, err := b.Exec(t.Context(), "systemctl", "is-active", "only-a")
	require.NoError(t, err)
	require.Equal(t, "inactive\n", out.Stdout)
	require.Contains(t, commands(t, a), "sleep 4712")
	require.NotContains(t, commands(t, b), "sleep 4712")
	require.Less(t, len(commands(t, b)), 12, "it sees processes that are not its own")
	require.NoError(t, a.WriteFile("/etc/only-a", nil, 0o644))
	require.NoFileExists(t, b.Path("/etc/only-a"))
	require.NoFileExists(t, "/etc/only-a")
}

func TestHardenedUnitWorks(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	n.Run(t, "systemd-run", "--wait", "--pipe", "-p", "ProtectSystem=strict", "-p", "PrivateTmp=yes", "-p", "NoNewPrivileges=yes", "-p", "DynamicUser=yes",
		"sh", "-ec", "! touch /etc/x 2>/dev/null; touch /tmp/private; grep -q 'NoNewPrivs:.1' /proc/self/status")
	require.NoFileExists(t, n.Path("/tmp/private"))
	// "/" is shared: what is mounted later is seen by units that have a mount namespace already.
	n.Run(t, "systemd-run", "--unit=early", "-p", "PrivateTmp=yes", "sleep", "300")
	n.Run(t, "sh", "-ec", "mkdir /mnt/late; mount -t tmpfs late /mnt/late; touch /mnt/late/seen")
	pid := strings.TrimSpace(n.Run(t, "systemctl", "show", "--value", "-p", "MainPID", "early"))
	n.Run(t, "ls", "/proc/"+pid+"/root/mnt/late/seen")
}

func TestNetworkIsItsOwn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dial := []string{"bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port)}

	n := lab.Start(t, lab.Options{})
	require.Equal(t, "lo\n", n.Run(t, "ls", "/sys/class/net"))
	require.Len(t, strings.Split(strings.TrimSpace(n.Run(t, "cat", "/proc/net/route")), "\n"), 1, "there is a route")
	out, err := n.Exec(t.Context(), dial...)
	require.NoError(t, err)
	require.Contains(t, out.Stderr, "refused", "its loopback is up, and nobody listens there")
	ns, err := os.Readlink(n.NetNS())
	require.NoError(t, err)
	require.Equal(t, ns+"\n", n.Run(t, "readlink", "/proc/1/ns/net"))

	lab.Start(t, lab.Options{ShareNet: true}).Run(t, dial...)
}

func TestJournalIsRead(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	n.Run(t, "systemd-run", "--wait", "--unit=says", "echo", "a word")
	require.Contains(t, n.Run(t, "journalctl", "--no-pager", "-u", "says", "-o", "cat"), "a word")
	out, err := n.Journal(t.Context(), "--unit=says", "--output=cat")
	require.NoError(t, err)
	require.Contains(t, out, "a word\n")
	require.NoError(t, n.PowerCut(t.Context()))
	out, err = n.Journal(t.Context(), "--unit=says", "--output=cat")
	require.NoError(t, err)
	require.Contains(t, out, "a word\n", "while it is off")
}

func TestBootRefusesBadOptions(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		o    lab.Options
		want []string
	}{
		"no name":    {lab.Options{}, []string{`name "": want a DNS label`}},
		"paths":      {lab.Options{Name: "../x", Hostname: "A B", Root: "here", Dir: "a,b"}, []string{`name "../x"`, `hostname "A B"`, `root "here"`, `dir "a,b"`}},
		"no root":    {lab.Options{Name: "x", Root: dir + "/none"}, []string{`root "` + dir + `/none": no such file or directory`}},
		"file root":  {lab.Options{Name: "x", Root: file}, []string{"not a folder"}},
		"empty root": {lab.Options{Name: "x", Root: dir}, []string{"/lib/systemd/systemd is missing below " + dir + ": apt-get install systemd", "install dbus"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lab.Boot(t.Context(), c.o)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
