package escalate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// killedIn notes an act as a helper does that is killed in it, and returns the call
// whose caller asks again.
func (r *rig) killedIn(request Request, e entry) Call {
	r.t.Helper()
	call := Call{ID: strings.Repeat("c", 32), Asked: time.Nanosecond}
	b, err := openBook(r.calls)
	require.NoError(r.t, err)
	e.ID, e.Call, e.Act, e.Unit, e.Began = call.id(request), call.ID, request.Act, request.Unit, time.Now()
	_, err = b.begin(&e)
	require.NoError(r.t, err)
	require.NoError(r.t, b.close())
	return call
}

// TestActThatAHelperWasKilledInIsGoneOnWith where nothing is done twice by that.
func TestActThatAHelperWasKilledInIsGoneOnWith(t *testing.T) {
	made := unit.Linking{Made: []unit.LinkMade{{Path: "/etc/x.wants/a.service", To: "/etc/a.service"}}}
	for name, c := range map[string]struct {
		request Request
		entry   func(stands unit.Status) entry
		did     []string // by the next helper
		holds   func(t *testing.T, out Outcome, err error)
	}{
		"links that may not be changed": {Request{Act: Enable, Unit: "a.service"}, func(unit.Status) entry { return entry{} }, []string{"enable a.service"},
			func(t *testing.T, out Outcome, err error) {
				require.NoError(t, err)
				require.Len(t, out.Links.Made, 1)
			}},
		"links that systemd may not know": {Request{Act: Enable, Unit: "a.service"}, func(unit.Status) entry { return entry{Links: &made} }, nil,
			func(t *testing.T, out Outcome, err error) {
				require.NoError(t, err)
				require.Equal(t, made, out.Links)
			}},
		"a reset": {Request{Act: ResetFailed, Unit: "a.service"}, func(unit.Status) entry { return entry{} }, []string{"reset-failed a.service"},
			func(t *testing.T, _ Outcome, err error) { require.NoError(t, err) }},
		"a job that systemd never saw": {Request{Act: Restart, Unit: "a.service"},
			func(st unit.Status) entry { return entry{Before: before{true, st.Invocation}} }, []string{"restart a.service"},
			func(t *testing.T, out Outcome, err error) {
				require.NoError(t, err)
				require.Equal(t, unit.JobDone, out.Result)
				require.Empty(t, out.Note)
			}},
		"a job that was done": {Request{Act: Restart, Unit: "a.service"},
			func(unit.Status) entry { return entry{Before: before{true, "another"}} }, nil,
			func(t *testing.T, out Outcome, err error) {
				require.NoError(t, err)
				require.Contains(t, out.Note, "systemd's own word was not heard")
			}},
		"a job of which nobody knows": {Request{Act: Start, Unit: "b.service"},
			func(unit.Status) entry { return entry{Before: before{false, "another"}} }, nil,
			func(t *testing.T, _ Outcome, err error) {
				require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
				require.ErrorContains(t, err, "how it ended was not heard")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.unit("a.service", sleeper)
			r.unit("b.service", sleeper)
			require.NoError(t, r.m.Enqueue(t.Context(), []unit.JobRequest{{Name: "a.service", Type: unit.StartJob}})[0].Err)
			require.Eventually(t, func() bool { return len(r.m.Drain().Jobs) > 0 }, 10*time.Second, time.Millisecond)
			before := len(r.did())
			call := r.killedIn(c.request, c.entry(r.look("a.service")))
			r.helper()
			client, _ := r.client(nil)
			for range 2 {
				out, err := client.Do(WithCall(bound(t), call), c.request)
				c.holds(t, out, err)
			}
			require.Equal(t, c.did, append([]string(nil), r.did()[before:]...))
		})
	}
}

func TestWhatWasNotDoneIsDoneWhenItIsAskedAgain(t *testing.T) {
	b, err := openBook(filepath.Join(t.TempDir(), "calls"))
	require.NoError(t, err)
	for range 2 {
		known, err := b.begin(&entry{ID: "one"})
		require.NoError(t, err)
		require.Nil(t, known)
		_, err = b.change("one", func(e *entry) {
			e.End = failed(fault.New(fault.Unavailable, "start", "a.service", errors.New("nothing was sent")))
		})
		require.NoError(t, err)
		require.NoError(t, b.told([]string{"one"}))
	}
	require.NoError(t, b.close())
}
