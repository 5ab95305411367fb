package plan

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

const conf = "/etc/app.toml"

// citing is scene with a trigger that the run has taken in.
func citing(how shape.OnChange, change ...func(*Input)) Input {
	return scene(append([]func(*Input){func(in *Input) {
		in.Service.OnChange, in.Service.Triggers, in.Status.CanReload = how, []string{conf}, true
		in.Disk.Triggers = map[string]Cited{conf: {Digest: "c1"}}
		in.Memory.Triggers = map[string]Trigger{conf: {Digest: "c1", Boot: "b", At: time.Minute, Taken: "c1", Run: "i1"}}
	}}, change...)...)
}

func changed(in *Input) { in.Disk.Triggers = map[string]Cited{conf: {Digest: "c2"}} }

func TestDecideOnAChangeToTakeIn(t *testing.T) {
	cannot := func(in *Input) { in.Status.CanReload = false }
	content := func(in *Input) { in.Disk.Loaded, in.Memory.Loaded.Digest = "L2", "L2" }
	for _, tc := range []struct {
		name    string
		in      Input
		outcome report.Outcome
		reason  report.Reason
		steps   []string
	}{
		{"nothing has changed", citing(""), report.Converged, "", nil},
		{"absent: a restart", citing("", changed), report.Waiting, report.Refreshing, []string{"restart web.service"}},
		{"restart", citing(shape.RestartOnChange, changed), report.Waiting, report.Refreshing, []string{"restart web.service"}},
		{"reload", citing(shape.ReloadOnChange, changed), report.Waiting, report.Refreshing, []string{"reload-unit web.service"}},
		{"reload, of its definition", citing(shape.ReloadOnChange, content), report.Waiting, report.Refreshing, []string{"reload-unit web.service"}},
		{"reload, and it cannot", citing(shape.ReloadOnChange, changed, cannot), report.Failed, report.CannotReload, nil},
		{"reload, and it cannot, and need not", citing(shape.ReloadOnChange, cannot), report.Converged, "", nil},
		{"reload or restart", citing(shape.ReloadOrRestart, changed), report.Waiting, report.Refreshing, []string{"reload-or-restart web.service"}},
		{"reload or restart, and it cannot reload", citing(shape.ReloadOrRestart, changed, cannot), report.Waiting, report.Refreshing, []string{"reload-or-restart web.service"}},
		{"none", citing(shape.IgnoreChange, changed, content), report.Converged, "", nil},
		{"a timer", citing("", changed, func(in *Input) { in.Status.ID = "web.timer" }), report.Converged, "", nil},
		{"a timer that is declared to be restarted", citing(shape.RestartOnChange, changed, func(in *Input) { in.Status.ID = "web.timer" }),
			report.Waiting, report.Refreshing, []string{"restart web.service"}},
		{"what cannot be restarted by hand runs on", citing("", changed, func(in *Input) { in.Disk.Text.RefuseStop = true }), report.Converged, "", nil},
		{"but it can be reloaded", citing(shape.ReloadOnChange, changed, func(in *Input) { in.Disk.Text.RefuseStop = true }),
			report.Waiting, report.Refreshing, []string{"reload-unit web.service"}},
		{"nobody knows what is there", citing("", func(in *Input) { in.Disk.Triggers = map[string]Cited{conf: {Trouble: "it cannot be read"}} }), report.Converged, "", nil},
		{"a unit that is down is not started for it", citing("", changed, resting(unit.Inactive, ""), func(in *Input) { in.Service.Ensure = shape.Unmanaged }),
			report.Converged, "", nil},
		{"it failed before its trigger changed", citing("", changed, resting(unit.FailedState, "exit-code")), report.Waiting, report.Starting,
			[]string{"reset-failed web.service", "start web.service"}},
		{"restarted, once", citing("", func(in *Input) { in.Service.Ensure = shape.Restarted }), report.Waiting, report.Starting, []string{"restart web.service"}},
		{"restarted takes a change in too", citing(shape.ReloadOnChange, changed, func(in *Input) { in.Service.Ensure = shape.Restarted }),
			report.Waiting, report.Starting, []string{"restart web.service"}},
		{"restarted, and that was done", citing("", func(in *Input) {
			in.Service.Ensure, in.Memory.Restarted = shape.Restarted, Restarted{Generation: 1, Old: "i0"}
		}), report.Converged, "", nil},
		{"restarted, asked for, and it runs on as it did", citing("", func(in *Input) {
			in.Service.Ensure, in.Memory.Restarted = shape.Restarted, Restarted{Generation: 1, Old: "i1"}
		}), report.Waiting, report.Starting, []string{"restart web.service"}},
		{"restarted, for the generation before", citing("", func(in *Input) {
			in.Service.Ensure, in.Generation, in.Memory.Restarted = shape.Restarted, 2, Restarted{Generation: 1, Old: "i0", Done: true}
		}), report.Waiting, report.Starting, []string{"restart web.service"}},
		{"restarted, by another declaration of that generation", citing("", func(in *Input) {
			in.Service.Ensure, in.Memory.UID, in.Memory.Restarted = shape.Restarted, "new", Restarted{UID: "old", Generation: 1, Old: "i0", Done: true}
		}), report.Waiting, report.Starting, []string{"restart web.service"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			require.Equal(t, tc.outcome, d.Outcome, d.Text)
			require.Equal(t, tc.reason, d.Reason, d.Text)
			require.Empty(t, cmp.Diff(tc.steps, actions(d)))
		})
	}
}

func TestWhatARunHasTakenInOfATrigger(t *testing.T) {
	const now = 2 * time.Hour // of scene's clock
	for name, c := range map[string]struct {
		in   Input
		want Trigger
	}{
		"first sight": {citing("", func(in *Input) { in.Memory.Triggers = nil }), Trigger{"c1", "b", now, "c1", "i1"}},
		"seen for the first time while it is down": {citing("", resting(unit.Inactive, ""), func(in *Input) { in.Memory.Triggers = nil }),
			Trigger{"c1", "b", now, "", ""}},
		"changed": {citing("", changed), Trigger{"c2", "b", now, "c1", "i1"}},
		"changed, and a run began after it was seen": {citing("", func(in *Input) {
			in.Status.Invocation, in.Status.Started = "i2", time.Hour
			in.Memory.Triggers = map[string]Trigger{conf: {Digest: "c1", Boot: "b", At: 30 * time.Minute, Taken: "c0", Run: "i1"}}
		}), Trigger{"c1", "b", 30 * time.Minute, "c1", "i2"}},
		"changed after a run began that nobody knew": {citing("", changed, func(in *Input) { in.Status.Invocation = "i2" }),
			Trigger{"c2", "b", now, "c1", "i2"}},
		"which is not forgotten at the next look": {citing("", changed, func(in *Input) {
			in.Status.Invocation = "i2"
			in.Memory.Triggers = map[string]Trigger{conf: {Digest: "c2", Boot: "b", At: now, Taken: "c1", Run: "i2"}}
		}), Trigger{"c2", "b", now, "c1", "i2"}},
		"seen before this boot": {citing("", func(in *Input) {
			in.Status.Invocation, in.Clock.Boot = "i2", "b2"
		}), Trigger{"c1", "b", time.Minute, "c1", "i2"}},
		"changed since another boot": {citing("", changed, func(in *Input) {
			in.Status.Invocation, in.Clock.Boot = "i2", "b2"
		}), Trigger{"c2", "b2", now, "c1", "i2"}},
		"none takes everything in": {citing(shape.IgnoreChange, changed), Trigger{"c2", "b", now, "c2", "i1"}},
		"a reload takes in what was there when it was asked for": {citing(shape.ReloadOnChange, func(in *Input) {
			in.Disk.Triggers = map[string]Cited{conf: {Digest: "c3"}}
			in.Memory.Refresh = Refresh{Invocation: "i1", Boot: "b", Digest: "L1", Triggers: map[string]string{conf: "c2"}}
			in.Track.reloaded = true
		}), Trigger{"c3", "b", now, "c2", "i1"}},
		"a reload of another run does not": {citing(shape.ReloadOnChange, changed, func(in *Input) {
			in.Memory.Refresh = Refresh{Invocation: "i0", Boot: "b", Digest: "L1", Triggers: map[string]string{conf: "c2"}}
			in.Track.reloaded = true
		}), Trigger{"c2", "b", now, "c1", "i1"}},
		"the manager has seen the reload": {citing(shape.ReloadOnChange, changed, func(in *Input) {
			in.Memory.Refresh = Refresh{Invocation: "i1", Boot: "b", At: time.Hour, Digest: "L1", Triggers: map[string]string{conf: "c2"}}
			in.Reloaded = time.Hour + time.Second
		}), Trigger{"c2", "b", now, "c2", "i1"}},
		"the manager has seen an earlier one": {citing(shape.ReloadOnChange, changed, func(in *Input) {
			in.Memory.Refresh = Refresh{Invocation: "i1", Boot: "b", At: time.Hour, Digest: "L1", Triggers: map[string]string{conf: "c2"}}
			in.Reloaded = time.Hour - time.Second
		}), Trigger{"c2", "b", now, "c1", "i1"}},
		"nobody knows what is there": {citing("", func(in *Input) { in.Disk.Triggers = map[string]Cited{conf: {Trouble: "x"}} }),
			Trigger{"c1", "b", time.Minute, "c1", "i1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := Remember(c.in)
			require.Equal(t, map[string]Trigger{conf: c.want}, m.Triggers)
			again := c.in
			again.Memory, again.Track = m, c.in.Track.Remembered()
			_, changed := Remember(again)
			require.False(t, changed, "once is enough")
		})
	}
	m, changed := Remember(citing("", func(in *Input) { in.Disk.Triggers = nil }))
	require.True(t, changed)
	require.Empty(t, m.Triggers, "what is cited no more is forgotten")
}

// A reload that takes a definition in, while the files change on.
func TestAReloadTakesADefinitionIn(t *testing.T) {
	in := citing(shape.ReloadOnChange, func(in *Input) {
		in.Disk.Loaded, in.Memory.Loaded = "L2", Loaded{Digest: "L2", Boot: "b", At: 2 * time.Hour}
		in.Memory.Refresh = Refresh{Invocation: "i1", Boot: "b", Digest: "L2"}
	})
	require.True(t, pending(in))
	in.Track.reloaded = true
	in.Disk.Loaded = "L3" // not loaded yet
	m, _ := Remember(in)
	require.Equal(t, Taken{Digest: "L2", Invocation: "i1"}, m.Taken)
}

func TestWhatAJobIsAskedForIsNotedBefore(t *testing.T) {
	in := citing(shape.ReloadOnChange, changed)
	m, is := Intend(in, Step{Action: ReloadUnit})
	require.True(t, is)
	require.Equal(t, Refresh{Invocation: "i1", Boot: "b", At: 2 * time.Hour, Digest: "L1", Triggers: map[string]string{conf: "c2"}}, m.Refresh)
	_, is = Intend(in, Step{Action: Restart})
	require.False(t, is, "another run tells by itself")
	in.Service.Ensure, in.Memory.UID = shape.Restarted, "u"
	m, is = Intend(in, Step{Action: Restart})
	require.True(t, is)
	require.Equal(t, Restarted{UID: "u", Generation: 1, Old: "i1"}, m.Restarted)

	in.Memory, in.Status.Invocation = m, "i2"
	m, is = Remember(in)
	require.True(t, is)
	require.True(t, m.Restarted.Done)
	in.Memory, in.Status.Invocation = m, "i1"
	require.Empty(t, actions(Decide(in)), "what is done stays done")
}

// A host that starts takes the reload of the one before it for its own.
func TestAReloadInTheQueueIsTakenUp(t *testing.T) {
	in := citing(shape.ReloadOnChange, changed, func(in *Input) {
		in.Memory.Refresh = Refresh{Invocation: "i1", Boot: "b", At: time.Hour, Digest: "L1", Triggers: map[string]string{conf: "c2"}}
		in.Status.Job = unit.Job{ID: 9, Type: unit.ReloadJob}
	})
	require.False(t, Unsure(in))
	d := Decide(in)
	require.Equal(t, []any{report.Waiting, report.Refreshing}, []any{d.Outcome, d.Reason}, d.Text)
	in.Track = in.Track.Ended(unit.JobEnd{ID: 9, Result: unit.JobDone}, t0)
	in.Status.Job = unit.Job{}
	in.Memory, _ = Remember(in)
	require.False(t, pending(in))
}

func TestAPulledUnitOfATemplateOrAFolderIsNoPuller(t *testing.T) {
	k := Disk{Wants: []Want{{Path: path, Entry: entry("x")}, {Path: "/etc/systemd/system/nick.service", Entry: wantLink},
		{Path: wants, Entry: wantLink}, {Path: "/etc/systemd/system/x.target.requires/web.service", Entry: wantLink}, {Path: wants, Entry: wantLink}}}
	require.Equal(t, []unit.Name{"multi-user.target", "x.target"}, k.Pullers())
}

// A look, and the question for one, pass between processes.
func TestALookIsPlainData(t *testing.T) {
	var k Disk
	fill(t, reflect.ValueOf(&k).Elem())
	k.Errs = nil // are told in words
	data, err := json.Marshal(k)
	require.NoError(t, err)
	var back Disk
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, k, back)
	on, text := false, ""
	q := Query{Unit: "web.service", Service: &shape.Service{Name: "web", Content: &text, Enabled: &on, Masked: &on, DropIns: map[string]string{"a": ""}, Timeout: time.Minute},
		Status: citing("").Status, Memory: citing("").Memory}
	data, err = json.Marshal(q)
	require.NoError(t, err)
	var asked Query
	require.NoError(t, json.Unmarshal(data, &asked))
	require.Equal(t, q, asked)
}
