package escalate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

func TestActsAreDoneAndToldWithSystemdsResult(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	ctx := WithFor(bound(t), "operator alice")
	out, err := c.Do(ctx, Request{Act: Start, Unit: "a.service"})
	require.NoError(t, err)
	require.Equal(t, unit.JobDone, out.Result)
	require.NotZero(t, out.Job)
	require.Positive(t, out.Took)
	first := r.look("a.service")
	require.Equal(t, unit.Active, first.Active)

	out, err = c.Do(ctx, Request{Act: Restart, Unit: "a.service"})
	require.NoError(t, err)
	require.Equal(t, unit.JobDone, out.Result)
	require.NotEqual(t, first.Invocation, r.look("a.service").Invocation)

	out, err = c.Do(ctx, Request{Act: Enable, Unit: "a.service"})
	require.NoError(t, err)
	require.Len(t, out.Links.Made, 1)
	require.Zero(t, out.Job)
	out, err = c.Do(ctx, Request{Act: Disable, Unit: "a.service"})
	require.NoError(t, err)
	require.Len(t, out.Links.Removed, 1)

	_, err = c.Do(ctx, Request{Act: ResetFailed, Unit: "a.service"})
	require.NoError(t, err)
	_, err = c.Do(ctx, Request{Act: Stop, Unit: "a.service"})
	require.NoError(t, err)
	require.Equal(t, []string{"start a.service", "restart a.service", "enable a.service", "disable a.service", "reset-failed a.service", "stop a.service"}, r.did())
	for _, act := range []string{"start", "restart", "enable", "disable", "stop", "reset-failed"} {
		r.logged("act done", "act="+act+" ", "unit=a.service", `for="operator alice"`)
	}
}

func (r *rig) look(n unit.Name) unit.Status {
	r.t.Helper()
	st, err := r.m.Observe(context.Background(), []unit.Name{n})
	require.NoError(r.t, err)
	return st[0]
}

func TestSystemdsRefusalIsHandedOn(t *testing.T) {
	r := newRig(t)
	r.helper()
	c, _ := r.client(nil)
	_, err := c.Do(bound(t), Request{Act: Start, Unit: "none.service"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.ErrorContains(t, err, "start: none.service: Unit none.service not found")
	r.logged("act refused", "unit=none.service")
}

func TestWhatIsAskedIsJudgedAnew(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.m.ties = map[unit.Name]unit.Ties{
		"alias.service":  {Names: []unit.Name{"alias.service", "dbus.service"}},
		"tmp.mount":      {StopsWith: []unit.Name{"middle.service"}},
		"middle.service": {StopsWith: []unit.Name{"tmp.mount", "stead-host.service"}},
		"foe.service":    {Conflicts: []unit.Name{"shutdown.target", "systemd-journald.service"}},
		"ends.target":    {Names: []unit.Name{"ends.target", "reboot.target"}},
	}
	r.helper()
	c, _ := r.client(nil)
	for _, e := range []struct {
		act   Act
		unit  unit.Name
		class fault.Class
		text  string
	}{
		{"kexec", "a.service", fault.Refused, `escalate: "kexec": it is no act that the helper does`},
		{"", "a.service", fault.Refused, `it is no act`},
		{Start, "/etc/passwd", fault.Invalid, `start: "/etc/passwd"`},
		{Start, "../a.service", fault.Invalid, `start: "../a.service"`},
		{Enable, "/run/x/a.service", fault.Invalid, `enable: "/run/x/a.service"`},
		{Start, "--now.service", fault.Invalid, ``},
		{Start, "a", fault.Invalid, `start: "a"`},
		{Start, "", fault.Invalid, `start: ""`},
		{Start, "x@.service", fault.Refused, "x@.service is a template"},
		{Stop, "stead-host.service", fault.Refused, "stop: stead-host.service: it is protected: it is stead's own"},
		{Stop, "stead-escalate.socket", fault.Refused, "stead's own"},
		{Restart, "stead-runtime.service", fault.Refused, "stead's own"},
		{Disable, "stead-host.service", fault.Refused, "stead's own"},
		{Enable, "dbus-broker.service", fault.Refused, "stead stands on it"},
		{Restart, "dbus.service", fault.Refused, "restart: dbus.service: it is protected: stead stands on it"},
		{Stop, "user@1000.service", fault.Refused, "stead stands on it"},
		{Stop, "-.slice", fault.Refused, "stead stands on it"},
		{Stop, "alias.service", fault.Refused, "stop: alias.service: it is dbus.service, which is protected: stead stands on it"},
		{Restart, "tmp.mount", fault.Refused, "restart: tmp.mount: it stops stead-host.service, which is protected: it is stead's own"},
		{Start, "foe.service", fault.Refused, "start: foe.service: it stops systemd-journald.service, which is protected: stead stands on it"},
		{Start, "reboot.target", fault.Refused, "stops or suspends the machine"},
		{Start, "ends.target", fault.Refused, "it is reboot.target, which is protected: starting it stops or suspends the machine"},
	} {
		t.Run(string(e.act)+" "+strings.ReplaceAll(string(e.unit), "/", "|"), func(t *testing.T) {
			_, err := c.Do(bound(t), Request{Act: e.act, Unit: e.unit})
			require.ErrorContains(t, err, e.text)
			require.Equal(t, e.class, fault.ClassOf(err))
		})
	}
	_, err := c.Do(bound(t), Request{Act: Enable, Unit: "a.service", NoWait: true})
	require.ErrorContains(t, err, "no job to wait for")
	require.Empty(t, r.did())
	r.logged("act refused", "act=restart", "unit=tmp.mount")
}

func TestWhatStopsWithAUnitIsFollowedToItsEnd(t *testing.T) {
	r := newRig(t)
	for i := range 600 {
		r.m.ties[unit.Name(fmt.Sprintf("c%d.service", i))] = unit.Ties{StopsWith: []unit.Name{unit.Name(fmt.Sprintf("c%d.service", i+1))}}
	}
	r.helper()
	c, _ := r.client(nil)
	_, err := c.Do(bound(t), Request{Act: Stop, Unit: "c0.service"})
	require.ErrorContains(t, err, "it stops more than 500 units")
	_, err = c.Do(bound(t), Request{Act: Stop, Unit: "c590.service"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "systemd was asked")
}

func TestManyCallsGoOverOneConnection(t *testing.T) {
	r := newRig(t)
	const n = 50
	for i := range n {
		r.unit(fmt.Sprintf("m%d.service", i), slow)
	}
	r.helper()
	c, _ := r.client(nil)
	require.NoError(t, c.Wait(bound(t)))
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = c.Do(bound(t), Request{Act: Start, Unit: unit.Name(fmt.Sprintf("m%d.service", i))})
		})
	}
	require.Eventually(t, func() bool { return len(r.did()) == n }, 10*time.Second, time.Millisecond)
	for i := n - 1; i >= 0; i-- {
		n := unit.Name(fmt.Sprintf("m%d.service", i))
		require.Eventually(t, func() bool { return r.m.Ready(n) == nil }, 10*time.Second, time.Millisecond)
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 1, strings.Count(r.log.text(), "the runtime is connected"))
}

func TestDeadlineLeavesTheJobAndItsEndIsToldLate(t *testing.T) {
	r := newRig(t)
	r.unit("s.service", slow)
	r.helper()
	var l later
	c, _ := r.client(l.take)
	require.NoError(t, c.Wait(bound(t)))
	ctx, cancel := context.WithTimeout(WithFor(t.Context(), "operator alice"), 2*time.Second)
	defer cancel()
	out, err := c.Do(ctx, Request{Act: Start, Unit: "s.service"})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.NotZero(t, out.Job)
	require.ErrorContains(t, err, fmt.Sprintf("start: s.service: job %d has not ended; it goes on", out.Job))
	require.Empty(t, l.seen())
	require.NoError(t, r.m.Ready("s.service"))
	end := l.one(t)
	require.NoError(t, end.Err)
	require.Equal(t, Late{ID: end.ID, Act: Start, Unit: "s.service", For: "operator alice", Began: end.Began,
		Outcome: Outcome{Job: out.Job, Result: unit.JobDone, After: Standing{unit.Active, "running"}, Took: end.Took}}, end)
	require.Equal(t, Standing{unit.Inactive, "dead"}, out.Before.Standing, "as far as it is known")
}

// TestActSaysHowTheUnitStoodAndStands: nobody else has to look, also of a call that
// comes anew to another helper.
func TestActSaysHowTheUnitStoodAndStands(t *testing.T) {
	r := newRig(t)
	r.unit("s.service", sleeper)
	r.m.ties["s.service"] = unit.Ties{Names: []unit.Name{"a.service", "s.service"}, TriggeredBy: []unit.Name{"s.timer"}}
	stop := r.helper()
	c, _ := r.client(nil)
	want := &Stood{Standing{unit.Inactive, "dead"}, "s.service", []unit.Name{"a.service", "s.service"}, []unit.Name{"s.timer"}, false}
	ctx := WithCall(bound(t), Call{ID: strings.Repeat("c", 20)})
	out, err := c.Do(ctx, Request{Act: Start, Unit: "s.service"})
	require.NoError(t, err)
	require.Equal(t, want, out.Before)
	require.Equal(t, Standing{unit.Active, "running"}, out.After)
	stop()
	r.helper()
	again, err := c.Do(ctx, Request{Act: Start, Unit: "s.service"})
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Len(t, r.did(), 1)
	r.m.mu.Lock()
	r.m.untold = map[unit.Name]bool{"s.service": true}
	r.m.mu.Unlock()
	out, err = c.Do(bound(t), Request{Act: Restart, Unit: "s.service"})
	require.NoError(t, err)
	require.Equal(t, Standing{unit.Active, "running"}, out.After, "it was asked")

	r.m.mu.Lock()
	r.m.ties["s.service"] = unit.Ties{Names: slices.Repeat([]unit.Name{"a.service"}, maxNames+1)}
	r.m.mu.Unlock()
	out, err = c.Do(bound(t), Request{Act: Stop, Unit: "s.service"})
	require.NoError(t, err)
	require.Equal(t, &Stood{Standing{unit.Active, "running"}, "s.service", nil, nil, true}, out.Before, "there is no room for all of its names")
	_, err = c.Do(bound(t), Request{Act: Restart, Unit: "none.service"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.EqualError(t, err, "restart: none.service: Unit none.service not found.")
	require.Len(t, r.did(), 3)
}

func TestNoWaitAnswersWhenTheJobIsQueued(t *testing.T) {
	r := newRig(t)
	r.unit("s.service", slow)
	r.helper()
	var l later
	c, _ := r.client(l.take)
	out, err := c.Do(bound(t), Request{Act: Start, Unit: "s.service", NoWait: true})
	require.NoError(t, err)
	require.NotZero(t, out.Job)
	require.Empty(t, out.Result)
	require.Eventually(t, func() bool { return r.m.Ready("s.service") == nil }, 10*time.Second, time.Millisecond)
	_, err = c.Do(bound(t), Request{Act: ResetFailed, Unit: "s.service"})
	require.NoError(t, err)
	require.Empty(t, l.seen())
}

// TestCallsOfARuntimeThatDiesAreToldToTheNext: a restart in flight when the
// runtime dies is later reported as what it became.
func TestCallsOfARuntimeThatDiesAreToldToTheNext(t *testing.T) {
	for _, ends := range []string{"before the next one", "after the next one"} {
		t.Run(ends, func(t *testing.T) {
			r := newRig(t)
			r.unit("s.service", slow)
			r.helper()
			c, stop := r.client(nil)
			require.NoError(t, c.Wait(bound(t)))
			ctx, cancel := context.WithCancel(WithFor(t.Context(), "operator alice"))
			gone := make(chan struct{})
			go func() { defer close(gone); _, _ = c.Do(ctx, Request{Act: Restart, Unit: "s.service"}) }()
			r.logged("job queued", "unit=s.service")
			stop()
			cancel()
			<-gone
			next := me()
			next.Invocation = strings.Repeat("b", 32)
			r.m.setMain(next)
			if strings.HasPrefix(ends, "before") {
				require.NoError(t, r.m.Ready("s.service"))
				r.logged("act done", "act=restart")
			}
			var l later
			c, stop = r.client(l.take)
			require.NoError(t, c.Wait(bound(t)))
			if strings.HasPrefix(ends, "after") {
				require.Empty(t, l.seen())
				require.NoError(t, r.m.Ready("s.service"))
			}
			end := l.one(t)
			require.NoError(t, end.Err)
			require.Equal(t, "restart s.service operator alice done", fmt.Sprintf("%s %s %s %s", end.Act, end.Unit, end.For, end.Result))
			// It is told once: not to the next connection, and not to the next helper.
			stop()
			c, _ = r.client(l.take)
			_, err := c.Do(bound(t), Request{Act: ResetFailed, Unit: "s.service"})
			require.NoError(t, err)
			require.Len(t, l.seen(), 1)
		})
	}
}

func TestHelperThatIsStartedAnewGoesOn(t *testing.T) {
	r := newRig(t)
	r.unit("s.service", slow)
	r.unit("lost.service", slow)
	stop := r.helper()
	c, _ := r.client(nil)
	type answer struct {
		out Outcome
		err error
	}
	got := map[unit.Name]chan answer{"s.service": make(chan answer, 1), "lost.service": make(chan answer, 1)}
	for n, to := range got {
		go func() {
			out, err := c.Do(bound(t), Request{Act: Restart, Unit: n})
			to <- answer{out, err}
		}()
		r.logged("job queued", "unit="+string(n))
	}
	stop()
	require.NoError(t, r.m.Ready("lost.service"), "while nobody listens")
	r.m.Drain()
	r.helper()
	a := <-got["lost.service"]
	require.NoError(t, a.err)
	require.Equal(t, unit.JobDone, a.out.Result)
	require.Equal(t, "systemd's own word was not heard: the unit is active (running) now", a.out.Note)
	require.NoError(t, r.m.Ready("s.service"))
	a = <-got["s.service"]
	require.NoError(t, a.err)
	require.Equal(t, unit.JobDone, a.out.Result)
	require.Empty(t, a.out.Note)
	require.Len(t, r.did(), 2, "each was done once")
}

func TestCallIsSentOnceThereIsAHelper(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	c, _ := r.client(nil)
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(bound(t), Request{Act: Start, Unit: "a.service"})
		done <- err
	}()
	r.helper()
	require.NoError(t, <-done)
	require.Equal(t, []string{"start a.service"}, r.did())
}

func TestWithoutAHelperNothingIsDone(t *testing.T) {
	r := newRig(t)
	c, err := NewClient(ClientOptions{Path: r.dir + "/none", Logger: discard()})
	require.NoError(t, err)
	r.run(c.Run)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Do(ctx, Request{Act: Start, Unit: "a.service"})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "start: a.service: the root helper was not asked")
}

func TestPID1ThatDoesNotAnswerLeavesTheActUndone(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	require.NoError(t, c.Wait(bound(t)))
	r.m.mu.Lock()
	r.m.tiesErr = errors.New("it hangs")
	r.m.mu.Unlock()
	_, err := c.Do(bound(t), Request{Act: Start, Unit: "a.service"})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "nothing was done: it hangs")
	r.m.mu.Lock()
	r.m.err = errors.New("no word")
	r.m.mu.Unlock()
	_, err = c.Do(bound(t), Request{Act: Start, Unit: "a.service"})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.Empty(t, r.did())
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	_, err := c.Do(bound(t), Request{Act: Start, Unit: "a.service"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { b, err := readBook(r.calls); return err == nil && len(b) == 0 }, 5*time.Second, 10*time.Millisecond)
}

func readBook(path string) (map[string]*entry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	copied := path + ".copy"
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		return nil, err
	}
	b, err := openBook(copied)
	if err != nil {
		return nil, err
	}
	return b.calls, b.close()
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"0123456789abcdef","act":"restart","unit":"a.service","nowait":true,"for":"x"}`))
	f.Add([]byte(`{"id":"0123456789abcdef","act":"start","unit":"a.service","call":"0123456789abcdef","since":5}`))
	f.Add([]byte(`{"id":"0123456789abcdef","act":"enable","unit":"/a/b.service"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var a asked
		if json.Unmarshal(line, &a) != nil {
			return
		}
		r, err := a.check()
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.ClassOf(err))
			return
		}
		_, err = unit.ParseName(string(r.Unit))
		require.NoError(t, err)
		require.NotContains(t, string(r.Unit), "/")
		require.Contains(t, []Act{Start, Stop, Restart, Enable, Disable, ResetFailed}, r.Act)
	})
}
