package system

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestWhateverStandsThereBecomesAsDeclaredAndComesBack meets starting states of
// every kind with declarations of every kind, made by chance: what is declared comes
// true, or a reason says why it does not; another look takes no step; and a
// withdrawal brings back what was there. It is five hundred of each, and two thousand
// with STEAD_CHECK=full; seeds that once failed are tried for ever.
func TestWhateverStandsThereBecomesAsDeclaredAndComesBack(t *testing.T) {
	const each = 125
	fresh := 4
	if full() {
		fresh = 16
	}
	seeds := slices.Concat(failedOnce(t), make([]uint64, fresh))
	for i := range fresh {
		seeds[len(seeds)-fresh+i] = uint64(i + 1)
	}
	if s := os.Getenv("STEAD_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{n}
	}
	m := install(t)
	require.NoError(t, m.WriteFile(etc+"/sink.service", []byte("[Service]\nExecStart=/bin/sleep 1000\n"), 0o644))
	m.startHost()
	m.converged(m.declare(map[string]string{"stays": up("stays", sleeper(0))}))
	seen, outcomes := map[cell]int{}, map[string]int{}
	for batch, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			here := *m
			here.t = t
			b := &batchOf{machine: &here, t: t, all: of(seed, batch*each, each)}
			b.run(outcomes)
			for _, s := range b.all {
				seen[s.cell]++
			}
		})
	}
	for _, c := range cells() {
		t.Logf("%3d  %s", seen[c], c)
		require.NotZero(t, seen[c], "no unit began so: %s", c)
	}
	for _, o := range sorted(outcomes) {
		t.Logf("%4d  %s", outcomes[o], o)
	}
}

// failedOnce are the seeds that failed once, one on a line.
func failedOnce(t *testing.T) []uint64 {
	t.Helper()
	data, err := os.ReadFile("testdata/property.seeds")
	require.NoError(t, err)
	var all []uint64
	for line := range strings.Lines(string(data)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || word == "#" {
			continue
		}
		n, err := strconv.ParseUint(word, 10, 64)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// batchOf are the units of one seed.
type batchOf struct {
	*machine
	t   *testing.T
	all []*probe
}

func (b *batchOf) run(outcomes map[string]int) {
	b.Run(b.t, "sh", "-c", script(b.all))
	before := b.snapshot()
	var docs []string
	for _, s := range b.all {
		docs = append(docs, s.document())
	}
	b.declare(map[string]string{"batch": documents(docs...)})
	reports := b.judged()
	for _, s := range b.all {
		r := reports[s.name]
		outcomes[string(r.Outcome)+" "+string(r.Reason)]++
		why := s.mayFail()
		switch {
		case r.Outcome == report.Converged:
			b.holds(s)
		case why == "":
			b.t.Errorf("%s is %s (%s): %s\nit began as %s\n%s", s.unit, r.Outcome, r.Reason, r.Text, s.cell, s.document())
		case r.Reason == "" || r.Text == "":
			b.t.Errorf("%s is %s without a reason", s.unit, r.Outcome)
		}
	}
	b.looksAgain(reports)
	b.declare(map[string]string{"batch": ""})
	b.until("all is given back", func() bool {
		st, err := b.status()
		return err == nil && len(st.Reports) == 1
	})
	for _, line := range before.Diff(b.snapshot()) {
		if !strings.HasPrefix(line, "/var/tmp/systemd-private-") && !slices.ContainsFunc(b.all, func(s *probe) bool { return b.forgiven(s, line) }) {
			b.t.Errorf("after the withdrawal: %s%s", line, b.about(line))
		}
	}
	b.clean()
}

// judged waits until everything that is declared is judged for good.
func (b *batchOf) judged() map[string]*report.Report {
	var all map[string]*report.Report
	why := ""
	// A reload that takes long keeps the next one away for ten times as long.
	if !b.within(3*patience, func() bool {
		st, err := b.status()
		if err != nil || !st.Source.Accepted.After(b.declared) {
			why = "the folder was not read"
			return false
		}
		all, why = map[string]*report.Report{}, ""
		for _, r := range st.Reports {
			all[r.Name] = r
		}
		for name := range b.generations {
			if r := all[name]; r == nil || r.Generation != b.generations[name] || r.Outcome == report.Waiting {
				why += fmt.Sprintf("\n%s: %+v", name, r)
			}
		}
		return why == ""
	}) {
		b.t.Fatalf("not all is judged: %s", why)
	}
	return all
}

// holds asks systemd and the disk whether what is reported converged is so.
func (b *batchOf) holds(s *probe) {
	if s.content != "" && s.masked != "true" && b.read(path.Join(etc, s.unit)) != s.content {
		b.t.Errorf("%s is not the file that is declared", s.unit)
	}
	if masked := b.link(path.Join(etc, s.unit)) == "/dev/null"; s.masked == "true" && !masked || s.masked == "false" && masked {
		b.t.Errorf("%s: its mask stands: %t", s.unit, masked)
	}
	install := s.content == "" && s.links == "enabled" || strings.Contains(s.content, "[Install]")
	link := b.link(path.Join(etc, s.target()+".wants", s.unit)) != ""
	if s.enabled == "true" && install && !link || s.enabled == "false" && install && link {
		b.t.Errorf("%s: its link stands: %t", s.unit, link)
	}
}

// looksAgain starts the host anew, which looks at everything with fresh eyes: what
// was converged takes no step by that.
func (b *batchOf) looksAgain(reports map[string]*report.Report) {
	var active []string
	for _, s := range b.all {
		active = append(active, s.unit)
	}
	states := b.props("ActiveState", active)
	for i, s := range b.all {
		want, ok := map[string]string{"running": "active", "restarted": "active", "stopped": "inactive"}[s.ensure]
		if r := reports[s.name]; ok && r.Outcome == report.Converged && states[i] != want && (want != "inactive" || states[i] != "failed") {
			b.t.Errorf("%s is reported converged, and is %s", s.unit, states[i])
		}
	}
	from := time.Now()
	b.Run(b.t, "systemctl", "restart", service)
	var again map[string]*report.Report
	b.until("all was looked at anew", func() bool {
		st, err := b.status()
		if err != nil {
			return false
		}
		again = map[string]*report.Report{}
		for _, r := range st.Reports {
			if r.Looked.After(from) && r.Outcome != report.Waiting {
				again[r.Name] = r
			}
		}
		return len(again) == len(b.all)+1
	})
	for _, s := range b.all {
		was, is := reports[s.name], again[s.name]
		if was.Outcome != report.Converged {
			continue
		}
		if is.Outcome != report.Converged {
			b.t.Errorf("%s was converged, and another look says %s (%s): %s", s.unit, is.Outcome, is.Reason, is.Text)
		}
		if len(is.Steps) > 0 {
			b.t.Errorf("another look at %s took steps: %+v\nit began as %s\n%s", s.unit, is.Steps, s.cell, s.document())
		}
	}
}

// forgiven is what a withdrawal cannot bring back: that a unit had failed, or ran
// although it was masked, and of what does not run the manager keeps in memory what
// it likes.
func (b *batchOf) forgiven(s *probe, line string) bool {
	is, ok := strings.CutPrefix(line, "unit "+s.unit+": ")
	return ok && (s.activity == "failed" || s.mask == "masked" || !strings.Contains(is, " active ") && !strings.Contains(is, "activating"))
}

// about says whose line that is.
func (b *batchOf) about(line string) string {
	for _, s := range b.all {
		if strings.Contains(line, s.unit) {
			return fmt.Sprintf("\nit began as %s, bare %t, vendor %t, runtime %t\n%s", s.cell, s.bare, s.vendor, s.runtime, s.document())
		}
	}
	return ""
}

// clean takes the starting states away.
func (b *batchOf) clean() {
	var files, units []string
	links := map[string]bool{}
	for _, s := range b.all {
		units = append(units, s.unit)
		files = append(files, path.Join(etc, s.unit), path.Join(lib, s.unit), path.Join("/run/systemd/system", s.unit), path.Join(etc, s.unit+".d"))
		for _, l := range s.linkPaths() {
			links[l] = true
		}
	}
	files = append(files, slices.Sorted(maps.Keys(links))...)
	b.Run(b.t, "sh", "-c", "systemctl stop "+strings.Join(units, " ")+" 2>/dev/null; rm -rf "+strings.Join(files, " ")+
		"; systemctl daemon-reload; systemctl reset-failed")
}
