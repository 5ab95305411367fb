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
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func unavailable() error {
	return fault.New(fault.Unavailable, "call", "", errors.New("nobody serves it"))
}
func timedOut() error { return fault.New(fault.Timeout, "call", "", errors.New("no answer")) }

func TestOnlyWhatChangedIsSent(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.after(time.Hour)
		require.Empty(t, r.batches(), "nothing is known before the loop has published")
		a, b := rep("a", report.Converged, ""), rep("b", report.Waiting, report.Starting)
		r.publish(a, b)
		r.after(time.Second)
		r.publish(a, rep("b", report.Converged, ""))
		r.after(time.Second)
		r.publish(a)
		r.after(time.Second)
		require.Equal(t, []string{"0→1 2", "1→2 1", "2→3 0 gone [b]"}, r.batches())
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}

func TestThatAUnitWasLookedAtIsNoNews(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Hour)
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Hour)
		require.Equal(t, []string{"0→1 1"}, r.batches())
		require.Equal(t, 1, r.mesh.asked[subject.Report])
	})
}

func TestANodeOfNothingSaysSo(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish()
		r.after(time.Minute)
		require.Equal(t, []string{"0→1 0"}, r.batches())
	})
}

func TestWhereItComesFromIsToldWhenThatChanges(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish()
		r.after(time.Second)
		r.setSource(wire.Source{Mesh: "m", Epoch: "e", Revision: 7, Accepted: time.Now()})
		r.after(time.Second)
		require.Len(t, r.batches(), 1, "that nothing changed is no news")
		r.setSource(wire.Source{Mesh: "m", Epoch: "e", Revision: 8, Trouble: "refused", Kept: []string{"x"}})
		r.after(time.Second)
		require.Equal(t, []string{"0→1 0", "1→2 0"}, r.batches())
		require.Equal(t, "refused", r.mesh.source.Trouble)
		require.Equal(t, []string{"x"}, r.mesh.source.Kept)
		r.setSource(wire.Source{Mesh: "m", Epoch: "e", Revision: 8, Same: 9, Trouble: "refused", Kept: []string{"x"}})
		r.after(time.Second)
		require.Equal(t, []string{"0→1 0", "1→2 0", "2→3 0"}, r.batches(), "that it is the same still is news after a change")
	})
}

// TestReportsAreNoOlderThanWhatTheyComeFrom: a batch that names a revision holds
// what was reported when that was in force, or later.
func TestReportsAreNoOlderThanWhatTheyComeFrom(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.asked = func() { // an index is taken over meanwhile
			r.mu.Lock()
			r.reports = []*report.Report{rep("a", report.Converged, "")}
			r.mu.Unlock()
		}
		r.publish(rep("a", report.Waiting, report.Starting))
		r.after(time.Second)
		require.Equal(t, []string{"a converged 1"}, r.stored())
		require.Len(t, r.batches(), 1)
	})
}

func TestABurstIsOneBatchAndALongOneIsNotHeldBack(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Second)
		for i := range 4 {
			r.publish(rep("a", report.Failed, "", gen(uint64(i))))
			r.after(20 * time.Millisecond)
		}
		r.after(200 * time.Millisecond)
		require.Len(t, r.batches(), 2)
		for i := range 20 {
			r.publish(rep("a", report.Failed, "", gen(uint64(10+i))))
			r.after(50 * time.Millisecond)
		}
		r.after(time.Second)
		require.InDelta(t, 6, len(r.batches()), 1, "one each 250 ms")
		require.Equal(t, []string{"a failed 29"}, r.stored())
	})
}

func TestWhatDiffersAfterACutIsSentAndNoMore(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		a := rep("a", report.Converged, "")
		r.publish(a, rep("b", report.Converged, ""))
		r.after(time.Second)
		r.mesh.cut()
		r.publish(a, rep("b", report.Failed, report.Exited))
		r.after(time.Minute)
		r.publish(a, rep("b", report.Converged, ""), rep("c", report.Converged, ""))
		r.after(time.Minute)
		before := r.mesh.asked[subject.Report]
		r.mesh.connect()
		r.after(time.Second)
		require.Equal(t, []string{"0→1 2", "1→2 1"}, r.batches())
		require.Equal(t, []string{"a converged 1", "b converged 1", "c converged 1"}, r.stored())
		require.Equal(t, 1, before, "without a connection nothing is tried")
	})
}

func TestFullIsSentWhenAControllerAsksForIt(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		a := rep("a", report.Converged, "")
		r.publish(a, rep("b", report.Converged, ""))
		r.after(time.Second)
		r.mesh.forget()
		r.after(time.Hour)
		require.Empty(t, r.stored(), "it asked for nothing")
		r.publish(a, rep("b", report.Failed, report.Exited))
		r.after(time.Second)
		require.Equal(t, []string{"0→1 2", "0→3 2"}, r.batches())
		require.Equal(t, []string{"a converged 1", "b failed 1"}, r.stored())
	})
}

func TestAControllerThatAsksForEverythingForEverIsAskedSlowly(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Report, trouble{full: true})
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Hour)
		require.Less(t, r.mesh.asked[subject.Report], 300)
		r.mesh.mend(subject.Report)
		r.after(time.Minute)
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}

// The answer was lost: the same batch is sent again under its number, so that a
// controller that has it knows it.
func TestABatchWhoseAnswerWasLostIsStoredOnce(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Report, trouble{err: timedOut(), after: true, times: 1})
		a := rep("a", report.Waiting, report.Starting)
		r.publish(a)
		r.after(200 * time.Millisecond)
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Minute)
		require.Equal(t, []string{"0→1 1", "1→2 1"}, r.batches())
		require.Equal(t, 3, r.mesh.asked[subject.Report])
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}

func TestWhatWasNotTakenIsMadeAnewFromWhatIsTrueThen(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Report, trouble{err: unavailable()})
		r.publish(rep("a", report.Waiting, report.Starting))
		r.after(10 * time.Minute)
		require.Less(t, r.mesh.asked[subject.Report], 60, "with growing delay")
		r.publish(rep("a", report.Converged, ""))
		r.mesh.mend(subject.Report)
		r.after(time.Minute)
		require.Equal(t, []string{"0→1 1"}, r.batches())
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}

func TestANewConnectionIsTriedAtOnce(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Report, trouble{err: timedOut()})
		r.publish(rep("a", report.Converged, ""))
		r.after(time.Hour)
		r.mesh.mend(subject.Report)
		r.mesh.cut()
		r.mesh.connect()
		r.after(10 * time.Millisecond)
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}

func TestASlowControllerHoldsUpNobody(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.mesh.befall(subject.Report, trouble{delay: 9 * time.Second})
		r.publish(rep("a", report.Waiting, report.Starting, did(1, "start", "a.service", "x")))
		r.after(time.Second)
		for range 3 {
			select {
			case r.published <- struct{}{}:
			case <-time.After(time.Second):
				t.Fatal("the loop's token is not taken")
			}
			r.after(time.Millisecond)
		}
		require.Equal(t, []string{"started a.service x"}, r.events())
	})
}

func TestEverythingGoesInPagesAndIsWholeAtTheLast(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		var all []*report.Report
		for n := range 1000 {
			all = append(all, rep(fmt.Sprintf("unit-%04d", n), report.Converged, "", func(r *report.Report) { r.Text = strings.Repeat("x", 3000) }))
		}
		r.publish(all...)
		r.after(time.Second)
		got := r.batches()
		require.Len(t, got, 5)
		require.Regexp(t, `^0→1 2\d\d more$`, got[0])
		require.Regexp(t, `^3→4 2\d\d more$`, got[3])
		require.Regexp(t, `^4→5 \d+$`, got[4])
		require.Len(t, r.stored(), 1000)
		require.LessOrEqual(t, r.mesh.largest, wire.MaxPage)

		for i := range all {
			all[i] = rep(all[i].Name, report.Failed, report.Exited, func(r *report.Report) { r.Text = strings.Repeat("y", 3000) })
		}
		r.publish(all...)
		r.after(time.Second)
		require.Regexp(t, `^5→6 2\d\d$`, r.batches()[5], "changes are whole without those that follow")
		require.Len(t, r.batches(), 10)
		require.LessOrEqual(t, r.mesh.largest, wire.MaxPage)
	})
}

func TestAHugeReportIsCutToWhatAMessageCarries(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		huge := rep("a", report.Failed, report.Exited, func(r *report.Report) {
			r.Text = strings.Repeat("é", 1<<20)
			for n := range 5000 {
				r.Lines = append(r.Lines, fmt.Sprint("line ", n, strings.Repeat("z", 1000)))
				r.Warnings = append(r.Warnings, fmt.Sprint("warning ", n))
			}
		})
		r.publish(huge)
		r.after(time.Second)
		got := r.mesh.reports["a"]
		require.NotNil(t, got)
		require.Contains(t, got.Lines[len(got.Lines)-1], "line 4999", "the last lines are worth most")
		require.Contains(t, got.Text, "é… and ")
		require.Less(t, r.mesh.largest, 100<<10)
		require.Len(t, huge.Lines, 5000, "the loop's own report is as it was")
	})
}

func TestADeclarationThatMovesToAnotherUnitIsOneReport(t *testing.T) {
	for _, turned := range []bool{false, true} {
		inRig(t, func(t *testing.T, r *rig) {
			old := rep("a", report.Waiting, report.Withdrawing, func(r *report.Report) { r.Unit = "old.service"; r.Text = "its stop takes long" })
			next := rep("a", report.Converged, "", gen(2), func(r *report.Report) { r.Unit = "new.service" })
			all := []*report.Report{old, next}
			if turned {
				all = []*report.Report{next, old}
			}
			r.publish(all...)
			r.after(time.Second)
			got := r.mesh.reports["a"]
			require.Equal(t, unit.Name("new.service"), got.Unit)
			require.Equal(t, []string{"old.service: waiting withdrawing its stop takes long"}, got.Warnings)
			require.Empty(t, next.Warnings)
			r.publish(next)
			r.after(time.Second)
			require.Empty(t, r.mesh.reports["a"].Warnings)
			require.Len(t, r.batches(), 2)
		})
	}
}

// Both have one name for the unit; the scope tells them apart.
func TestADeclarationThatMovesToTheOtherScopeIsOneReport(t *testing.T) {
	for _, turned := range []bool{false, true} {
		inRig(t, func(t *testing.T, r *rig) {
			old := rep("a", report.Waiting, report.Withdrawing, gen(2))
			next := rep("a", report.Refused, report.NoAccount, gen(2), func(r *report.Report) { r.Scope = unit.User })
			all := []*report.Report{old, next}
			if turned {
				all = []*report.Report{next, old}
			}
			r.publish(all...)
			r.after(time.Second)
			require.Equal(t, unit.User, r.mesh.reports["a"].Scope)
			require.Equal(t, []string{"a.service of scope system: waiting withdrawing "}, r.mesh.reports["a"].Warnings)
		})
	}
}

func TestAProcessAfterAnotherSendsEverythingOnce(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		a := rep("a", report.Converged, "")
		r.publish(a, rep("b", report.Converged, ""))
		r.after(time.Second)
		run := r.mesh.run
		r.stop()
		r.start()
		r.publish(a)
		r.after(time.Second)
		require.Equal(t, []string{"0→1 2", "0→1 1"}, r.batches())
		require.NotEqual(t, run, r.mesh.run)
		require.Equal(t, []string{"a converged 1"}, r.stored())
	})
}
