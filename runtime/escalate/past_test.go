package escalate

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// of makes ctx that of a call that was first asked that long ago.
func of(ctx context.Context, asked time.Duration) context.Context {
	return WithCall(ctx, Call{ID: strings.Repeat("c", 32), Asked: asked})
}

// TestActOfACallIsDoneOnce by whichever runtime, before and after its end was told,
// by the helper that did it and by the next one.
func TestActOfACallIsDoneOnce(t *testing.T) {
	r := newRig(t)
	r.unit("s.service", slow)
	r.unit("a.service", sleeper)
	stop := r.helper()
	var l later
	c, gone := r.client(l.take)
	require.NoError(t, c.Wait(bound(t)))
	known, err := c.Known(of(bound(t), 0))
	require.NoError(t, err)
	require.Empty(t, known, "a new call is not asked about")
	dead, die := context.WithCancel(of(bound(t), 0))
	go func() { _, _ = c.Do(dead, Request{Act: Restart, Unit: "s.service", Before: "active running"}) }()
	r.logged("job queued", "unit=s.service")
	gone()
	die()

	c, _ = r.client(l.take)
	known, err = c.Known(of(bound(t), time.Second))
	require.NoError(t, err)
	require.Equal(t, []Begun{{Act: Restart, Unit: "s.service", Before: "active running"}}, known)
	outs, errs := make([]Outcome, 2), make([]error, 2)
	var both sync.WaitGroup
	for i := range outs {
		both.Go(func() { outs[i], errs[i] = c.Do(of(bound(t), time.Second), Request{Act: Restart, Unit: "s.service"}) })
	}
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range c.pending {
			return p.job != 0 && p.waiting == 2
		}
		return false
	}, 10*time.Second, time.Millisecond, "who waits again is told the job")
	require.NoError(t, r.m.Ready("s.service"))
	both.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, unit.JobDone, outs[0].Result)
	require.Equal(t, outs[0], outs[1])
	require.Empty(t, l.seen(), "somebody waited for it")

	for range 2 {
		out, err := c.Do(of(bound(t), time.Second), Request{Act: Restart, Unit: "s.service"})
		require.NoError(t, err)
		require.Equal(t, outs[0], out, "what was answered before")
		known, err := c.Known(of(bound(t), time.Second))
		require.NoError(t, err)
		require.Equal(t, []Begun{{Act: Restart, Unit: "s.service", Before: "active running"}}, known)
		stop()
		stop = r.helper()
	}
	_, err = c.Do(of(bound(t), time.Nanosecond), Request{Act: Start, Unit: "a.service"})
	require.NoError(t, err, "what is new of a call is done")
	_, err = c.Do(of(bound(t), time.Hour), Request{Act: Stop, Unit: "a.service"})
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "stop: a.service: what became of it is known no longer; it may have been done")
	require.Equal(t, []string{"restart s.service", "start a.service"}, r.did())
}
