package system

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestAQuietHostSaysNothingToTheManager counts the messages on the host's own
// connection, which no bus monitor sees, by tracing its system calls from
// outside. That the trace sees them is shown first: by a call that is known.
func TestAQuietHostSaysNothingToTheManager(t *testing.T) {
	quiet := 20 * time.Second
	if full() {
		quiet = time.Minute
	}
	var docs []string
	for i := range 20 {
		docs = append(docs, up(fmt.Sprintf("unit%02d", i), sleeper(i)))
	}
	once := text{"once", "ensure: running\n", "[Service]\nType=oneshot\nExecStart=/bin/true\n"}
	// Of two that are down, one is loaded for a look alone, and one is kept loaded by what wants it.
	down := text{"down", "ensure: stopped\n", sleeper(30)}
	wanted := text{"wanted", "ensure: stopped\nenabled: true\n", sleeper(31)}
	m := running(t, map[string]string{"all": documents(append(docs, once.String(), down.String(), wanted.String())...)})

	tap := m.trace(t)
	from := time.Now()
	m.Run(t, "systemctl", "stop", "unit07.service")
	m.until("the stopped unit is up again", func() bool { return m.prop("unit07.service", "ActiveState") == "active" })
	m.converged(from, "unit07")
	sent, received := tap.count()
	require.NotEmpty(t, sent, "the trace sees no message to the manager")
	require.NotEmpty(t, received, "the trace sees no message of the manager")
	require.True(t, slices.ContainsFunc(sent, func(s string) bool { return strings.Contains(s, "StartUnit") }),
		"the trace does not see the host's StartUnit: %q", sent)
	t.Logf("undoing one stop: %d messages sent and %d received", len(sent), len(received))

	// What the stop left behind: a unit that settles is looked at again.
	time.Sleep(3 * time.Second)
	tap.reset()
	time.Sleep(quiet)
	sent, received = tap.count()
	t.Logf("%s of quiet: %d messages sent and %d received", quiet, len(sent), len(received))
	require.Empty(t, sent, "messages to the manager in a quiet time")
	require.Empty(t, received, "messages of the manager in a quiet time")
}

// tap is a trace of what a host says and hears on its connection to the manager.
type tap struct {
	mu             sync.Mutex
	sent, received []string
}

// traced are the calls by which messages pass, and that by which another
// connection would be made.
const traced = "sendmsg,sendto,write,writev,recvmsg,recvfrom,read,readv,connect"

var call = regexp.MustCompile(`(` + strings.ReplaceAll(traced, ",", "|") + `)\((\d+),`)

// trace follows the host's process until the test ends.
func (m *machine) trace(t *testing.T) *tap {
	t.Helper()
	pid := m.hostPID()
	fds := connections(t, pid)
	cmd := exec.Command("strace", "-f", "-s", "4096", "-e", "signal=none",
		"-e", "trace="+traced, "-p", fmt.Sprint(pid))
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w, ended, attached := &tap{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if strings.Contains(lines.Text(), " attached") && strings.Contains(lines.Text(), fmt.Sprintf("Process %d ", pid)) {
				close(attached)
			}
			w.take(lines.Text(), fds)
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGINT) // it lets go of the host
		<-ended
		_ = cmd.Wait()
	})
	select {
	case <-attached:
	case <-ended:
		t.Fatal("strace ended")
	case <-time.After(patience):
		t.Fatal("strace does not get hold of the host")
	}
	return w
}

// take keeps a line that tells of a message. A call that found nothing to read
// is none, and one that strace tells of in two lines is told by its first.
func (w *tap) take(line string, fds []string) {
	c := call.FindStringSubmatch(line)
	switch {
	case c == nil, strings.Contains(line, " = -1 EAGAIN"):
		return
	case c[1] == "connect" && strings.Contains(line, `"/run/systemd/notify"`): // the watchdog is fed
		return
	case c[1] != "connect" && !slices.Contains(fds, c[2]):
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(c[1], "re") {
		w.received = append(w.received, line)
	} else {
		w.sent = append(w.sent, line)
	}
}

func (w *tap) count() (sent, received []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent), slices.Clone(w.received)
}

func (w *tap) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent, w.received = nil, nil
}

// connections are the descriptors of the connected stream sockets of a process,
// but for its standard ones: of a host that nobody asks, those to the manager.
func connections(t *testing.T, pid int) []string {
	t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	require.NoError(t, err)
	stream := make(map[string]bool) // by inode
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path: type 1 is a stream, state 3 connected.
		if f := strings.Fields(line); len(f) >= 7 && f[4] == "0001" && f[5] == "03" {
			stream[f[6]] = true
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	var fds []string
	for _, e := range entries {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		inode := strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")
		if stream[inode] && !slices.Contains([]string{"0", "1", "2"}, e.Name()) {
			fds = append(fds, e.Name())
		}
	}
	require.NotEmpty(t, fds, "the host has no connection")
	return fds
}
