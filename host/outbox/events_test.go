package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestEachStepAndEachOutcomeIsToldOnceWithItsTime(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		write := did(1, "write", "/etc/systemd/system/a.service", "content differs")
		start := did(2, "start", "a.service", "it is inactive")
		r.publish(rep("a", report.Waiting, report.Pending))
		r.after(time.Second)
		r.publish(rep("a", report.Waiting, report.Starting, write, start))
		r.after(time.Second)
		r.publish(rep("a", report.Waiting, report.Settling, write, start))
		r.after(time.Second)
		at := born.Add(3 * time.Second)
		since := func(r *report.Report) { r.Since = at }
		r.publish(rep("a", report.Converged, "", write, start, since))
		r.after(time.Second)
		r.publish(rep("a", report.Converged, "", write, start, since))
		r.after(time.Hour)
		require.Equal(t, []string{
			"written a.service /etc/systemd/system/a.service: content differs",
			"started a.service it is inactive",
			"outcome a.service converged",
		}, r.events())
		e := r.mesh.events[2]
		require.Equal(t, at, e.At)
		require.Equal(t, born.Add(time.Second), r.mesh.events[0].At)
		require.Equal(t, []string{"host", "ws1", "a", "system"}, []string{e.Source, e.Node, e.Declaration, e.Scope})
		require.EqualValues(t, 1, e.Generation)
	})
}

func TestWhatPassesBackIsNoOutcome(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Second)
		start := did(5, "start", "a.service", "it was stopped")
		r.publish(rep("a", report.Waiting, report.Starting, start))
		r.after(time.Second)
		r.publish(rep("a", report.Converged, "", start))
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged", "started a.service it was stopped"}, r.events())
		r.publish(rep("a", report.Waiting, report.Starting, start, gen(2)))
		r.after(time.Second)
		r.publish(rep("a", report.Converged, "", start, gen(2)))
		r.after(time.Second)
		require.Equal(t, "outcome a.service converged", r.events()[2], "another generation converged")
		require.EqualValues(t, 2, r.mesh.events[2].Generation)
	})
}

func TestStepsThatDidNotSucceedSaySo(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Failed, report.CallError, func(r *report.Report) {
			r.Text = "no"
			r.Steps = []report.Step{{At: born, Action: "start", Object: "a.service", Error: "access denied"}}
		}))
		r.after(time.Second)
		require.Equal(t, []string{"started a.service failed start a.service: access denied", "outcome a.service failed call no"}, r.events())
	})
}

func TestOneReloadOfManyIsOneEvent(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		reload := did(1, "reload", "system manager", "its files changed")
		r.publish(rep("a", report.Converged, "", reload), rep("b", report.Converged, "", reload), rep("c", report.Converged, "", reload))
		r.after(time.Second)
		require.Contains(t, r.events(), "reload  system manager: its files changed (3 units)")
		require.Len(t, r.events(), 4)
	})
}

// The loop keeps only the last steps of a unit.
func TestStepsThatTookThePlaceOfOthersAreTold(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Contested, "", did(1, "start", "a.service", "1"), did(2, "start", "a.service", "2")))
		r.after(time.Second)
		r.publish(rep("a", report.Contested, "", did(2, "start", "a.service", "2"), did(3, "start", "a.service", "3")))
		r.after(time.Second)
		r.publish(rep("a", report.Contested, "", did(8, "start", "a.service", "8"), did(9, "start", "a.service", "9")))
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service contested", "started a.service 1", "started a.service 2", "started a.service 3",
			"started a.service 8", "started a.service 9"}, r.events())
	})
}

func TestWhatIsGivenBackIsTold(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		a := rep("a", report.Converged, "")
		unread := rep("b", report.Refused, report.Unsupported, func(r *report.Report) { r.Unit = "" })
		r.publish(a, unread)
		r.after(time.Second)
		r.publish(rep("b", report.Converged, ""))
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged", "outcome  refused unsupported", "outcome b.service converged",
			"given-back a.service withdrawn, and given back"}, r.events())
		require.WithinDuration(t, time.Now(), r.mesh.events[3].At, 2*time.Second)
	})
}

// The last steps of a withdrawal are in no report.
func TestTheLastStepsOfAWithdrawalAreTold(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Second)
		stop := did(1, "stop", "a.service", "withdrawn")
		r.publish(rep("a", report.Waiting, report.Withdrawing, stop))
		r.after(time.Second)
		end := time.Now().UTC()
		r.box.GivenBack(rep("a", "", "", stop, did(2, "remove", "/etc/a.service", "withdrawn"), func(r *report.Report) { r.Since = end }))
		r.after(time.Second)
		require.Len(t, r.events(), 3, "the reports are not those of after it yet")
		r.publish(rep("a", report.Converged, "", gen(2), func(r *report.Report) { r.Since = end.Add(time.Second) }))
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged", "outcome a.service waiting withdrawing", "stopped a.service withdrawn",
			"removed a.service /etc/a.service: withdrawn", "given-back a.service withdrawn, and given back", "outcome a.service converged"}, r.events())
		require.Equal(t, end, r.mesh.events[4].At)
		r.box.GivenBack(rep("a", "", "", func(r *report.Report) { r.Since = time.Now() }))
		r.publish()
		r.after(time.Hour)
		require.Len(t, r.events(), 7, "once")
	})
}

func TestThatControllersAreRefusedIsToldOnceAndWhenItEnds(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish()
		r.after(time.Second)
		r.setSource(wire.Source{Mesh: "m", Trouble: "the index is older than the one held"})
		r.after(time.Second)
		r.setSource(wire.Source{Mesh: "m", Trouble: "the index is older than the one held"})
		r.after(time.Second)
		r.stop()
		r.start()
		r.publish()
		r.after(time.Second)
		r.setSource(wire.Source{Mesh: "m"})
		r.after(time.Second)
		require.Equal(t, []string{"sync  refused the index is older than the one held", "sync  what controllers tell is accepted again"}, r.events())
	})
}

func TestEventsOfACutArriveInOrder(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Second)
		r.mesh.cut()
		for n := 1; n <= 3; n++ {
			r.publish(rep("a", report.Failed, report.Exited, did(10*n, "start", "a.service", fmt.Sprint(n)), func(r *report.Report) { r.Since = born.Add(time.Duration(10*n-5) * time.Second) }))
			r.after(time.Second)
			r.publish(rep("a", report.Converged, "", did(10*n, "start", "a.service", fmt.Sprint(n)), func(r *report.Report) { r.Since = born.Add(time.Duration(10*n+1) * time.Second) }))
			r.after(20 * time.Second)
		}
		require.Len(t, r.events(), 1)
		r.mesh.connect()
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged",
			"outcome a.service failed exited", "started a.service 1", "outcome a.service converged",
			"outcome a.service failed exited", "started a.service 2", "outcome a.service converged",
			"outcome a.service failed exited", "started a.service 3", "outcome a.service converged",
		}, r.events())
		require.Equal(t, 2, r.mesh.batches)
	})
}

// Across a reboot nothing is told twice, what changed meanwhile is told, and what
// was not sent yet is sent.
func TestEventsOutliveAReboot(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		a := rep("a", report.Converged, "")
		r.publish(a, rep("b", report.Converged, ""), rep("c", report.Converged, ""))
		r.after(time.Second)
		r.mesh.cut()
		r.publish(a, rep("b", report.Failed, report.Exited), rep("c", report.Converged, ""))
		r.after(time.Second)
		r.stop()
		r.start()
		r.after(time.Minute)
		r.publish(rep("a", report.Waiting, report.Pending), rep("b", report.Waiting, report.Pending))
		r.after(time.Second)
		r.publish(rep("a", report.Converged, "", did(90, "start", "a.service", "booted")), rep("b", report.Converged, ""))
		r.after(time.Second)
		r.mesh.connect()
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged", "outcome b.service converged", "outcome c.service converged",
			"outcome b.service failed exited", "given-back c.service withdrawn, and given back", "outcome b.service converged", "started a.service booted"}, r.events())
	})
}

// What happens in the last moments of a host is in the spool when it has ended.
func TestWhatHappenedLastIsKept(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Second)
		r.publish(rep("a", report.Failed, report.Exited))
		time.Sleep(time.Millisecond)
		r.stop()
		r.start()
		r.after(time.Second)
		r.publish(rep("a", report.Failed, report.Exited))
		r.after(time.Second)
		require.Equal(t, []string{"outcome a.service converged", "outcome a.service failed exited"}, r.events())
	})
}

func TestAnAnswerThatWasLostDoublesNoEvent(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Event, trouble{err: timedOut(), after: true, times: 2})
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Minute)
		require.Equal(t, 3, r.mesh.asked[subject.Event])
		require.Equal(t, []string{"outcome a.service converged"}, r.events())
		require.Zero(t, r.spool.Len())
	})
}

func TestEventsThatAreNeverTakenAreGivenUpAndCounted(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Event, trouble{err: fault.New(fault.Invalid, "event", "", errors.New("what is this?")), times: 1})
		r.publish(rep("a", report.Converged, ""), rep("b", report.Converged, ""))
		r.after(time.Minute)
		require.Equal(t, []string{"lost  2 events were lost: a controller refused them: event: what is this?"}, r.events())
	})
}

func TestADiskThatTakesNothingCostsNoEventWhileItLasts(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.broken = errors.New("no space left on device")
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Minute)
		r.publish(rep("a", report.Failed, report.Exited))
		r.after(time.Minute)
		require.Empty(t, r.events())
		require.Equal(t, []string{"a failed 1"}, r.stored(), "reports need no disk")
		r.mu.Lock()
		r.broken = nil
		r.mu.Unlock()
		r.after(time.Minute)
		require.Equal(t, []string{"outcome a.service converged", "outcome a.service failed exited"}, r.events())
	})
}

func TestWhatHappensToVeryManyAtOnceIsTold(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		var all []*report.Report
		for n := range maxPending + 5 {
			all = append(all, rep(fmt.Sprintf("u%04d", n), report.Converged, ""))
		}
		r.publish(all...)
		r.after(time.Minute)
		require.Len(t, r.events(), maxPending+5)
		require.NotContains(t, strings.Join(r.events(), "\n"), "lost")
	})
}

func TestADiskThatTakesNothingForLongCostsTheOldestAndThatIsTold(t *testing.T) {
	p := &pending{notes: map[string][]byte{}}
	for n := range maxPending + 3 {
		p.add([]wire.Event{{ID: fmt.Sprint(n), Node: "ws1"}}, nil)
		p.trim()
	}
	require.Len(t, p.events, maxPending)
	require.Equal(t, wire.Event{ID: "2+", Node: "ws1", Kind: "lost", Text: "3 events were lost: the disk took none"}, p.loss())
}

func TestTheProfileIsSentAtTheStartWhenItChangedInEachConnectionAndHourly(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		sent := func() int { r.mesh.mu.Lock(); defer r.mesh.mu.Unlock(); return len(r.mesh.profiles) }
		r.after(time.Second)
		require.Equal(t, 1, sent(), "before any report")
		r.profile.Systemd = "252"
		r.box.ProfileChanged()
		r.after(time.Second)
		require.Equal(t, 2, sent())
		require.Equal(t, "252", r.mesh.profiles[1].Systemd)
		r.after(59 * time.Minute)
		require.Equal(t, 2, sent())
		r.after(2 * time.Minute)
		require.Equal(t, 3, sent())
		r.mesh.cut()
		r.box.ProfileChanged()
		r.after(3 * time.Hour)
		require.Equal(t, 3, sent())
		r.mesh.removed = "operator alice removed ws1"
		r.mesh.connect()
		r.after(time.Second)
		require.Contains(t, []int{4, 5}, sent())
		require.Equal(t, "operator alice removed ws1", r.removed)
		r.mesh.befall(subject.Profile, trouble{err: unavailable(), times: 3})
		r.mesh.cut()
		r.mesh.connect()
		n := sent()
		r.after(time.Minute)
		require.Equal(t, n+1, sent())
	})
}
