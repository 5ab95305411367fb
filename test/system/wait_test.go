package system

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stead/host"
	"stead/host/report"
	"stead/test/lab"
)

// until waits for cond, and gives up after patience; why, if given, says more.
func (m *machine) until(what string, cond func() bool, why ...*string) {
	m.t.Helper()
	if !m.within(patience, cond) {
		for _, w := range why {
			what += ": " + *w
		}
		m.t.Fatalf("not within %s: %s", patience, what)
	}
}

// within is whether cond comes true in that time.
func (m *machine) within(bound time.Duration, cond func() bool) bool {
	m.t.Helper()
	return lab.Await(bound, cond)
}

// status asks the host over its socket.
func (m *machine) status() (host.Status, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
	defer cancel()
	return host.ReadStatus(ctx, m.Path("/run/stead/host.sock"))
}

// report is what the host says of a declaration or unit; nil when it says nothing.
func (m *machine) report(name string) *report.Report {
	st, err := m.status()
	if err != nil {
		return nil
	}
	for _, r := range st.Reports {
		if r.Name == name || string(r.Unit) == name {
			return r
		}
	}
	return nil
}

// converged waits until all that is declared, in its newest generation, or what
// is named of it, is converged by looks after from, and what was withdrawn is
// gone. It returns how long that took.
func (m *machine) converged(from time.Time, names ...string) time.Duration {
	m.t.Helper()
	last := ""
	m.until("converged", func() bool {
		last = m.amiss(from, names)
		return last == ""
	}, &last)
	return time.Since(from)
}

// amiss says what is not converged; "" when all is.
func (m *machine) amiss(from time.Time, names []string) string {
	st, err := m.status()
	if err != nil {
		return err.Error()
	}
	why := st.Source.Trouble
	if len(names) == 0 && !st.Source.Accepted.After(m.declared) {
		why += "\nthe folder was not read since it was changed"
	}
	seen := make(map[string]bool)
	for _, r := range st.Reports {
		seen[r.Name] = true
		switch {
		case len(names) > 0 && !slices.Contains(names, r.Name):
		case m.generations[r.Name] == 0:
			why += fmt.Sprintf("\n%s is not declared any more", r.Unit)
		case r.Outcome != report.Converged || r.Generation != m.generations[r.Name] || len(names) > 0 && !r.Looked.After(from):
			why += fmt.Sprintf("\n%s: %s %s %s (generation %d of %d)", r.Unit, r.Outcome, r.Reason, r.Text, r.Generation, m.generations[r.Name])
		}
	}
	for name := range m.generations {
		if !seen[name] && (len(names) == 0 || slices.Contains(names, name)) {
			why += fmt.Sprintf("\n%s has no report", name)
		}
	}
	return why
}

// outcome waits until the host states this outcome and reason of a declaration.
func (m *machine) outcome(name string, o report.Outcome, why report.Reason) *report.Report {
	m.t.Helper()
	var r *report.Report
	m.until(fmt.Sprintf("%s is %s (%s)", name, o, why), func() bool {
		r = m.report(name)
		return r != nil && r.Outcome == o && r.Reason == why
	})
	return r
}
