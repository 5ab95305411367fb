package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/seats"
	"stead/test/lab"
)

// follower collects what a stream sends.
type follower struct {
	t      *testing.T
	pages  chan seats.JournalReply
	stop   context.CancelFunc
	done   chan error
	cursor string
}

func follow(t *testing.T, a seats.JournalArguments) *follower {
	t.Helper()
	a.Follow = true
	ctx, cancel := context.WithCancel(t.Context())
	fl := &follower{t: t, pages: make(chan seats.JournalReply), stop: cancel, done: make(chan error, 1)}
	go func() {
		fl.done <- Reader{}.Stream(ctx, a, func(p seats.JournalReply) error {
			select {
			case fl.pages <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return fl
}

// page waits for one page.
func (fl *follower) page() seats.JournalReply {
	fl.t.Helper()
	select {
	case p := <-fl.pages:
		fl.cursor = p.Cursor
		return p
	case err := <-fl.done:
		require.FailNow(fl.t, "the stream ended", "%v", err)
	case <-time.After(patience):
		require.FailNow(fl.t, "nothing comes")
	}
	return seats.JournalReply{}
}

// next waits for the messages of n entries.
func (fl *follower) next(n int) (got []string) {
	fl.t.Helper()
	for len(got) < n {
		got = append(got, messages(fl.t, fl.page().Entries)...)
	}
	return got
}

// end ends the stream, and says how long that took.
func (fl *follower) end() time.Duration {
	fl.t.Helper()
	start := time.Now()
	fl.stop()
	err := <-fl.done
	require.Error(fl.t, err)
	return time.Since(start)
}

// children are the processes of this one that run journalctl.
func children(t testing.TB, parent int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), " (journalctl) ")
		if words := strings.Fields(rest); len(words) > 2 && words[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestFollowGoesOnWithWhatComes(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	service(t, "talks", "/bin/sh", "-c", "echo one; echo two; echo three")
	a := seats.JournalArguments{Unit: "talks.service", Grep: "^(one|two|three|four)$", Lines: lines(2)}
	fl := follow(t, a)
	require.Equal(t, []string{"two", "three"}, fl.next(2))
	service(t, "silent", "/bin/echo", "four")
	service(t, "talks", "/bin/echo", "four")
	require.Equal(t, []string{"four"}, fl.next(1))
	require.Less(t, fl.end(), time.Second)
	require.Empty(t, children(t, os.Getpid()))

	a.Cursor = fl.cursor // as who lost the stream asks again
	service(t, "talks", "/bin/sh", "-c", "echo one; echo two")
	fl = follow(t, a)
	require.Equal(t, []string{"one", "two"}, fl.next(2))
	require.Less(t, fl.end(), time.Second)

	// Without anything to say there is a cursor all the same, behind which
	// nothing is missed.
	fl = follow(t, seats.JournalArguments{Unit: "new.service", Lines: lines(0)})
	p := fl.page()
	require.Empty(t, p.Entries)
	require.NotEmpty(t, p.Cursor)
	require.Less(t, fl.end(), time.Second)
	service(t, "new", "/bin/echo", "hello")
	fl = follow(t, seats.JournalArguments{Unit: "new.service", Grep: "^hello$", Cursor: p.Cursor})
	require.Equal(t, []string{"hello"}, fl.next(1))
	require.Less(t, fl.end(), time.Second)

	fl = follow(t, seats.JournalArguments{Grep: "^hello$", Since: "-1h"})
	require.Equal(t, []string{"hello"}, fl.next(1))
	require.Less(t, fl.end(), time.Second)
	fl = follow(t, seats.JournalArguments{Grep: "^hello$"})
	require.Equal(t, []string{"hello"}, fl.next(1))
	// What another wants at the same time costs nobody anything.
	other := follow(t, seats.JournalArguments{Grep: "^again$"})
	other.page()
	say(t, line("x", "again"), line("x", "hello"))
	require.Equal(t, []string{"hello"}, fl.next(1))
	require.Equal(t, []string{"again"}, other.next(1))
	require.Less(t, fl.end(), time.Second)
	require.Less(t, other.end(), time.Second)
	require.Empty(t, children(t, os.Getpid()))
}

func TestNoMoreIsReadThanIsTaken(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	const n = 6000
	var all [][]f
	for i := range n {
		all = append(all, line("much", fmt.Sprintf("%d %s", i, strings.Repeat("x", 500))))
	}
	say(t, all...)
	var taken, sent atomic.Int64
	block, stop := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	next := 0
	go func() {
		done <- Reader{}.Stream(ctx, seats.JournalArguments{Grep: "^[0-9]+ x+$", Lines: lines(MaxEntries), Follow: true}, func(p seats.JournalReply) error {
			require.LessOrEqual(t, len(p.JSON()), chunkSize+around+4<<10)
			sent.Add(1)
			select {
			case <-block:
			case <-ctx.Done():
				return ctx.Err()
			}
			for _, m := range messages(t, p.Entries) {
				if !strings.HasPrefix(m, fmt.Sprintf("%d ", next)) {
					return fmt.Errorf("%.20q came where %d should", m, next)
				}
				next++
			}
			if taken.Store(int64(next)); next == n {
				close(stop)
			}
			return nil
		})
	}()
	require.Eventually(t, func() bool { return sent.Load() == 1 }, patience, time.Millisecond)
	time.Sleep(time.Second)
	pids := children(t, os.Getpid())
	require.Len(t, pids, 1)
	io := func() string { // how much journalctl has written
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pids[0]))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "wchar: ")
		return strings.Fields(rest)[0]
	}
	before := io()
	written, err := strconv.Atoi(before)
	require.NoError(t, err)
	require.Less(t, written, 300<<10, "of some 7 MB: a chunk, a pipe and a buffer")
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, before, io(), "it stands still")
	require.EqualValues(t, 1, sent.Load())
	close(block)
	select {
	case <-stop:
	case err := <-done:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatalf("%d of %d came", taken.Load(), n)
	}
	cancel()
	require.Error(t, <-done)
}

func TestStreamEndsWithinASecondOfItsCaller(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	say(t, line("one", "one"))
	blocked := func(ctx context.Context) func(seats.JournalReply) error {
		return func(seats.JournalReply) error { <-ctx.Done(); return ctx.Err() }
	}
	idle := func(context.Context) func(seats.JournalReply) error {
		return func(seats.JournalReply) error { return nil }
	}
	for name, send := range map[string]func(context.Context) func(seats.JournalReply) error{"idle": idle, "blocked": blocked} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Reader{}.Stream(ctx, seats.JournalArguments{Follow: true}, send(ctx)) }()
		require.Eventually(t, func() bool { return len(children(t, os.Getpid())) > 0 }, patience, time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		cancel()
		err := <-done
		require.Less(t, time.Since(start), time.Second, name)
		require.True(t, errors.Is(err, context.Canceled), "%v", err)
		require.Empty(t, children(t, os.Getpid()), name)
	}
	enough := errors.New("enough")
	err := Reader{}.Stream(t.Context(), seats.JournalArguments{Follow: true}, func(seats.JournalReply) error { return enough })
	require.Equal(t, enough, err, "as it is")
	require.Empty(t, children(t, os.Getpid()))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = Reader{}.Stream(ctx, seats.JournalArguments{Follow: true}, func(seats.JournalReply) error { return nil })
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
}

// roleEnv makes the test binary another process: one that follows until it is
// killed, or one that reads with the rights that it has.
const roleEnv = "STEAD_JOURNAL_ROLE"

func TestJournalctlDoesNotOutliveAKilledReader(t *testing.T) {
	if os.Getenv(roleEnv) == "follow" {
		err := Reader{}.Stream(t.Context(), seats.JournalArguments{Follow: true}, func(seats.JournalReply) error { return nil })
		t.Fatal(err)
	}
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestJournalctlDoesNotOutliveAKilledReader$")
	cmd.Env = append(os.Environ(), roleEnv+"=follow")
	require.NoError(t, cmd.Start())
	var pids []int
	require.Eventually(t, func() bool {
		pids = children(t, cmd.Process.Pid)
		return len(pids) == 1 && strings.Contains(commandLine(pids[0]), "--follow")
	}, patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	start := time.Now()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !alive(pids[0]) }, time.Second, time.Millisecond)
	t.Logf("gone %s after its reader", time.Since(start))
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ") && syscall.Kill(pid, 0) == nil
}

func TestRightsAreThoseOfTheProcess(t *testing.T) {
	if role := os.Getenv(roleEnv); role != "" {
		p, err := Reader{}.Read(t.Context(), seats.JournalArguments{Unit: "init.scope"})
		streamed := Reader{}.Stream(t.Context(), seats.JournalArguments{Follow: true}, func(seats.JournalReply) error { return errors.New("it may") })
		if role == "member" {
			require.NoError(t, err)
			require.Greater(t, len(p.Entries), 10)
			require.EqualError(t, streamed, "it may")
			return
		}
		require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "insufficient permissions")
		require.Equal(t, fault.Denied, fault.ClassOf(streamed), "%v", streamed)
		return
	}
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/opt/reader", program, 0o755)) // a dynamic user has a /tmp of its own
	for role, properties := range map[string][]string{
		"member":   {"-p", "DynamicUser=yes", "-p", "SupplementaryGroups=systemd-journal", "-p", "ProtectSystem=strict"},
		"stranger": {"-p", "DynamicUser=yes"},
	} {
		out, err := exec.Command("systemd-run", append(properties, "--quiet", "--pipe", "--wait", "--setenv="+roleEnv+"="+role,
			"/opt/reader", "-test.run=^TestRightsAreThoseOfTheProcess$")...).CombinedOutput()
		require.NoError(t, err, "%s: %s", role, out)
	}
}

func TestNothingIsLostWhenTheJournalIsRotatedOrTrimmed(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	fl := follow(t, seats.JournalArguments{Grep: "^number ", Lines: lines(0)})
	fl.page()
	var want []string
	number := func(n int) {
		for range n {
			want = append(want, fmt.Sprintf("number %d", len(want)))
			say(t, line("counts", want[len(want)-1]))
		}
	}
	got := func(n int) []string { return fl.next(n) }
	number(5)
	all := got(5)
	cursor := fl.cursor
	tool(t, "journalctl", "--rotate")
	number(5)
	tool(t, "systemctl", "restart", "systemd-journald.service")
	number(5)
	all = append(all, got(10)...)
	require.Equal(t, want, all)
	require.Less(t, fl.end(), time.Second)

	p := read(t, seats.JournalArguments{Grep: "^number ", Cursor: cursor})
	require.Equal(t, want[5:], messages(t, p.Entries))
	// The entry of the cursor goes; what is behind it and still there comes.
	tool(t, "journalctl", "--rotate")
	number(3)
	tool(t, "journalctl", "--vacuum-files=1")
	left := said(t, "-t", "counts")
	require.Less(t, len(left), len(want))
	p = read(t, seats.JournalArguments{Grep: "^number ", Cursor: cursor})
	require.Equal(t, want[len(want)-len(left):], messages(t, p.Entries), "the first of them too")
}

func TestBootsAreToldApart(t *testing.T) {
	if os.Getenv(roleEnv) == "boots" {
		text := func(a seats.JournalArguments) string {
			a.Unit = "talks.service"
			return strings.Join(messages(t, read(t, a).Entries), "\n")
		}
		require.NotContains(t, text(seats.JournalArguments{Boot: "0"}), "of an older boot")
		require.Contains(t, text(seats.JournalArguments{Boot: "0"}), "of this boot")
		require.NotContains(t, text(seats.JournalArguments{Boot: "-1"}), "of this boot")
		require.Contains(t, text(seats.JournalArguments{Boot: "-1"}), "of an older boot")
		for _, all := range []string{"", "all"} {
			require.Contains(t, text(seats.JournalArguments{Boot: all}), "of this boot")
			require.Contains(t, text(seats.JournalArguments{Boot: all}), "of an older boot")
		}
		old := read(t, seats.JournalArguments{Boot: "-1", Unit: "talks.service"})
		require.Contains(t, text(seats.JournalArguments{Cursor: old.Cursor}), "of this boot", "a cursor reaches over a reboot")
		return
	}
	n := lab.Start(t, lab.Options{})
	say := func(text string) {
		n.Run(t, "systemd-run", "--quiet", "--wait", "--unit=talks", "/bin/echo", text)
		n.Run(t, "journalctl", "--sync")
	}
	say("of an older boot")
	require.NoError(t, n.Reboot(t.Context()))
	say("of this boot")
	require.NoError(t, n.CopyIn("/proc/self/exe", "/opt/reader"))
	n.Run(t, "systemd-run", "--quiet", "--pipe", "--wait", "-p", "ProtectKernelTunables=yes", "-p", "PrivateDevices=yes",
		"--setenv="+roleEnv+"=boots", "/opt/reader", "-test.run=^TestBootsAreToldApart$")
}
