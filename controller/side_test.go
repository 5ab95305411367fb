package controller_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/mesh/client"
	"stead/mesh/wire"
)

const tick = 10 * time.Millisecond

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestTwoControllersSideBySide(t *testing.T) {
	w := newWorld(t)
	b := w.beside("c2")
	ws1 := w.join("ws1")
	var group sync.WaitGroup
	for i := range 10 {
		c := w.operator(fmt.Sprintf("o%d", i))
		group.Go(func() {
			for k := range 3 {
				reply, err := c.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service(fmt.Sprintf("s%d-%d", i, k), "all: true", "1")}}})
				if err != nil || len(reply.Changes) != 1 || reply.Changes[0].How != wire.New {
					t.Errorf("apply: %v %+v", err, reply)
				}
			}
		})
	}
	group.Wait()
	alice := w.operator("alice")
	last := w.apply(alice, service("last", "all: true", "1"))
	for range 20 { // whichever controller is asked
		r := ws1.request()
		r.Least = last.Revision
		ws1.syncWith(r)
		require.Len(t, ws1.held.Entries, 31)
	}
	for range 10 {
		progress, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"last"}, Least: last.Revision})
		require.NoError(t, err)
		require.Equal(t, 1, progress.Names[0].Nodes)
	}
	for _, c := range []string{"c1", "c2"} {
		require.Contains(t, w.log.String(), "controller="+c)
	}
	b.end()
	w.apply(alice, service("after", "all: true", "1"))
}

// syncWith is sync with a request of the caller's.
func (n *node) syncWith(r wire.SyncRequest) {
	n.w.t.Helper()
	var reply wire.SyncReply
	require.NoError(n.w.t, n.ask("sync", r, &reply))
	if reply.Signed != nil {
		n.take(reply.Signed)
	}
}

// applies applies one declaration after the other until it is told to end, and
// returns what was acknowledged: by name, the generation.
func applies(t *testing.T, c *client.Client, who string, stop <-chan struct{}) map[string]uint64 {
	done := map[string]uint64{}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return done
		default:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*patience)
		name := fmt.Sprintf("%s-%d", who, i%7)
		var text strings.Builder
		for k := range 3 {
			text.WriteString(service(fmt.Sprintf("%s-%d", name, k), "all: true", fmt.Sprint(i+1)) + "---\n")
		}
		reply, err := c.Apply(ctx, wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: text.String()}}, Force: true})
		cancel()
		if err != nil || len(reply.Changes) != 3 {
			t.Errorf("apply %s: %v %+v", name, err, reply)
			return done
		}
		for _, change := range reply.Changes {
			done[change.Name] = change.Generation
		}
	}
}

// wantAll wants everything that was acknowledged, whole and once.
func (w *world) wantAll(done map[string]uint64) {
	w.t.Helper()
	all, _ := w.pages(w.operator("eve"), wire.GetRequest{Kind: wire.Declarations, Content: true})
	require.Empty(w.t, all.Trouble)
	require.Len(w.t, all.Declarations, len(done))
	for _, d := range all.Declarations {
		require.Equal(w.t, done[d.Name], d.Generation, d.Name)
	}
}

func TestControllersThatStopDuringAppliesLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	stop := make(chan struct{})
	all := make([]map[string]uint64, 3)
	var group sync.WaitGroup
	for i := range all {
		c := w.operator(fmt.Sprintf("o%d", i))
		group.Go(func() { all[i] = applies(t, c, fmt.Sprintf("s%d", i), stop) })
	}
	for range 3 {
		<-time.After(time.Duration(100+rand.IntN(300)) * time.Millisecond)
		w.end()
		w.start()
	}
	close(stop)
	group.Wait()
	done := map[string]uint64{}
	for _, one := range all {
		require.NotEmpty(t, one)
		for name, generation := range one {
			done[name] = generation
		}
	}
	w.wantAll(done)
}

// asProcess is set in the environment of a test binary that is to be a controller.
const asProcess = "STEAD_TEST_CONTROLLER"

// process is a controller in a process of its own: its folder and its address are
// in the environment.
func process() int {
	dir, listen, _ := strings.Cut(os.Getenv(asProcess), "|")
	c, err := controller.New(controller.Options{Dir: dir, Name: "c1", Listen: listen, Hosts: []string{"127.0.0.1"}, MaxStore: 512 << 20, Logger: quiet()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		<-c.Ready()
		fmt.Println("ready")
	}()
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// spawn runs the controller of w as a process, and returns when it answers.
func (w *world) spawn() *exec.Cmd {
	w.t.Helper()
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asProcess+"="+w.dir+"|"+strings.TrimPrefix(w.urls[0], "tls://"))
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(w.t, err)
	require.Equal(w.t, "ready\n", line)
	return cmd
}

func TestControllersThatAreKilledDuringAppliesLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	w.end()
	stop := make(chan struct{})
	all := make([]map[string]uint64, 2)
	cmd := w.spawn()
	var group sync.WaitGroup
	for i := range all {
		c := w.operator(fmt.Sprintf("o%d", i))
		group.Go(func() { all[i] = applies(t, c, fmt.Sprintf("s%d", i), stop) })
	}
	for range 5 {
		<-time.After(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		cmd = w.spawn()
	}
	close(stop)
	group.Wait()
	done := map[string]uint64{}
	for _, one := range all {
		require.NotEmpty(t, one)
		for name, generation := range one {
			done[name] = generation
		}
	}
	w.wantAll(done)
	now, _ := w.pages(w.operator("eve"), wire.GetRequest{Kind: wire.Declarations})
	vera := w.viewer("vera")
	require.Eventually(t, func() bool {
		told := map[uint64]int{}
		page, err := vera.Events(w.within(patience), wire.EventsRequest{Last: 1000})
		require.NoError(t, err)
		for _, e := range page.Events {
			told[e.Revision]++
		}
		for _, d := range now.Declarations {
			if told[d.Revision] != 1 {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond, "every commit is told of, also of a controller that was killed behind it")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
