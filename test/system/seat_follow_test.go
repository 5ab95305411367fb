package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// talker logs a thousand numbered lines a second, of two kilobytes each.
	talker  = "talker.service"
	talking = `[Service]
LogRateLimitIntervalSec=0
ExecStart=/bin/bash -c 'fill=$(printf "x%%.0s" {1..2000}); i=0; while :; do next=$((i + 100)); seq -f "line %%.0f $fill" $i $((next - 1)); i=$next; sleep 0.1; done'
`
	// grows is how much memory the runtime and what it starts may take, besides what
	// they had, for one who follows and does not keep up.
	grows = 8 << 20
)

// TestAFollowerThatIsSlowLosesNothing follows a unit that logs a thousand lines a
// second, over the mesh and with the command, at the pace of a slow reader, across a
// cut of the network and the end of the runtime.
func TestAFollowerThatIsSlowLosesNothing(t *testing.T) {
	r := startSeats(t, "ws1")
	ws1 := r.nodes["ws1"]
	require.NoError(t, ws1.WriteFile(etc+"/"+talker, []byte(talking), 0o644))
	ws1.Run(t, "systemctl", "daemon-reload")
	r.done("journal", "-u", bystander, "-n", "ws1")
	ws1.Run(t, "systemctl", "start", talker)
	began := time.Now()

	before := ws1.ownMemory()
	f := r.tail()
	f.pause.Store(int64(10 * time.Millisecond))
	f.reaches(f.next.Load() + 200)
	f.pause.Store(int64(time.Hour))
	peak := ws1.ownMemory()
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		peak = max(peak, ws1.ownMemory())
	}
	behind := ws1.spoken(began) - f.next.Load()
	require.Greater(t, behind*2000, int64(grows), "what waits would not fit into what may be held")
	require.Less(t, peak-before, int64(grows), "%d bytes at first", before)
	t.Logf("%d lines behind, of 2 kB: the runtime and its journalctl hold %d kB, %d kB before", behind, peak>>10, before>>10)
	f.goOn()
	f.reaches(ws1.spoken(began))

	require.NoError(t, r.net.Cut(t.Context(), ws1.Node))
	cut := f.next.Load()
	time.Sleep(5 * time.Second)
	require.NoError(t, r.net.Join(t.Context(), ws1.Node))
	f.reaches(max(cut, f.next.Load()) + 3000)
	for _, end := range [][]string{{"kill", "-s", "KILL", runtimeService}, {"restart", runtimeService}} {
		ws1.Run(t, append([]string{"systemctl"}, end...)...)
		f.reaches(f.next.Load() + 3000)
	}
	t.Logf("%d lines followed in %s, across a cut and two ends of the runtime: none lost, none twice; it said %q",
		f.next.Load()-f.first.Load(), time.Since(began).Round(time.Second), f.err.String())
	f.endsWith(ws1)
	r.endings(ws1)
}

// endings are how long a stream goes on without the one who follows: one who keeps
// up, one who has stopped reading, and one who hears nothing.
func (r *rig) endings(ws1 *machine) {
	r.Helper()
	var took []time.Duration
	for _, pause := range []time.Duration{0, time.Hour} {
		f := r.tail()
		f.reaches(f.next.Load() + 10)
		f.pause.Store(int64(pause))
		time.Sleep(time.Second)
		took = append(took, f.endsWith(ws1))
	}
	ws1.Run(r.T, "systemctl", "stop", talker)
	f := r.tail()
	took = append(took, f.endsWith(ws1))
	require.Less(r, slices.Min(took), time.Second, "after the end of its caller; three times: %s", took)
	r.Logf("the journalctl on the node ended %s after its callers were killed", took)
}

// spoken is how many lines a talker has logged since it began.
func (m *machine) spoken(began time.Time) int64 {
	m.t.Helper()
	last := m.Run(m.t, "sh", "-c", `journalctl -u `+talker+` -g '^line [0-9]+ ' -n 1 -o cat --no-pager | cut -d' ' -f2`)
	n, err := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	require.NoError(m.t, err)
	require.Greater(m.t, float64(n), 300*time.Since(began).Seconds(), "it is to log a thousand lines a second")
	return n
}

// runtimeFamily are the ids, outside the node, of the runtime and what it started.
func (m *machine) runtimeFamily() []int {
	m.t.Helper()
	main := m.pidOf(runtimeService)
	return append([]int{main}, childrenOf(main)...)
}

func childrenOf(pid int) (all []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for id := range strings.FieldsSeq(string(text)) {
			child, _ := strconv.Atoi(id) // as the kernel writes it
			all = append(all, child)
		}
	}
	return all
}

// ownMemory is what the runtime and what it started hold for themselves, in bytes:
// the journal's files, which are only looked at, are not theirs.
func (m *machine) ownMemory() int64 {
	m.t.Helper()
	all := int64(0)
	for _, pid := range m.runtimeFamily() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(text)) {
			if value, is := strings.CutPrefix(line, "RssAnon:"); is {
				kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				require.NoError(m.t, err)
				all += kb << 10
			}
		}
	}
	require.NotZero(m.t, all)
	return all
}

// tail follows the talker on ws1 with the command, on the controller's node, and
// reads what that prints as fast as it is told to.
type tail struct {
	r     *rig
	cmd   *exec.Cmd
	err   strings.Builder
	pause atomic.Int64 // nanoseconds, behind each line
	awake chan struct{}
	first atomic.Int64
	next  atomic.Int64 // the line that has to come
	ended chan error   // what came in its place, or the end
}

// tail begins at the last line that there is.
func (r *rig) tail() *tail {
	r.Helper()
	f := &tail{r: r, awake: make(chan struct{}), ended: make(chan error, 1)}
	f.cmd = r.ctl.Command(context.WithoutCancel(r.Context()), "stead", "journal", "-u", talker, "-g", "^line [0-9]+ ", "--lines", "1", "-f", "-n", "ws1")
	out, err := f.cmd.StdoutPipe()
	require.NoError(r, err)
	f.cmd.Stderr = &f.err
	require.NoError(r, f.cmd.Start())
	r.Cleanup(func() { _ = f.cmd.Cancel(); _ = f.cmd.Wait() })
	f.first.Store(-1)
	go func() { f.ended <- f.read(bufio.NewReaderSize(out, 4<<10)) }()
	r.ctl.until("the first line comes", func() bool { return f.first.Load() >= 0 })
	return f
}

func (f *tail) read(out *bufio.Reader) error {
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		_, text, _ := strings.Cut(line, ": line ")
		number, _, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if want := f.next.Load(); err != nil || f.first.Load() >= 0 && n != want {
			return fmt.Errorf("line %d has to come, and this came: %.80q", want, line)
		}
		f.next.Store(n + 1)
		f.first.CompareAndSwap(-1, n)
		select {
		case <-f.awake:
		case <-time.After(time.Duration(f.pause.Load())):
		}
	}
}

// goOn reads as fast as lines come from now on.
func (f *tail) goOn() {
	f.pause.Store(0)
	close(f.awake)
}

// reaches waits for a line.
func (f *tail) reaches(n int64) {
	f.r.Helper()
	f.r.ctl.until(fmt.Sprintf("line %d comes", n), func() bool {
		select {
		case err := <-f.ended:
			require.NoError(f.r, err, f.err.String())
		default:
		}
		return f.next.Load() > n
	})
}

// endsWith kills the command, so that it can say nothing, and returns how long its
// journalctl on the node goes on.
func (f *tail) endsWith(m *machine) time.Duration {
	f.r.Helper()
	family := m.runtimeFamily()
	require.Len(f.r, family, 2, "the runtime and one journalctl")
	kids := childrenOf(f.cmd.Process.Pid)
	require.Len(f.r, kids, 1)
	require.NoError(f.r, syscall.Kill(kids[0], syscall.SIGKILL))
	killed := time.Now()
	m.until("the journalctl on the node ends", func() bool {
		return syscall.Kill(family[1], 0) == syscall.ESRCH //nolint:errorlint // a number
	})
	took := time.Since(killed)
	if f.pause.Load() > 0 {
		f.goOn()
	}
	select {
	case err := <-f.ended:
		require.ErrorIs(f.r, err, io.EOF)
	case <-time.After(patience):
		require.Fail(f.r, "the command does not end")
	}
	return took.Round(time.Millisecond)
}
