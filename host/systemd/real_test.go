package systemd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/test/lab"
)

// counter counts calls by method.
type counter struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counter) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[method]++
}

// take returns the counts since it was last called.
func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(c.by)
	clear(c.by)
	return out
}

// sleepers writes units that sleep and returns their names.
func sleepers(t *testing.T, count int) []unit.Name {
	t.Helper()
	var names []unit.Name
	for i := range count {
		n := unit.Name(fmt.Sprintf("st-%d.service", i))
		text := "[Service]\nExecStart=/bin/sleep infinity\n"
		require.NoError(t, os.WriteFile(filepath.Join("/etc/systemd/system", string(n)), []byte(text), 0o644))
		names = append(names, n)
	}
	return names
}

// startAll starts units and waits until all their jobs are over.
func startAll(t *testing.T, m *Manager, names []unit.Name) {
	t.Helper()
	var requests []unit.JobRequest
	for _, n := range names {
		requests = append(requests, unit.JobRequest{Name: n, Type: unit.StartJob})
	}
	for _, q := range m.Enqueue(t.Context(), requests) {
		require.NoError(t, q.Err)
	}
	for ended := 0; ended < len(names); {
		select {
		case <-m.Wake():
			ended += len(m.Drain().Jobs)
		case <-time.After(30 * time.Second):
			t.Fatal("jobs do not end")
		}
	}
}

// TestLooksCostFewCalls pins what a look costs in calls.
func TestLooksCostFewCalls(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	var count counter
	m := connect(t, Options{OnCall: count.add})
	names := sleepers(t, 100)
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	look := func() map[string]int {
		count.take()
		_, err := m.Observe(t.Context(), names)
		require.NoError(t, err)
		return count.take()
	}
	require.Equal(t, map[string]int{"ListUnitsByNames": 1, "Ping": 1, "Get": 200}, look(), "units that are not kept loaded, for the first time")
	require.Equal(t, map[string]int{"ListUnitsByNames": 1, "Ping": 1}, look(), "again")
	startAll(t, m, names)
	require.Equal(t, map[string]int{"ListUnitsByNames": 1, "Get": 300}, look(), "units that run, for the first time, their files and whether they can be reloaded: signals said the rest")
	require.Equal(t, map[string]int{"ListUnitsByNames": 1}, look(), "again")
	_, err = m.Reload(t.Context())
	require.NoError(t, err)
	look()
	require.Equal(t, map[string]int{"ListUnitsByNames": 1}, look(), "the second look after a reload")
	s, err := m.Observe(t.Context(), names[:1])
	require.NoError(t, err)
	m.Drain() // that there was a reload stands for everything that happened up to here
	require.NoError(t, syscall.Kill(int(s[0].MainPID), syscall.SIGKILL))
	require.Eventually(t, func() bool { return len(m.Drain().Units) > 0 }, 5*time.Second, time.Millisecond)
	calls := look()
	require.Equal(t, 1, calls["ListUnitsByNames"])
	require.Less(t, calls["Get"], 20, "only what changed is read again")
}

// TestEveryConnectionBecomesUsable meets the first call that is swallowed.
func TestEveryConnectionBecomesUsable(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	m, err := New(Options{Logger: discard()})
	require.NoError(t, err)
	for i := range 80 {
		at := time.Now()
		l, err := m.dial(t.Context())
		require.NoError(t, err, i)
		require.NoError(t, l.one(t.Context(), get(busPath, managerIfc, "Version")).err)
		require.Less(t, time.Since(at), time.Second)
		l.drop(errLost)
		<-l.lost()
	}
}

// TestReexecutionUnderLoad loses the connection again and again while several
// goroutines look and act.
func TestReexecutionUnderLoad(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	m, o := connect(t, Options{}), other{connect(t, Options{})}
	names := sleepers(t, 50)
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, names)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				got, err := m.Observe(ctx, names)
				if err != nil {
					require.Contains(t, []fault.Class{fault.Unavailable, fault.Canceled}, fault.ClassOf(err))
					continue
				}
				for _, s := range got {
					require.Equal(t, unit.Active, s.Active)
					require.NotZero(t, s.MainPID)
				}
			}
		})
	}
	for range 5 {
		require.NoError(t, o.Cut(ctx))
		require.Eventually(t, m.Connected, 10*time.Second, time.Millisecond)
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	got, err := m.Observe(t.Context(), names)
	require.NoError(t, err)
	require.Equal(t, unit.Active, got[49].Active)
}
