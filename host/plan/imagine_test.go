package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

func TestAReloadMakesTheManagersPictureThatOfTheDisk(t *testing.T) {
	const file = "/etc/systemd/system/web.service"
	at := func(n unit.Name, load unit.LoadState, fragment string) unit.Status {
		return unit.Status{Asked: n, ID: n, Load: load, Active: unit.Inactive, Sub: "dead", Fragment: fragment}
	}
	runs := at("web.service", unit.Loaded, file)
	runs.Active, runs.Sub, runs.Invocation = unit.Active, "running", "run"
	bad := at("web.service", unit.BadSetting, file)
	bad.Trouble.LoadError = "it has a bad unit file setting"
	stale := bad
	stale.NeedReload = true
	mended := at("web.service", unit.Loaded, file)
	gone := runs
	gone.Load, gone.Fragment = unit.NotFound, ""
	masked := at("web.service", unit.Masked, file)
	nick := runs
	nick.Asked = "nick.service"
	extra := at("web.service", unit.Loaded, file)
	extra.DropIns = []string{file + ".d/10-a.conf"}
	on := func(fragment, loaded string) Disk { return Disk{Fragment: fragment, Loaded: loaded} }
	for name, c := range map[string]struct {
		st       unit.Status
		was, now Disk
		want     unit.Status
	}{
		"a new unit":                             {at("web.service", unit.NotFound, ""), on("", ""), on(file, ""), at("web.service", unit.Loaded, file)},
		"a drop-in":                              {at("web.service", unit.Loaded, file), on(file, "1"), Disk{Fragment: file, Loaded: "1", DropIns: extra.DropIns}, extra},
		"new bytes are taken for good":           {bad, on(file, "1"), on(file, "2"), mended},
		"bytes that it has not read yet, too":    {stale, on(file, "1"), on(file, "1"), mended},
		"the same bytes are as bad as they were": {bad, on(file, "1"), on(file, "1"), bad},
		"a file that is gone under a run":        {runs, on(file, "1"), on("", ""), gone},
		"a mask":                                 {at("web.service", unit.Loaded, file), on(file, "1"), Disk{Fragment: file, Mask: file}, masked},
		"a mask that is gone":                    {masked, Disk{Fragment: file, Mask: file}, on(file, "1"), at("web.service", unit.Loaded, file)},
		"an alias that is a unit now":            {nick, on(file, "1"), on("/lib/systemd/system/nick.service", "1"), at("nick.service", unit.Loaded, "/lib/systemd/system/nick.service")},
		"a unit that is an alias now": {at("nick.service", unit.NotFound, ""), on("", ""), on(file, ""),
			unit.Status{Asked: "nick.service", ID: "web.service", Load: unit.Loaded, Active: unit.Inactive, Sub: "dead", Fragment: file}},
		"an instance goes by its template": {at("t@1.service", unit.NotFound, ""), on("", ""), on("/etc/systemd/system/t@.service", ""), at("t@1.service", unit.Loaded, "/etc/systemd/system/t@.service")},
		"a template has no path":           {at("t@.service", unit.NotFound, ""), on("", ""), on("/etc/systemd/system/t@.service", ""), at("t@.service", unit.Loaded, "")},
		"what has no file stays": {at("dev-sda.device", unit.Loaded, ""), on("", ""), Disk{DropIns: extra.DropIns},
			unit.Status{Asked: "dev-sda.device", ID: "dev-sda.device", Load: unit.Loaded, Active: unit.Inactive, Sub: "dead", DropIns: extra.DropIns}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Reread(c.st, c.was, c.now)) })
	}
}

func TestAJobThatEndsAsAskedForLeavesItsState(t *testing.T) {
	c := Clock{Monotonic: time.Hour}
	down := unit.Status{Load: unit.Loaded, Active: unit.Inactive, Sub: "dead", Trouble: unit.Trouble{Triggers: []unit.Name{"web.socket"}}}
	failed := unit.Status{Load: unit.Loaded, Active: unit.FailedState, Sub: "failed", Restarts: 3, Trouble: unit.Trouble{Result: "exit-code", ExitStatus: 1}}
	up := unit.Status{Load: unit.Loaded, Active: unit.Active, Sub: "running", Invocation: "old", Started: 1, MainPID: 7}
	once := Disk{Text: Text{Type: "oneshot"}}
	for name, tc := range map[string]struct {
		st     unit.Status
		job    unit.JobType
		disk   Disk
		active unit.ActiveState
		run    string
	}{
		"start":                          {down, unit.StartJob, Disk{}, unit.Active, "new"},
		"start of what failed":           {failed, unit.StartJob, Disk{}, unit.Active, "new"},
		"start of what runs":             {up, unit.StartJob, Disk{}, unit.Active, "old"},
		"start of a oneshot":             {down, unit.StartJob, once, unit.Inactive, "new"},
		"start of a oneshot that stays":  {down, unit.StartJob, Disk{Text: Text{Type: "oneshot", RemainAfter: true}}, unit.Active, "new"},
		"stop":                           {up, unit.StopJob, Disk{}, unit.Inactive, "old"},
		"stop of what rests":             {failed, unit.StopJob, Disk{}, unit.FailedState, ""},
		"restart":                        {up, unit.TryRestartJob, Disk{}, unit.Active, "new"},
		"restart of what does not run":   {down, unit.TryRestartJob, Disk{}, unit.Inactive, ""},
		"restart of a oneshot that runs": {up, unit.TryRestartJob, once, unit.Inactive, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Obeyed(tc.st, tc.job, tc.disk, c, "new")
			require.Equal(t, tc.active, got.Active)
			require.Equal(t, tc.run, got.Invocation)
			require.Equal(t, tc.st.Trouble.Triggers, got.Trouble.Triggers)
			if got.Invocation == "new" {
				require.Equal(t, c.Monotonic, got.Started)
				require.Zero(t, got.Restarts)
			}
			if got.Active == unit.Inactive && tc.st.Active != unit.Inactive {
				require.Equal(t, "success", got.Trouble.Result)
			}
		})
	}
}

func TestAPreviewTellsWhatStandsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		d    Decision
		want Preview
	}{
		"all is well":         {Decision{Outcome: report.Converged, Text: "it ran before this boot", Warnings: []string{"w"}}, Preview{Warnings: []string{"w"}}},
		"it has to settle":    {Decision{Outcome: report.Waiting, Reason: report.Settling, Text: "active for less than 1s"}, Preview{}},
		"somebody's job":      {Decision{Outcome: report.Waiting, Reason: report.Busy, Text: "t"}, Preview{Outcome: report.Waiting, Reason: report.Busy, Text: "t"}},
		"a rule forbids it":   {Decision{Outcome: report.Refused, Reason: report.IsMasked, Text: "t", Hint: "h"}, Preview{Outcome: report.Refused, Reason: report.IsMasked, Text: "t", Hint: "h"}},
		"it would not get up": {Decision{Outcome: report.Failed, Reason: report.Missing, Text: "t"}, Preview{Outcome: report.Failed, Reason: report.Missing, Text: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p Preview
			p.Conclude(c.d)
			require.Equal(t, c.want, p)
		})
	}
}
