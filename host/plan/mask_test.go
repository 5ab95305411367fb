package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// maskedScene is scene with a declaration of masks: a unit that runs, enabled, with
// the file of its content in place.
func maskedScene(on bool, change ...func(*Input)) Input {
	return scene(append([]func(*Input){func(in *Input) {
		in.Service.Masked, in.Disk.Place = &on, path
		if on {
			in.Service.Enabled, in.Service.Ensure, in.Disk.Wants = nil, "", nil
		}
	}}, change...)...)
}

// isMasked lets a mask hold the unit, which the manager has read.
func isMasked(in *Input) {
	in.Disk.At[path], in.Disk.At[wants] = mask, Entry{Kind: Absent}
	in.Disk.Mask, in.Disk.Masks, in.Disk.OwnLinks = path, []string{path}, nil
	in.Status.Load = unit.Masked
}

// putByStead is that the mask is stead's own.
func putByStead(in *Input) {
	in.Memory.Wrote = map[string]Entry{path: mask, wants: {Kind: Absent}}
}

func TestDecideOnMasks(t *testing.T) {
	down := resting(unit.Inactive, "success")
	stopDone := func(in *Input) {
		in.Track = in.Track.See(*in).Queued(Job{ID: 7, Type: unit.StopJob, At: t0})
		in.Track = in.Track.Ended(unit.JobEnd{ID: 7, Result: unit.JobDone}, t0)
	}
	for _, tc := range []struct {
		name    string
		in      Input
		outcome report.Outcome
		reason  report.Reason
		steps   []string
	}{
		{"it is stopped before anything else", maskedScene(true), report.Waiting, report.Stopping, []string{"stop web.service"}},
		{"then its links go, and the mask takes the place of its file", maskedScene(true, down), report.Waiting, report.OwedReload,
			[]string{"unlink " + wants, "link " + path, "reload "}},
		{"somebody has started it meanwhile: it is masked all the same", maskedScene(true, stopDone), report.Waiting, report.OwedReload,
			[]string{"unlink " + wants, "link " + path, "reload "}},
		{"and stopped after that", maskedScene(true, isMasked, putByStead), report.Waiting, report.Stopping, []string{"stop web.service"}},
		{"the manager has not read the mask", maskedScene(true, isMasked, putByStead, down, func(in *Input) { in.Status.Load = unit.Loaded }),
			report.Waiting, report.OwedReload, []string{"reload "}},
		{"masked, and down", maskedScene(true, isMasked, putByStead, down), report.Converged, "", nil},
		{"failed is at rest", maskedScene(true, isMasked, putByStead, resting(unit.FailedState, "exit-code")), report.Converged, "", nil},
		{"masked by somebody, in other words", maskedScene(true, isMasked, down, func(in *Input) {
			in.Disk.At[path], in.Memory = Entry{Kind: Link, Target: "/dev//null"}, Memory{}
		}), report.Converged, "", nil},
		{"an empty file is no mask to rely on", maskedScene(true, isMasked, down, func(in *Input) { in.Disk.At[path] = entry(empty) }),
			report.Waiting, report.OwedReload, []string{"link " + path, "reload "}},
		{"a link that came back goes again", maskedScene(true, isMasked, putByStead, down, func(in *Input) {
			in.Memory.Found[wants], in.Disk.At[wants] = wantLink, wantLink
		}), report.Waiting, report.OwedReload, []string{"unlink " + wants, "reload "}},
		{"a unit that is not there yet", maskedScene(true, func(in *Input) {
			in.Disk.At, in.Disk.OwnLinks = map[string]Entry{path: {Kind: Absent}}, nil
			in.Disk.Fragment, in.Disk.Loaded, in.Memory = "", "", Memory{}
			in.Status = unit.Status{Asked: "web.service", ID: "web.service", Load: unit.NotFound, Active: unit.Inactive}
		}), report.Waiting, report.OwedReload, []string{"link " + path, "reload "}},
		{"a file in a higher folder wins", maskedScene(true, isMasked, putByStead, down, func(in *Input) {
			in.Status.Load, in.Status.Fragment, in.Disk.Mask, in.Disk.Fragment = unit.Loaded, "/etc/systemd/system.control/web.service", "", "/etc/systemd/system.control/web.service"
		}), report.Failed, report.Shadowed, nil},
		{"an alias is masked under its unit's name", maskedScene(true, func(in *Input) { in.Status.ID = "real.service" }), report.Refused, report.IsAlias, nil},
		{"a unit that refuses to be stopped is not masked", maskedScene(true, func(in *Input) { in.Disk.Text.RefuseStop = true }),
			report.Refused, report.ManualOnly, nil},

		{"nothing is declared of masks, and stead's own mask holds it: content takes its place", scene(isMasked, putByStead, down, func(in *Input) {
			in.Memory.Found = map[string]Entry{path: {Kind: Absent}, wants: {Kind: Absent}}
		}), report.Waiting, report.OwedReload, []string{"write " + path, "link " + wants, "reload "}},
		{"not to be masked: content takes the mask's place", maskedScene(false, isMasked, down, func(in *Input) { in.Memory = Memory{} }),
			report.Waiting, report.OwedReload, []string{"write " + path, "link " + wants, "reload "}},
		{"not to be masked: without content the mask goes", maskedScene(false, isMasked, down, func(in *Input) {
			in.Memory, in.Service.Content, in.Disk.Wants = Memory{}, nil, nil
		}), report.Waiting, report.OwedReload, []string{"unlink " + path, "reload "}},
		{"not to be masked: an empty file goes too", maskedScene(false, isMasked, down, func(in *Input) {
			in.Memory, in.Service.Content, in.Disk.Wants = Memory{}, nil, nil
			in.Disk.At[path] = entry(empty)
		}), report.Waiting, report.OwedReload, []string{"remove " + path, "reload "}},
		{"not to be masked: a mask that was taken away does not come back", maskedScene(false, func(in *Input) {
			in.Service.Content, in.Disk.Wants, in.Disk.OwnLinks = nil, nil, nil
			in.Memory.Found, in.Memory.Wrote = map[string]Entry{path: mask}, map[string]Entry{path: {Kind: Absent}}
			in.Disk.At = map[string]Entry{path: {Kind: Absent}}
			in.Status.Fragment, in.Disk.Fragment = "/usr/lib/systemd/system/web.service", "/usr/lib/systemd/system/web.service"
		}), report.Converged, "", nil},
		{"not to be masked: a vendor's mask stays", maskedScene(false, isMasked, down, func(in *Input) {
			in.Service.Content, in.Disk.Wants, in.Disk.Masks = nil, nil, nil
			in.Disk.Mask = "/usr/lib/systemd/system/web.service"
		}), report.Refused, report.IsMasked, nil},
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

func TestAMaskIsGivenBackAfterTheStop(t *testing.T) {
	in := scene(func(in *Input) {
		in.Service, in.Disk.Wants, in.Disk.OwnLinks = nil, nil, nil
		in.Memory.Found[path] = mask
	})
	require.Equal(t, []string{"stop web.service"}, actions(Decide(in)))
	in.Status.Active = unit.Inactive
	require.Equal(t, []string{"unlink " + wants, "link " + path, "reload "}, actions(Decide(in)))
}

func TestWhoSaysHowAMaskIsLifted(t *testing.T) {
	for hint, in := range map[string]Input{
		"masked: false": scene(isMasked, func(in *Input) { in.Memory = Memory{} }),
		"declare its content, which comes before /usr/lib/systemd/system/web.service": scene(isMasked, func(in *Input) {
			in.Memory, in.Disk.Mask, in.Disk.Masks, in.Service.Content = Memory{}, "/usr/lib/systemd/system/web.service", nil, nil
		}),
		"rm /etc/systemd/system.control/web.service": scene(isMasked, func(in *Input) {
			in.Memory, in.Disk.Mask, in.Disk.Masks = Memory{}, "/etc/systemd/system.control/web.service", nil
		}),
	} {
		require.Equal(t, hint, Decide(in).Hint)
	}
	require.Equal(t, shape.Stopped, ensure(maskedScene(true)))
}

// A masked unit of somebody else's can be what is declared of it: at rest, and not
// enabled. It is stopped where it runs still.
func TestAMaskedUnitCanBeStopped(t *testing.T) {
	no := false
	stopped := func(active unit.ActiveState) Input {
		return scene(resting(active, "success"), func(in *Input) {
			in.Disk = Disk{Mask: path, Masks: []string{path}, Place: path, At: map[string]Entry{path: mask}}
			in.Memory.Found, in.Memory.Wrote = nil, nil
			in.Status.Load, in.Status.Fragment = unit.Masked, path
			in.Service.Content, in.Service.Ensure, in.Service.Enabled = nil, shape.Stopped, &no
		})
	}
	d := Decide(stopped(unit.Active))
	require.Equal(t, []string{"stop web.service"}, actions(d), "%+v", d)
	d = Decide(stopped(unit.Inactive))
	require.Empty(t, d.Steps)
	require.NotEqual(t, report.Refused, d.Outcome, "%+v", d)
	for _, wants := range []func(*shape.Service){
		func(s *shape.Service) { s.Ensure = shape.Running },
		func(s *shape.Service) { yes := true; s.Enabled = &yes },
		func(s *shape.Service) { text := "[Service]\n"; s.Content = &text },
		func(s *shape.Service) { s.DropIns = map[string]string{"a.conf": "[Unit]\n"} },
	} {
		in := stopped(unit.Inactive)
		wants(in.Service)
		d := Decide(in)
		require.Equal(t, report.Refused, d.Outcome, "%+v", d)
		require.Equal(t, report.IsMasked, d.Reason)
	}
}
