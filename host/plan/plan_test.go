package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const (
	path  = "/etc/systemd/system/web.service"
	wants = "/etc/systemd/system/multi-user.target.wants/web.service"
)

func entry(digest string) Entry { return Entry{Kind: File, Digest: digest, Mode: 0o644} }

var wantLink = Entry{Kind: Link, Target: path}

// scene is an Input that is right in every way: declared running and enabled,
// up for an hour, files and links as wanted.
func scene(change ...func(*Input)) Input {
	yes := true
	content := "new"
	in := Input{
		Service: &shape.Service{Name: "web", Unit: "web.service", Scope: unit.System, Content: &content,
			Ensure: shape.Running, Enabled: &yes, Timeout: 2 * time.Minute, OnWithdraw: shape.Restore},
		Generation: 1,
		Status: unit.Status{Asked: "web.service", ID: "web.service", Load: unit.Loaded, Active: unit.Active, Sub: "running",
			Fragment: path, Invocation: "i1", Started: time.Hour, Changed: time.Hour},
		Disk: Disk{
			Wants:    []Want{{Path: path, Entry: entry("d1"), Content: []byte("new"), Why: "content"}, {Path: wants, Entry: wantLink, Why: "enabled"}},
			At:       map[string]Entry{path: entry("d1"), wants: wantLink},
			OwnLinks: []string{wants},
			Loaded:   "L1", Fragment: path, Text: Text{HasInstall: true},
		},
		Memory: Memory{Unit: "web.service", Name: "web", Generation: 1,
			Found: map[string]Entry{path: {Kind: Absent}, wants: {Kind: Absent}},
			Wrote: map[string]Entry{path: entry("d1"), wants: wantLink}, Activity: unit.Inactive,
			Loaded: Loaded{Digest: "L1", Boot: "b", At: time.Minute}, Taken: Taken{Digest: "L1", Invocation: "i1"}},
		Clock: Clock{Wall: t0, Monotonic: 2 * time.Hour, Boot: "b"},
	}
	for _, c := range change {
		c(&in)
	}
	in.Track = in.Track.See(in)
	return in
}

func resting(active unit.ActiveState, result string) func(*Input) {
	return func(in *Input) {
		in.Status.Active, in.Status.Sub, in.Status.Trouble.Result = active, "dead", result
	}
}

// actions lists the steps as "action object: reason".
func actions(d Decision) []string {
	var out []string
	for _, s := range d.Steps {
		object := s.Path
		if object == "" {
			object = string(s.Unit)
		}
		out = append(out, string(s.Action)+" "+object)
	}
	return out
}

func TestDecide(t *testing.T) {
	no := false
	for _, tc := range []struct {
		name    string
		in      Input
		outcome report.Outcome
		reason  report.Reason
		steps   []string
	}{
		{"all right", scene(), report.Converged, "", nil},
		{"nothing there yet: files, links, then the reload, and no job before it", scene(func(in *Input) {
			in.Disk.At = map[string]Entry{path: {Kind: Absent}, wants: {Kind: Absent}}
			in.Status = unit.Status{Asked: "web.service", ID: "web.service", Load: unit.NotFound, Active: unit.Inactive}
			in.Disk.Fragment, in.Disk.Loaded = "", ""
			in.Memory = Memory{}
		}), report.Waiting, report.OwedReload, []string{"write " + path, "link " + wants, "reload "}},
		{"content differs", scene(func(in *Input) { in.Disk.At[path] = entry("old") }),
			report.Waiting, report.OwedReload, []string{"write " + path, "reload "}},
		{"mode differs", scene(func(in *Input) { e := entry("d1"); e.Mode = 0o666; in.Disk.At[path] = e }),
			report.Waiting, report.OwedReload, []string{"write " + path, "reload "}},
		{"stopped from outside", scene(resting(unit.Inactive, "success")),
			report.Waiting, report.Starting, []string{"start web.service"}},
		{"first drop-in: the manager says no reload is needed, its list of drop-ins says otherwise", scene(func(in *Input) {
			in.Disk.DropIns = []string{path + ".d/10-a.conf"}
		}), report.Waiting, report.OwedReload, []string{"reload "}},
		{"same mtime, other bytes", scene(func(in *Input) { in.Disk.Loaded = "L2" }),
			report.Waiting, report.OwedReload, []string{"reload "}},
		{"a reload flag that stays on is obeyed once", scene(func(in *Input) {
			in.Status.NeedReload = true
			in.Track.ReloadedFor = Definition(in.Disk)
		}), report.Converged, "", nil},
		{"the run is older than its loaded definition", scene(func(in *Input) {
			in.Disk.Loaded, in.Memory.Loaded.Digest = "L2", "L2"
		}), report.Waiting, report.Refreshing, []string{"restart web.service"}},
		{"a timer is not restarted for a new definition", scene(func(in *Input) {
			in.Disk.Loaded, in.Memory.Loaded.Digest, in.Status.ID = "L2", "L2", "web.timer"
		}), report.Converged, "", nil},
		{"an inactive unit that nobody asked to run stays so", scene(resting(unit.Inactive, "success"), func(in *Input) {
			in.Service.Ensure = shape.Unmanaged
		}), report.Converged, "", nil},
		{"enabled: false removes the unit's own links", scene(func(in *Input) {
			in.Service.Enabled, in.Disk.Wants = &no, in.Disk.Wants[:1]
		}), report.Waiting, report.OwedReload, []string{"unlink " + wants, "reload "}},
		{"enabled: false removes the unit's own links, whoever made them", scene(func(in *Input) {
			in.Service.Enabled, in.Disk.Wants = &no, in.Disk.Wants[:1]
			delete(in.Memory.Found, wants)
			delete(in.Memory.Wrote, wants)
		}), report.Waiting, report.OwedReload, []string{"unlink " + wants, "reload "}},
		{"a link of somebody else's that enabled: false took away is not put back", scene(func(in *Input) {
			in.Service.Enabled, in.Disk.Wants, in.Disk.OwnLinks = &no, in.Disk.Wants[:1], nil
			in.Memory.Found[wants], in.Memory.Wrote[wants] = wantLink, Entry{Kind: Absent}
			in.Disk.At[wants] = Entry{Kind: Absent}
		}), report.Converged, "", nil},
		{"a drop-in that is no longer declared goes", scene(func(in *Input) {
			p := path + ".d/10-a.conf"
			in.Memory.Found[p], in.Memory.Wrote[p], in.Disk.At[p] = Entry{Kind: Absent}, entry("x"), entry("x")
		}), report.Waiting, report.OwedReload, []string{"remove " + path + ".d/10-a.conf", "reload "}},
		{"masked", scene(func(in *Input) { in.Disk.Mask = path }), report.Refused, report.IsMasked, nil},
		{"our own file emptied is no mask", scene(func(in *Input) {
			in.Disk.Mask, in.Disk.At[path] = path, entry("empty")
		}), report.Waiting, report.OwedReload, []string{"write " + path, "reload "}},
		{"somebody's empty file is one", scene(func(in *Input) {
			in.Disk.Mask, in.Disk.At[path], in.Memory.Wrote = path, entry("empty"), nil
		}), report.Refused, report.IsMasked, nil},
		{"a path that cannot be looked at is not written", scene(func(in *Input) {
			in.Disk.Errs, in.Disk.At[path] = []error{errors.New("read /etc: input/output error")}, Entry{}
		}), report.Failed, report.DiskError, nil},
		{"an [Install] that systemd would refuse", scene(func(in *Input) {
			in.Disk.Text.InstallErrors, in.Disk.Text.InstallFailed = []string{"x"}, true
		}), report.Refused, report.NoInstall, nil},
		{"an [Install] with a remark", scene(func(in *Input) {
			in.Disk.Text.InstallErrors = []string{"x"}
		}), report.Converged, "", nil},
		{"alias of a protected unit", scene(func(in *Input) { in.Status.ID = "dbus.service" }), report.Refused, report.Protected, nil},
		{"an alias link that only the machine's specifiers make protected", scene(func(in *Input) {
			in.Disk.Wants = append(in.Disk.Wants, Want{Path: "/etc/systemd/system/dbus.service", Entry: wantLink, Why: "enabled"})
		}), report.Refused, report.Protected, nil},
		{"a link that makes a protected unit require it", scene(func(in *Input) {
			in.Disk.Wants = append(in.Disk.Wants, Want{Path: "/etc/systemd/system/dbus.service.requires/web.service", Entry: wantLink, Why: "enabled"})
		}), report.Refused, report.Protected, nil},
		{"owned by another declaration", scene(func(in *Input) { in.Owner = Owner{"first", "web.service"} }), report.Refused, report.OwnedBy, nil},
		{"static and enabled: refused, and it runs all the same", scene(resting(unit.Inactive, ""), func(in *Input) {
			in.Disk.Text.HasInstall, in.Disk.Wants = false, in.Disk.Wants[:1]
			delete(in.Memory.Found, wants)
		}), report.Waiting, report.Starting, []string{"start web.service"}},
		{"static and enabled, running", scene(func(in *Input) {
			in.Disk.Text.HasInstall, in.Disk.Wants = false, in.Disk.Wants[:1]
			delete(in.Memory.Found, wants)
		}), report.Refused, report.NoInstall, nil},
		{"no such unit", scene(func(in *Input) {
			in.Service.Content, in.Disk = nil, Disk{}
			in.Status, in.Memory = unit.Status{Asked: "web.service", ID: "web.service", Load: unit.NotFound, Active: unit.Inactive}, Memory{}
		}), report.Failed, report.Missing, nil},
		{"bad setting", scene(resting(unit.Inactive, ""), func(in *Input) {
			in.Status.Load, in.Status.Trouble.LoadError = unit.BadSetting, "Unit web.service has a bad unit file setting."
		}), report.Failed, report.BadUnit, nil},
		{"another file wins", scene(func(in *Input) {
			in.Status.Fragment, in.Disk.Fragment = "/etc/systemd/system.control/web.service", "/etc/systemd/system.control/web.service"
		}), report.Failed, report.Shadowed, nil},
		{"another drop-in of that name wins", scene(func(in *Input) {
			p := path + ".d/10-a.conf"
			in.Disk.Wants = append(in.Disk.Wants, Want{Path: p, Entry: entry("d2"), Why: "drop-in"})
			in.Disk.At[p] = entry("d2")
			in.Disk.Shadowed = map[string]string{p: "/etc/systemd/system.control/web.service.d/10-a.conf"}
		}), report.Failed, report.Shadowed, nil},
		{"a start would stop another declared unit", scene(resting(unit.Inactive, ""), func(in *Input) { in.Rival = "other.service" }),
			report.Refused, report.OwnedBy, nil},
		{"another drop-in wins, and the unit is kept running", scene(resting(unit.Inactive, ""), func(in *Input) {
			in.Disk.Shadowed = map[string]string{path: "/etc/systemd/system.control/web.service.d/10-a.conf"}
		}), report.Waiting, report.Starting, []string{"start web.service"}},
		{"a link is missing while a start that failed waits for its retry", scene(resting(unit.FailedState, "exit-code"), func(in *Input) {
			in.Disk.At[wants] = Entry{Kind: Absent}
			in.Track = in.Track.See(*in).Rejected(in.Clock.Wall)
		}), report.Waiting, report.OwedReload, []string{"link " + wants, "reload "}},
		{"another file wins over a template", scene(func(in *Input) {
			in.Service.Unit, in.Status = "web@.service", unit.Status{Asked: "web@.service", Load: unit.NotFound, Active: unit.Inactive}
			in.Disk.Fragment = "/etc/systemd/system.control/web@.service"
		}), report.Failed, report.Shadowed, nil},
		{"crash loop", scene(func(in *Input) {
			in.Status.Active, in.Status.Sub, in.Status.Restarts = unit.Activating, unit.SubAutoRestart, 4
		}), report.Failed, report.CrashLoop, nil},
		{"crashed with an older definition: the new one need not wait for RestartSec", scene(func(in *Input) {
			in.Status.Active, in.Status.Sub = unit.Activating, unit.SubAutoRestart
			in.Disk.Loaded, in.Memory.Loaded.Digest = "L2", "L2"
		}), report.Waiting, report.Starting, []string{"start web.service"}},
		{"declared stopped, starting", scene(func(in *Input) {
			in.Service.Ensure, in.Status.Active, in.Status.Sub = shape.Stopped, unit.Activating, unit.SubAutoRestart
		}), report.Waiting, report.Stopping, []string{"stop web.service"}},
		{"declared stopped, and failed is at rest", scene(resting(unit.FailedState, "exit-code"), func(in *Input) {
			in.Service.Ensure = shape.Stopped
		}), report.Converged, "", nil},
		{"fresh: not settled yet", scene(func(in *Input) { in.Status.Changed = in.Clock.Monotonic - time.Millisecond }),
			report.Waiting, report.Settling, nil},
		{"failed with an older definition: reset, then start", scene(resting(unit.FailedState, "exit-code"), func(in *Input) {
			in.Disk.Loaded, in.Memory.Loaded.Digest = "L2", "L2"
		}), report.Waiting, report.Starting, []string{"reset-failed web.service", "start web.service"}},
		{"refuses manual start", scene(resting(unit.Inactive, ""), func(in *Input) { in.Disk.Text.RefuseStart = true }),
			report.Refused, report.ManualOnly, nil},
		{"oneshot that ran is running", scene(resting(unit.Inactive, "success"), func(in *Input) {
			in.Disk.Text.Type = "oneshot"
			in.Memory.Oneshot = Oneshot{Digest: "L1", Boot: "b", Result: unit.JobDone}
		}), report.Converged, "", nil},
		{"oneshot that never ran", scene(resting(unit.Inactive, "success"), func(in *Input) { in.Disk.Text.Type = "oneshot" }),
			report.Waiting, report.Starting, []string{"start web.service"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			require.Equal(t, tc.outcome, d.Outcome, d.Text)
			require.Equal(t, tc.reason, d.Reason, d.Text)
			require.Empty(t, cmp.Diff(tc.steps, actions(d)))
			for _, s := range d.Steps {
				require.NotEmpty(t, s.Reason, "every step has a reason")
			}
		})
	}
}

func TestWithdrawOrder(t *testing.T) {
	in := scene(func(in *Input) { in.Service, in.Disk.Wants, in.Disk.OwnLinks = nil, nil, nil })
	require.Equal(t, []string{"stop web.service"}, actions(Decide(in)), "it stops while its old file is there")

	in.Status.Active = unit.Inactive
	require.Equal(t, []string{"unlink " + wants, "remove " + path, "reload "}, actions(Decide(in)))

	in.Disk.At = map[string]Entry{path: {Kind: Absent}, wants: {Kind: Absent}}
	in.Disk.Fragment, in.Disk.Loaded = "", ""
	require.Equal(t, []string{"reload "}, actions(Decide(in)))

	in.Status = unit.Status{Asked: "web.service", ID: "web.service", Load: unit.NotFound, Active: unit.Inactive}
	require.Equal(t, []string{"reload "}, actions(Decide(in)), "the definition that was loaded last is not that of the disk")
	in.Track = in.Track.Reloaded(in.Disk)
	d := Decide(in)
	require.Empty(t, actions(d))
	require.True(t, d.Done)
}

func TestWithdrawRestoresWhatWasThere(t *testing.T) {
	in := scene(func(in *Input) {
		in.Service, in.Disk.Wants, in.Disk.OwnLinks = nil, nil, nil
		in.Memory.Found[path] = entry("vendor")
		in.Memory.Found[wants] = wantLink
		in.Memory.Activity = unit.Active
	})
	require.Equal(t, []string{"write " + path, "reload "}, actions(Decide(in)), "a unit that ran before is not stopped")

	in.Disk.At[path], in.Disk.Loaded, in.Memory.Loaded.Digest = entry("vendor"), "L0", "L0"
	require.Equal(t, []string{"restart web.service"}, actions(Decide(in)), "it runs what stead brought")
}

func TestReleaseTouchesNothing(t *testing.T) {
	in := scene(func(in *Input) { in.Service, in.Memory.OnWithdraw = nil, shape.Release })
	d := Decide(in)
	require.Empty(t, d.Steps)
	require.True(t, d.Done)
}

// What others add is theirs, and counts: it is named.
func TestForeignDropInsAreNamed(t *testing.T) {
	in := scene(func(in *Input) {
		in.Disk.DropIns = []string{"/a/05-x.conf", "/a/10-a.conf", "/a/20-b.conf", "/a/30-c.conf", "/a/40-d.conf"}
		in.Status.DropIns = in.Disk.DropIns
		in.Memory.Found, in.Memory.Wrote = nil, nil
		p := path + ".d/10-a.conf"
		in.Disk.Wants = []Want{{Path: p, Entry: entry("d2"), Why: "drop-in"}}
		in.Disk.At[p] = entry("d2")
	})
	require.Equal(t, []string{"drop-ins of others are read after what is declared: /a/20-b.conf, /a/30-c.conf, /a/40-d.conf"}, Decide(in).Warnings)
	in.Disk.Wants = []Want{{Path: path, Entry: entry("d1"), Why: "content"}}
	require.Equal(t, []string{"drop-ins of others are read after what is declared: /a/05-x.conf, /a/10-a.conf, /a/20-b.conf, and 2 more"}, Decide(in).Warnings)
	in.Disk.Wants = nil
	require.Empty(t, Decide(in).Warnings)
}

// A run that systemd has forgotten, and results that say more than an exit code.
func TestWhyAUnitIsDown(t *testing.T) {
	tried := func(in *Input) {
		in.Track = in.Track.See(*in).Queued(Job{ID: 7, Type: unit.StartJob, At: t0})
		in.Track = in.Track.Ended(unit.JobEnd{ID: 7, Result: unit.JobDone}, t0)
		in.Track.NotBefore = t0.Add(time.Minute)
	}
	for text, in := range map[string]Input{
		"it was started, and its process ended by itself": scene(resting(unit.Inactive, ""), tried),
		"it was started, and stopped from outside": scene(resting(unit.Inactive, ""), tried, func(in *Input) {
			in.Track = in.Track.Ended(unit.JobEnd{ID: 8}, t0)
		}),
		"it took longer than systemd gives it (TimeoutStartSec=, TimeoutStopSec=, RuntimeMaxSec=)": scene(resting(unit.FailedState, "timeout"), tried, func(in *Input) {
			in.Status.Trouble.ExitCode, in.Status.Trouble.ExitStatus = 2, 15
		}),
	} {
		d := Decide(in)
		require.Equal(t, report.Exited, d.Reason)
		require.Equal(t, text, d.Text)
	}
}

// What touches nothing waits for nothing.
func TestAReleaseDoesNotWaitForWhatCannotBeRead(t *testing.T) {
	in := scene(func(in *Input) {
		in.Service, in.Memory.OnWithdraw = nil, shape.Release
		in.Disk.Errs = []error{errors.New("unreadable")}
	})
	require.True(t, Decide(in).Done)
}
