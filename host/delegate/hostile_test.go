package delegate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

// robs takes from a process, whose id it reads, the right to open files.
func robs() int {
	var pid int
	if _, err := fmt.Scan(&pid); err != nil || unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil) != nil {
		return 1
	}
	return 0
}

// chatter is a child that says too much without being asked.
func chatter(how string) {
	_, _ = io.CopyN(io.Discard, os.Stdin, 8)
	for {
		if how == "complains" {
			_, _ = os.Stderr.WriteString(strings.Repeat("\n", 32<<10))
			continue
		}
		if send(os.Stdout, reply{Changed: true, Paths: []string{"/x"}}, nil) != nil {
			return
		}
	}
}

func TestAChildThatSaysTooMuchIsEnded(t *testing.T) {
	for how, says := range map[string]string{"complains": "it complains of more than", "tells": "changes without end"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, how)
			require.Eventually(t, func() bool { return strings.Contains(r.Trouble(), says) }, 20*time.Second, 10*time.Millisecond)
		})
	}
}

func (r *rig) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return 0
	}
	return r.process.cmd.Process.Pid
}

// eventually looks until that succeeds.
func (r *rig) eventually(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: web("[Service]\nExecStart=/bin/true\n")}})
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
}

// Processes of the account can lower the limits of one that is it, and nobody of
// them can raise them again.
func TestAChildThatIsRobbedOfItsLimitsIsReplaced(t *testing.T) {
	r := newRig(t, "good")
	r.eventually(t)
	pid := r.pid()
	robber := r.o.Login.Command(t.Context(), "child", "robs")
	robber.Stdin = strings.NewReader(fmt.Sprint(pid))
	require.NoError(t, robber.Run())
	_, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service"}})
	require.Error(t, err)
	r.eventually(t)
	require.NotEqual(t, pid, r.pid())
}

// A child that the kernel holds cannot be killed, and the next would be held too.
func TestOfChildrenThatAreHeldThereAreFew(t *testing.T) {
	r := newRig(t, "good", func(d *Delegate) {
		for range 1 + mostStuck {
			d.room <- struct{}{} // one that was killed and has not ended
		}
	})
	require.Eventually(t, func() bool { return strings.Contains(r.Trouble(), "a file system holds them") }, 20*time.Second, time.Millisecond)
	_, err := r.Look(context.Background(), nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.Zero(t, r.pid())
	<-r.room
	r.eventually(t)
	require.Empty(t, r.Trouble())
}

func TestAPathThatNobodyHasIsAllOfThem(t *testing.T) {
	d, err := New(Options{Login: newRig(t, "good").o.Login, Arguments: []string{"child", "good"}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	d.changed(reply{Paths: []string{"/a", strings.Repeat("x", maxPath+1)}})
	paths, all := d.Drain()
	require.True(t, all)
	require.Empty(t, paths)
	for i := range 10000 {
		d.changed(reply{Paths: []string{fmt.Sprint("/a", i)}})
	}
	require.LessOrEqual(t, len(d.paths), 4096)
	_, all = d.Drain()
	require.True(t, all)
}

func TestWhatWasDeclaredLongAgoIsForgotten(t *testing.T) {
	r := newRig(t, "good")
	r.eventually(t)
	for i := range mostSent + 10 {
		r.process.sent[fmt.Sprint(i)] = true
	}
	r.eventually(t)
	require.Len(t, r.process.sent, 1)
}

func TestALinkToNoTextIsNotTakenOver(t *testing.T) {
	r := newRig(t, "good")
	require.NoError(t, os.Symlink("x\xff\x1b[2J", r.home+"/link"))
	_, _, err := r.Snapshot(r.home + "/link")
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	require.NotContains(t, err.Error(), "\x1b")
}
