package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host"
	"stead/host/report"
)

// trouble is a declaration that cannot be, and what is to be said of it.
type trouble struct {
	text
	outcome report.Outcome
	reason  report.Reason
	words   string // in the text: systemd's own, where there are any
	line    string // in one of the last log lines, where that is where systemd says it
}

func troubles() []trouble {
	const ensured = "ensure: running\ntimeout: 4s\n"
	exec := func(what string) string { return "[Service]\n" + what }
	return []trouble{
		{text{"never", ensured, exec("Type=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n")},
			report.Failed, report.BudgetSpent, "not done within 4s: still starting", ""},
		{text{"dies", ensured, exec("ExecStart=/bin/false\n")},
			report.Failed, report.Exited, "its process exited with status 1", "Failed with result 'exit-code'"},
		{text{"later", ensured, exec("ExecStart=/bin/sh -c 'echo no fuel; sleep 0.3; exit 7'\n")},
			report.Failed, report.Exited, "its process exited with status 7", "no fuel"},
		{text{"nowhere", ensured, exec("ExecStart=/nonexistent/program\n")},
			report.Failed, report.Exited, "203 (EXEC: its program cannot be run)", "No such file or directory"},
		{text{"misspelt", ensured, "[Servce]\nExecStart=/bin/sleep infinity\n"},
			report.Failed, report.BadUnit, "has a bad unit file setting", "Service has no ExecStart="},
		{text{"missing", ensured, ""},
			report.Failed, report.Missing, "no unit missing.service on this node", ""},
		{text{"masked", ensured, sleeper(0)},
			report.Refused, report.IsMasked, "masked by /etc/systemd/system/masked.service", ""},
		{text{"condition", ensured, "[Unit]\nConditionPathExists=/not/here\n" + sleeper(0)},
			report.Waiting, report.Condition, "ConditionPathExists=/not/here is not met", ""},
		{text{"loop", ensured, exec("ExecStart=/bin/false\nRestart=always\nRestartSec=100ms\nStartLimitBurst=1000\n")},
			report.Failed, report.CrashLoop, "crash loop", ""},
		{text{"slowloop", ensured, exec("ExecStart=/bin/false\nRestart=always\nRestartSec=30\n")},
			report.Failed, report.CrashLoop, "its process exited with status 1; systemd waits to restart it", ""},
		{text{"static", ensured + "enabled: true\n", exec("ExecStart=/bin/sleep infinity\n")},
			report.Refused, report.NoInstall, "it is static: it has no [Install] section", ""},
	}
}

// TestEveryTroubleHasItsOwnOutcomeAndHoldsNobodyUp declares all of them in one
// folder with twenty units that are in order.
func TestEveryTroubleHasItsOwnOutcomeAndHoldsNobodyUp(t *testing.T) {
	m := install(t)
	m.Run(t, "systemctl", "mask", "masked.service")
	var bad, good []string
	for _, d := range troubles() {
		bad = append(bad, d.String())
	}
	for i := range 20 {
		good = append(good, up(fmt.Sprintf("good%02d", i), sleeper(i)))
	}
	from := m.declare(map[string]string{"bad": documents(bad...), "good": documents(good...)})
	m.startHost()
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("good%02d", i)
	}
	t.Logf("20 units were converged after %s, whatever became of the others", m.converged(from, names...).Round(time.Millisecond))
	for _, d := range troubles() {
		m.outcome(d.name, d.outcome, d.reason)
	}
	for _, d := range troubles() {
		last := ""
		m.until(d.name+" has its words", func() bool {
			r := m.asked()[d.name]
			last = fmt.Sprintf("%s %s %s\n%s", r.Outcome, r.Reason, r.Text, strings.Join(r.Lines, "\n"))
			return r.Outcome == d.outcome && r.Reason == d.reason && strings.Contains(r.Text, d.words) &&
				strings.Contains(strings.Join(r.Lines, "\n"), d.line)
		}, &last)
	}
	require.Equal(t, "active", m.prop("static.service", "ActiveState"), "a static unit runs all the same")
	require.Equal(t, "/dev/null", m.link(etc+"/masked.service"), "a mask is not written over")
	out, err := m.Exec(t.Context(), "stead", "host", "status")
	require.NoError(t, err)
	require.Equal(t, 3, out.Code, "not all is as declared")
	t.Logf("stead host status:\n%s", out.Stdout)
	for _, d := range troubles() {
		require.Regexp(t, `(?m)^`+d.name+`\.service +`+d.name+` +`+string(d.outcome)+` `, out.Stdout)
	}
}

// asked is what `stead host status -o json` prints, by declaration.
func (m *machine) asked() map[string]*report.Report {
	m.t.Helper()
	out, err := m.Exec(m.t.Context(), "stead", "host", "status", "-o", "json")
	require.NoError(m.t, err)
	var st host.Status
	require.NoError(m.t, json.Unmarshal([]byte(out.Stdout), &st), out.Stderr)
	all := make(map[string]*report.Report)
	for _, r := range st.Reports {
		all[r.Name] = r
	}
	return all
}
