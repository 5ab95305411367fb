package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
	"stead/seats"
	"stead/test/lab"
)

var verb = subject.ForVerb(subject.Read, "ws1", seats.NodeServiceManager, seats.Journal)

// serve answers the journal verb of ws1 with the journal of this machine.
func serve(t *testing.T, m *meshtest.Mesh) {
	t.Helper()
	s, err := mesh.NewService(m.Connect(identity.Tool, "ws1"), mesh.ServiceOptions{
		Name: "runtime", Version: "1.0.0", Node: "ws1", Logger: slog.New(slog.DiscardHandler),
		Endpoints: []mesh.Endpoint{{
			Name: "journal", Subject: verb, Accounts: []identity.Account{identity.OPS},
			Handler: func(ctx context.Context, r mesh.Request) ([]byte, error) {
				var a seats.JournalArguments
				if err := json.Unmarshal(r.Payload, &a); err != nil {
					return nil, err
				}
				p, err := Reader{}.Read(ctx, a)
				return p.JSON(), err
			},
			Stream: func(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
				var a seats.JournalArguments
				if err := json.Unmarshal(r.Payload, &a); err != nil {
					return err
				}
				return Reader{}.Stream(ctx, a, func(p seats.JournalReply) error { return s.Send(p.JSON(), p.Cursor) })
			},
		}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	<-s.Ready()
}

// asking makes the request of a stream.
func asking(a seats.JournalArguments) func(string) []byte {
	return func(cursor string) []byte {
		a := a
		if cursor != "" {
			a.Cursor, a.Since = cursor, ""
		}
		text, _ := json.Marshal(a)
		return text
	}
}

// unlimited makes journald take more than ten thousand lines in half a minute.
func unlimited(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll("/etc/systemd/journald.conf.d", 0o755))
	require.NoError(t, os.WriteFile("/etc/systemd/journald.conf.d/all.conf", []byte("[Journal]\nRateLimitIntervalSec=0\n"), 0o644))
	tool(t, "systemctl", "restart", "systemd-journald.service")
}

func TestFollowOfAThousandLinesASecondToASlowReader(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	unlimited(t)
	m := meshtest.New(t)
	serve(t, m)
	operator := m.Connect(identity.Operator, "olga")

	const n = 6000
	var got, lost atomic.Int64
	var most atomic.Uint64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	began := make(chan struct{}, 1)
	go func() {
		done <- operator.Follow(ctx, verb, mesh.FollowOptions{
			Request: asking(seats.JournalArguments{Grep: "^[0-9]+ x+$", Lines: lines(0), Follow: true}),
			Lost:    func(error) { lost.Add(1) },
			Take: func(c mesh.Chunk) error {
				select {
				case began <- struct{}{}:
				default:
				}
				var p seats.JournalReply
				if err := json.Unmarshal(c.Payload, &p); err != nil {
					return err
				}
				for _, text := range messages(t, p.Entries) {
					if want := fmt.Sprintf("%d ", got.Load()); !strings.HasPrefix(text, want) {
						return fmt.Errorf("%.20q came where %s should", text, want)
					}
					if got.Add(1) < n/2 {
						time.Sleep(2 * time.Millisecond) // half as fast as they come
					}
				}
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				most.Store(max(most.Load(), now.HeapAlloc))
				return nil
			},
		})
	}()
	<-began
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < n; i += 10 {
		<-tick.C
		for j := range 10 {
			sayNow(t, line("fast", fmt.Sprintf("%d %s", i+j, strings.Repeat("x", 200))))
		}
		switch i {
		case 2000:
			m.Stop()
			m.Start()
		case 4000:
			m.Link.Kill()
		}
	}
	behind := n - got.Load()
	require.Eventually(t, func() bool { return got.Load() == n || len(done) > 0 }, 2*patience, 10*time.Millisecond, "at %d", got.Load())
	if len(done) > 0 {
		t.Fatal(<-done)
	}
	t.Logf("the reader was %d lines behind, at most %d MiB of heap for server, node and reader; %d resumptions", behind, most.Load()>>20, lost.Load())
	require.Less(t, most.Load(), uint64(64<<20))
	require.Positive(t, lost.Load())
	start := time.Now()
	cancel()
	require.Equal(t, fault.Canceled, fault.ClassOf(<-done))
	require.Eventually(t, func() bool { return len(children(t, os.Getpid())) == 0 }, time.Second, time.Millisecond)
	t.Logf("journalctl went %s after the reader", time.Since(start))
}

func TestLinesPerSecondOverTheMesh(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	unlimited(t)
	const n = 10000
	for i := range n {
		sayNow(t, line("fast", fmt.Sprintf("%d %s", i, strings.Repeat("x", 100))))
	}
	tool(t, "journalctl", "--sync")
	m := meshtest.New(t)
	serve(t, m)
	operator := m.Connect(identity.Operator, "olga")

	start := time.Now()
	cmd := exec.Command("journalctl", "-o", "json", "--all", "-q", "-n", fmt.Sprint(n))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	size, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	bare := time.Since(start)

	got, bytes := 0, 0
	start = time.Now()
	require.NoError(t, operator.Follow(t.Context(), verb, mesh.FollowOptions{
		Request: asking(seats.JournalArguments{Lines: lines(n)}),
		Take: func(c mesh.Chunk) error {
			var p seats.JournalReply
			if err := json.Unmarshal(c.Payload, &p); err != nil {
				return err
			}
			got += len(p.Entries)
			bytes += len(c.Payload)
			return nil
		},
	}))
	streamed := time.Since(start)
	require.Equal(t, n, got)
	rate := func(d time.Duration) float64 { return n / d.Seconds() }
	t.Logf("%d bytes a line: journalctl alone %.0f lines/s, over the mesh and decoded %.0f lines/s", size/n, rate(bare), rate(streamed))
	require.Greater(t, rate(streamed), 1000.0)
}
