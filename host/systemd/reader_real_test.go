package systemd

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/test/lab"
)

// reading returns a connected Reader that runs until the test ends.
func reading(t *testing.T, o ReaderOptions) *Reader {
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := NewReader(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.Eventually(t, r.Connected, 10*time.Second, time.Millisecond)
	return r
}

// TestReadingCostsFewCalls pins what reading costs, in calls and against the bare
// call that it needs.
func TestReadingCostsFewCalls(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	var count counter
	r, m := reading(t, ReaderOptions{OnCall: count.add}), connect(t, Options{})
	names := sleepers(t, 100)
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, names)
	look := func(read func() error) map[string]int {
		count.take()
		require.NoError(t, read())
		return count.take()
	}
	require.Equal(t, map[string]int{"GetAll": 1}, look(func() error { _, err := r.Details(t.Context(), names[0]); return err }))
	require.Equal(t, map[string]int{"ListUnitsByPatterns": 1}, look(func() error { _, err := r.Units(t.Context(), unit.Filter{All: true}); return err }))
	require.Equal(t, map[string]int{"ListUnitsByNames": 1}, look(func() error { _, err := r.Named(t.Context(), names); return err }))
	require.Equal(t, map[string]int{"ListUnitFilesByPatterns": 1}, look(func() error { _, err := r.Files(t.Context(), unit.Filter{}); return err }))
	require.Equal(t, map[string]int{"Get": 100}, look(func() error { _, err := r.Enablement(t.Context(), names); return err }))

	bare := call{pathOfUnit(names[0]), "org.freedesktop.DBus.Properties", "GetAll", []any{""}}
	l, err := r.conn.using(t.Context(), "read")
	require.NoError(t, err)
	var ours, floor []time.Duration
	var body []any
	for range 200 {
		at := time.Now()
		reply := l.one(t.Context(), bare)
		require.NoError(t, reply.err)
		floor, body = append(floor, time.Since(at)), reply.body
		at = time.Now()
		_, err := r.Details(t.Context(), names[0])
		require.NoError(t, err)
		ours = append(ours, time.Since(at))
	}
	slices.Sort(ours)
	slices.Sort(floor)
	allocs := testing.AllocsPerRun(100, func() {
		p, err := propertiesOf(body)
		require.NoError(t, err)
		p.details()
	})
	t.Logf("p50: the bare call %v, details %v; p95: %v, %v; %v allocations", floor[100], ours[100], floor[190], ours[190], allocs)
	require.Less(t, allocs, 100.0, "times on a busy machine prove nothing; godbus makes some thousands of the same answer")
}

// TestReaderSurvivesTheBus has the bus killed again and again under a load of
// mixed reads: each is answered, and rightly.
func TestReaderSurvivesTheBus(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	r, m := reading(t, ReaderOptions{ConnectWait: 20 * time.Second}), connect(t, Options{})
	names := sleepers(t, 20)
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, names)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for ctx.Err() == nil {
				switch i % 3 {
				case 0:
					d, err := r.Details(t.Context(), names[i])
					require.NoError(t, err)
					require.Equal(t, unit.Active, d.Active)
				case 1:
					got, err := r.Named(t.Context(), names)
					require.NoError(t, err)
					require.Len(t, got, len(names))
				case 2:
					got, err := r.Enablement(t.Context(), names)
					require.NoError(t, err)
					require.Equal(t, "static", got[i])
				}
			}
		})
	}
	for range 3 {
		bus, err := r.Details(t.Context(), "dbus.service")
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(int(*bus.MainPID), syscall.SIGKILL))
		require.Eventually(t, func() bool {
			again, err := r.Details(t.Context(), "dbus.service")
			return err == nil && again.MainPID != nil && *again.MainPID != *bus.MainPID
		}, 20*time.Second, 10*time.Millisecond)
	}
	cancel()
	wg.Wait()
}

// TestReaderWaitsForNobodyWithoutEnd has the manager stopped: a read ends with its
// context, or when the manager counts as hung, and the next one is answered once
// the manager goes on.
func TestReaderWaitsForNobodyWithoutEnd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	r := reading(t, ReaderOptions{CallTimeout: time.Second})
	hold := exec.Command("/bin/sh", "-c", "systemctl daemon-reload") // with a generator that takes its time
	require.NoError(t, os.MkdirAll("/etc/systemd/system-generators", 0o755))
	require.NoError(t, os.WriteFile("/etc/systemd/system-generators/slow", []byte("#!/bin/sh\nsleep 4\n"), 0o755))
	require.NoError(t, hold.Start())
	time.Sleep(300 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	at := time.Now()
	_, err := r.Details(ctx, "dbus.service")
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Less(t, time.Since(at), time.Second)
	_, err = r.Details(t.Context(), "dbus.service")
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.Less(t, time.Since(at), 3*time.Second)
	require.NoError(t, hold.Wait())
	require.Eventually(t, func() bool {
		_, err := r.Details(t.Context(), "dbus.service")
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
}

// TestManyReadsAtOnceStayWithinTheLimitsOfTheBus sends more calls than the bus
// lets one connection have in flight.
func TestManyReadsAtOnceStayWithinTheLimitsOfTheBus(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	r := reading(t, ReaderOptions{})
	var wg sync.WaitGroup
	for range 400 {
		wg.Go(func() {
			_, err := r.Details(t.Context(), "dbus.service")
			require.NoError(t, err)
		})
	}
	for range 10 {
		wg.Go(func() {
			_, err := r.Enablement(t.Context(), slices.Repeat([]unit.Name{"dbus.service", "no.service", "systemd-journald.service"}, 100))
			require.NoError(t, err)
		})
	}
	wg.Wait()
}

// TestReaderIsToldWhyTheBusDoesNotLetItIn runs in an account that the bus cannot
// look up.
func TestReaderIsToldWhyTheBusDoesNotLetItIn(t *testing.T) {
	const asked = "STEAD_READER_UNKNOWN"
	if os.Getenv(asked) != "" {
		r, err := NewReader(ReaderOptions{Logger: discard()})
		require.NoError(t, err)
		_, err = r.dial(t.Context())
		require.ErrorContains(t, err, "the bus hung up on uid 45678")
		return
	}
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	exe, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/opt/reader", exe, 0o755))
	c := exec.CommandContext(t.Context(), "/opt/reader", "-test.run=^"+t.Name()+"$")
	c.Dir, c.Env = "/", append(os.Environ(), asked+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 45678, Gid: 45678}}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
