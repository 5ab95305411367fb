package reconcile

import (
	"fmt"
	"slices"
	"strings"
)

// Of a sensitive declaration nothing is shown that may quote what is declared:
// reports, dry runs and the log tell that it is there, and how much of it.

// conceal takes out of decisions what quotes the unit's files.
func (l *Loop) conceal(batch []*managed) {
	for _, m := range batch {
		if !m.mem.Sensitive {
			continue
		}
		m.plan.Text = m.unquoted(m.plan.Text)
		m.plan.Warnings = slices.Clone(m.plan.Warnings)
		for i, w := range m.plan.Warnings {
			m.plan.Warnings[i] = m.unquoted(w)
		}
	}
}

// notShown is in the place of what quotes a unit's files.
const notShown = "not shown: the declaration is sensitive"

// unquoted is a text without what is wrong with the [Install] section in words of it.
func (m *managed) unquoted(text string) string {
	for _, e := range m.disk.Text.InstallErrors {
		text = strings.ReplaceAll(text, e, notShown)
	}
	return text
}

// hidden says how many of something are not shown.
func hidden(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s %s", n, what, notShown)
}

// shownLines are the last log lines as they may be told.
func (m *managed) shownLines() []string {
	if !m.mem.Sensitive || len(m.lines) == 0 {
		return m.lines
	}
	return []string{hidden(len(m.lines), "log line")}
}

// allWarnings are all that there is to warn of, as it may be told.
func (m *managed) allWarnings() []string {
	verified := m.verified
	if m.mem.Sensitive && len(verified) > 0 {
		verified = []string{hidden(len(verified), "verifier warning")}
	}
	return slices.Concat(m.plan.Warnings, m.kept, verified)
}
