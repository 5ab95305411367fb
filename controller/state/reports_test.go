package state_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/meshtest"
	"stead/mesh/wire"
)

func reportOf(name string, generation uint64, outcome report.Outcome) *report.Report {
	return &report.Report{Name: name, UID: "uid-" + name, Generation: generation, Scope: unit.System, Unit: unit.Name(name + ".service"), Outcome: outcome,
		State: report.State{Load: "loaded", Active: "active", Sub: "running", MainPID: 4711}}
}

func batch(run string, base, seq uint64, reports ...*report.Report) wire.ReportBatch {
	return wire.ReportBatch{Wire: wire.Version, Run: run, Base: base, Seq: seq, Source: wire.Source{Mesh: "m", Revision: seq}, Reports: reports}
}

// store stores a batch and returns whether everything is wanted.
func (c *controller) store(node string, b wire.ReportBatch) bool {
	c.t.Helper()
	full, err := c.StoreReports(c.t.Context(), node, b)
	require.NoError(c.t, err)
	return full
}

// lines waits until the summary of node has these lines: "name/generation/outcome".
func (c *controller) lines(node string, want ...string) {
	c.t.Helper()
	var have []string
	ok := func() bool {
		have = nil
		if s := c.Summary(node); s != nil {
			for _, l := range s.Lines {
				have = append(have, fmt.Sprintf("%s/%d/%s", l.Name, l.Generation, l.Outcome))
			}
		}
		return strings.Join(have, " ") == strings.Join(want, " ")
	}
	if !waits(ok) {
		c.t.Fatalf("%s: %v, not %v", node, have, want)
	}
}

func waits(ok func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

func TestReportsAreStoredOnTopOfEachOther(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	require.Nil(t, c.Summary("ws1"))
	none, err := c.Reports("ws1")
	require.NoError(t, err)
	require.Empty(t, none)

	require.True(t, c.store("ws1", batch("r1", 3, 4, reportOf("a", 1, report.Converged))), "what it follows is not there")
	require.False(t, c.store("ws1", batch("r1", 0, 5, reportOf("b", 1, report.Converged), reportOf("a", 1, report.Waiting))))
	c.lines("ws1", "a/1/waiting", "b/1/converged")
	// To whichever controller: the other one's copy may be late.
	require.False(t, other.store("ws1", batch("r1", 5, 6, reportOf("a", 2, report.Failed))))
	require.False(t, c.store("ws1", wire.ReportBatch{Run: "r1", Base: 6, Seq: 7, Gone: []string{"b"}, Reports: []*report.Report{reportOf("c", 1, report.Refused)}}))
	other.lines("ws1", "a/2/failed", "c/1/refused")

	require.False(t, other.store("ws1", batch("r1", 5, 6, reportOf("a", 1, report.Converged))), "it was stored before")
	require.False(t, c.store("ws1", batch("r1", 6, 7)), "and the last one too")
	require.True(t, c.store("ws1", batch("r1", 8, 9)), "one between is missing")
	require.True(t, c.store("ws1", batch("r2", 7, 8)), "another run")
	other.lines("ws1", "a/2/failed", "c/1/refused")

	all, err := other.Reports("ws1")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, reportOf("a", 2, report.Failed), all[0], "whole")
	some, err := other.Reports("ws1", "c", "nothing")
	require.NoError(t, err)
	require.Len(t, some, 1)
	require.Equal(t, "c", some[0].Name)
	require.WithinDuration(t, time.Now(), other.Summary("ws1").At, time.Minute)

	require.False(t, c.store("ws1", batch("r2", 0, 1, reportOf("z", 1, report.Converged))))
	other.lines("ws1", "z/1/converged")
	fresh := start(t, m, marker(t))
	require.NoError(t, fresh.Ready(t.Context()))
	require.Len(t, fresh.Summary("ws1").Lines, 1, "what is ready knows everything")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, fresh.Ready(ctx))
}

func TestReportsOfBeforeStayUntilEverythingCame(t *testing.T) {
	_, c := alone(t)
	require.False(t, c.store("ws1", batch("r1", 0, 1, reportOf("a", 1, report.Converged), reportOf("b", 1, report.Converged), reportOf("c", 1, report.Failed))))
	first := batch("r2", 0, 1, reportOf("a", 2, report.Converged))
	first.More = true
	require.False(t, c.store("ws1", first))
	c.lines("ws1", "a/2/converged", "b/1/converged", "c/1/failed")
	second := batch("r2", 1, 2, reportOf("d", 1, report.Waiting))
	second.More = true
	require.False(t, c.store("ws1", second))
	require.False(t, c.store("ws1", second), "sent again")
	c.lines("ws1", "a/2/converged", "b/1/converged", "c/1/failed", "d/1/waiting")
	require.False(t, c.store("ws1", batch("r2", 2, 3, reportOf("c", 2, report.Converged))))
	c.lines("ws1", "a/2/converged", "c/2/converged", "d/1/waiting")
	require.False(t, c.store("ws1", batch("r2", 3, 4)))
	c.lines("ws1", "a/2/converged", "c/2/converged", "d/1/waiting")
}

// Hosts talk to any controller, lose answers and send again; in the end every
// controller has what the host has.
func TestReportsOfManyHostsThroughSeveralControllers(t *testing.T) {
	m := meshtest.New(t)
	all := []*controller{start(t, m, marker(t)), start(t, m, marker(t)), start(t, m, marker(t))}
	var wait sync.WaitGroup
	const hosts, rounds = 8, 25
	want := make([][]string, hosts)
	for h := range hosts {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(h), 1))
			node, run, seq, base := fmt.Sprintf("ws%d", h), "r1", uint64(0), uint64(0)
			have := map[string]*report.Report{}
			for round := range rounds {
				if round == 15 {
					run, seq, base = "r2", 0, 0
				}
				name := fmt.Sprintf("d%d", random.IntN(6))
				have[name] = reportOf(name, uint64(round), report.Converged)
				seq++
				b := batch(run, base, seq, have[name])
				for again := true; again; {
					if b.Base == 0 {
						b.Reports = nil
						for _, r := range have {
							b.Reports = append(b.Reports, r)
						}
					}
					full := false
					for range 1 + random.IntN(2) { // an answer is lost now and then
						var err error
						if full, err = all[random.IntN(len(all))].StoreReports(t.Context(), node, b); err != nil {
							t.Errorf("store: %v", err)
							return
						}
					}
					if again = full; full {
						seq++
						b.Base, b.Seq = 0, seq
					}
				}
				base = seq
			}
			for n := range 6 {
				if r := have[fmt.Sprintf("d%d", n)]; r != nil {
					want[h] = append(want[h], fmt.Sprintf("%s/%d/converged", r.Name, r.Generation))
				}
			}
		})
	}
	wait.Wait()
	for _, c := range all {
		for h := range hosts {
			c.lines(fmt.Sprintf("ws%d", h), want[h]...)
		}
	}
}

func TestReportsThatAreTooLargeAreCutAndNeverLost(t *testing.T) {
	_, c := alone(t)
	random := rand.New(rand.NewPCG(1, 1))
	pool := make([]byte, 1<<20)
	for i := range pool {
		pool[i] = byte('!' + random.IntN(90))
	}
	noise := func(n int) string {
		from := random.IntN(len(pool) - n)
		return string(pool[from : from+n])
	}
	large := func(name string, outcome report.Outcome) *report.Report {
		r := reportOf(name, 1, outcome)
		r.Text, r.Hint = noise(5000), noise(5000)
		for range 50 {
			r.Lines, r.Warnings = append(r.Lines, noise(3000)), append(r.Warnings, noise(3000))
			r.Steps = append(r.Steps, report.Step{Action: "write", Object: noise(2000), Reason: noise(2000), Error: noise(2000)})
		}
		return r
	}
	require.False(t, c.store("one", batch("r1", 0, 1, large("a", report.Failed))))
	c.lines("one", "a/1/failed")
	one, err := c.Reports("one")
	require.NoError(t, err)
	require.LessOrEqual(t, len(one[0].Lines), 20)
	require.NotEmpty(t, one[0].Lines)
	require.LessOrEqual(t, len(one[0].Text), 2<<10)

	// 40 of them are too much: the ones in order are cut first.
	var some []*report.Report
	for i := range 40 {
		outcome := report.Converged
		if i < 3 {
			outcome = report.Failed
		}
		some = append(some, large(fmt.Sprintf("d%02d", i), outcome))
	}
	require.False(t, c.store("some", batch("r1", 0, 1, some...)))
	require.True(t, waits(func() bool { return c.Summary("some") != nil }))
	all, err := c.Reports("some")
	require.NoError(t, err)
	require.Len(t, all, 40)
	require.NotEmpty(t, all[0].Lines)
	require.NotEmpty(t, all[0].Steps)
	require.Empty(t, all[10].Lines)
	require.Empty(t, all[10].Steps)
	require.NotEmpty(t, all[10].Text)

	// And of very many the names and outcomes stay.
	var most []*report.Report
	for i := range 1500 {
		r := reportOf(fmt.Sprintf("d%04d", i), 1, report.Failed)
		r.Text, r.State.Sub = noise(400), noise(400)
		most = append(most, r)
	}
	require.False(t, c.store("most", batch("r1", 0, 1, most...)))
	require.True(t, waits(func() bool { return c.Summary("most") != nil }))
	require.Len(t, c.Summary("most").Lines, 1500)
	all, err = c.Reports("most")
	require.NoError(t, err)
	require.Len(t, all, 1500)
	require.Equal(t, "d1499", all[1499].Name)
	require.Equal(t, report.Failed, all[1499].Outcome)
	require.EqualValues(t, 1, all[1499].Generation)
	require.Equal(t, "the rest of this report was too large to be kept", all[1499].Text)
}

// What a controller keeps of a thousand nodes with a hundred declarations each
// must leave most of its 300 MiB to others.
func TestCopyOfReportsIsSmall(t *testing.T) {
	m, c := alone(t)
	const nodes, each = 300, 20
	var reports []*report.Report
	for i := range each {
		r := reportOf(fmt.Sprintf("declaration-%d", i), 1, report.Converged)
		r.Steps = []report.Step{{Action: "write", Object: "/etc/systemd/system/" + string(r.Unit), Reason: "it is missing"}, {Action: "start", Object: string(r.Unit), Reason: "declared running"}}
		reports = append(reports, r)
	}
	begun := time.Now()
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			for n := w; n < nodes; n += 8 {
				if full, err := c.StoreReports(t.Context(), fmt.Sprintf("ws%d", n), batch("r1", 0, 1, reports...)); err != nil || full {
					t.Errorf("store: %v", err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d nodes with %d reports each are stored in %s", nodes, each, time.Since(begun))
	before := heap()
	other := start(t, m, marker(t))
	lines := 0
	require.True(t, waits(func() bool {
		lines = 0
		for n := range nodes {
			if s := other.Summary(fmt.Sprintf("ws%d", n)); s != nil {
				lines += len(s.Lines)
			}
		}
		return lines == nodes*each
	}))
	grown := heap() - before
	t.Logf("another copy of them takes %d KiB, %d bytes for a line", grown>>10, grown/int64(lines))
	require.Less(t, grown, 6<<20+400*int64(lines))
	require.NotNil(t, other.Now())
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}

func TestBadBatchesAreRefused(t *testing.T) {
	_, c := alone(t)
	many := make([]*report.Report, 4001)
	for i := range many {
		many[i] = reportOf(fmt.Sprint(i), 1, report.Converged)
	}
	long := reportOf("a", 1, report.Converged)
	long.UID = strings.Repeat("x", 65)
	for name, b := range map[string]wire.ReportBatch{
		"no run":        batch("", 0, 1),
		"no number":     batch("r", 0, 0),
		"a later base":  batch("r", 5, 5),
		"a nil report":  batch("r", 0, 1, nil),
		"no name":       batch("r", 0, 1, reportOf("", 1, report.Converged)),
		"a long name":   batch("r", 0, 1, reportOf(strings.Repeat("x", 254), 1, report.Converged)),
		"a long word":   batch("r", 0, 1, long),
		"too many":      batch("r", 0, 1, many...),
		"too many gone": {Run: "r", Seq: 1, Gone: make([]string, 4001)},
	} {
		full, err := c.StoreReports(t.Context(), "ws1", b)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%s: %v", name, err)
		require.False(t, full)
	}
	_, err := c.StoreReports(t.Context(), "*", batch("r", 0, 1))
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	require.Nil(t, c.Summary("ws1"))
}

func TestStoredReportsThatCannotBeReadAreReplaced(t *testing.T) {
	_, c := alone(t)
	require.False(t, c.store("ws1", batch("r1", 0, 1, reportOf("a", 1, report.Converged))))
	c.lines("ws1", "a/1/converged")
	_, err := c.js().Publish(t.Context(), "$KV.reports.ws1", []byte("junk"))
	require.NoError(t, err)
	require.True(t, waits(func() bool { return c.Summary("ws1") == nil }))
	_, err = c.Reports("ws1")
	require.Equal(t, fault.Failed, fault.ClassOf(err), "%v", err)
	require.True(t, c.store("ws1", batch("r1", 1, 2, reportOf("a", 1, report.Failed))), "what it follows cannot be read")
	require.False(t, c.store("ws1", batch("r1", 0, 3, reportOf("a", 1, report.Failed))))
	c.lines("ws1", "a/1/failed")
}
