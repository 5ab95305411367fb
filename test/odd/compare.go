package odd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/seats"
)

// Ask asks the node for a verb of node-service-manager.
type Ask func(verb subject.Verb, arguments any) (json.RawMessage, error)

// Compare holds what the verbs that read say of all units, unit files and journal
// entries of a node, that Make and Say were there for, against what systemctl and
// journalctl say, field by field: of one in each so many units, where each is asked
// about by itself.
func Compare(t *testing.T, run Run, ask Ask, each int) {
	comparison{t, run, ask, "system", least{181, len(Missing), 2, 81, 81}, each}.all(true)
}

// CompareUser is Compare for the units of an account, that MakeUser was there for, as
// systemctl --user and journalctl --user-unit have them there.
func CompareUser(t *testing.T, run Run, login string, ask Ask) {
	comparison{t, AsUser(run, login), ask, "user", least{61, len(Missing), 1, 41, 21}, 1}.all(false)
}

// least is how much there is to compare at least, where all units are asked about.
type least struct{ units, missing, unmet, listed, journals int }

// all compares everything, with the whole journal or without.
func (c comparison) all(journal bool) {
	for _, one := range []struct {
		name string
		f    func(comparison)
	}{
		{"status", comparison.status},
		{"units", comparison.units},
		{"files", comparison.files},
		{"journals of units", comparison.journals},
		{"whole journal", comparison.journal},
	} {
		if one.name == "whole journal" && !journal {
			continue
		}
		c.Run(one.name, func(t *testing.T) { one.f(comparison{t, c.run, c.ask, c.scope, c.least, c.each}) })
	}
}

// comparison is one of them.
type comparison struct {
	*testing.T
	run   Run
	ask   Ask
	scope string
	least least
	each  int
}

// names are those of the units that are asked about one by one. Which of the odd ones
// these are does not hang on what else there is on the machine.
func (c comparison) names() (some []unit.Name) {
	var odd, others []unit.Name
	for _, n := range Names(c.run) {
		if strings.Contains(string(n), "odd") {
			odd = append(odd, n)
		} else {
			others = append(others, n)
		}
	}
	for i, n := range slices.Concat(odd, others) {
		if i%c.each == 0 {
			some = append(some, n)
		}
	}
	return some
}

// answer asks for a verb and reads the reply.
func answer[R any](c comparison, verb subject.Verb, arguments any) (R, error) {
	c.Helper()
	var r R
	text, err := c.ask(verb, arguments)
	if err == nil {
		require.NoError(c, json.Unmarshal(text, &r), "%s", text)
	}
	return r, err
}

// details are what a status says, in the words that systemctl's output is read
// into.
func details(s seats.UnitStatus) unit.Details {
	d := unit.Details{
		ID: unit.Name(s.ID), Names: unitNames(s.Names), Description: s.Description, Documents: s.Documents, Load: unit.LoadState(s.Load),
		LoadError: s.LoadError, Active: unit.ActiveState(s.Active), Sub: s.Sub, Enablement: s.Enablement, Preset: s.Preset, Fragment: s.Fragment,
		DropIns: s.DropIns, NeedReload: s.NeedReload, Invocation: s.Invocation, Job: unit.Job{Type: unit.JobType(s.Job)},
		Triggers: unitNames(s.Triggers), TriggeredBy: unitNames(s.TriggeredBy), Result: s.Result, ExitCode: s.ExitCode, ExitStatus: s.ExitStatus,
		MainPID: s.MainPID, Memory: s.Memory, CPU: s.CPU, Tasks: s.Tasks, Restarts: s.Restarts, Unset: s.Unset,
	}
	if s.Since != nil {
		at := s.Since.UTC()
		d.Since = &at
	}
	return d
}

func unitNames(all []string) []unit.Name {
	out := []unit.Name{}
	for _, n := range all {
		out = append(out, unit.Name(n))
	}
	return out
}

func (c comparison) status() {
	compared, missing, unmet := 0, 0, 0
	for _, n := range c.names() {
		s, said := c.atRest(n)
		if s == nil {
			require.Equal(c, "not-found inactive", string(said.Load)+" "+string(said.Active), n)
			missing++
			continue
		}
		now := details(*s)
		for key := range now.Unset {
			require.NotEmpty(c, now.Unset[key], "%s of %s", key, n)
			now.Unset[key] = ""
		}
		require.Empty(c, cmp.Diff(said, now, figures(n), cmpopts.EquateEmpty()), n)
		for _, is := range []bool{(said.Memory == nil) == (now.Memory == nil), (said.CPU == nil) == (now.CPU == nil), (said.Tasks == nil) == (now.Tasks == nil)} {
			require.True(c, is, "a figure of %s is there and is not", n)
		}
		require.Equal(c, c.scope, s.Scope, n)
		require.Nil(c, s.DeclaredBy, n)
		unmet += c.unmet(n, s.Unmet)
		compared++
	}
	require.GreaterOrEqual(c, compared, c.least.units/c.each)
	require.GreaterOrEqual(c, missing, c.least.missing/c.each)
	require.GreaterOrEqual(c, unmet, c.least.unmet/c.each)
	c.Logf("%d units are told as systemctl tells them, %d are unknown to both", compared, missing)
}

// figures leaves out, of units that work, what is another at every look.
func figures(n unit.Name) cmp.Option {
	if strings.Contains(string(n), "odd") {
		return cmp.Options{}
	}
	return cmpopts.IgnoreFields(unit.Details{}, "CPU", "Memory", "Tasks")
}

// atRest asks for a unit until it is the same before and after systemctl is asked;
// nil when the verb knows no such unit.
func (c comparison) atRest(n unit.Name) (*seats.UnitStatus, unit.Details) {
	c.Helper()
	none := 0
	status := func() *seats.UnitStatus {
		reply, err := answer[seats.StatusReply](c, seats.Status, seats.StatusArguments{Unit: string(n), Lines: &none, Scope: c.scope})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		require.NoError(c, err, n)
		require.Len(c, reply.Units, 1, n)
		require.Empty(c, reply.Unreadable, n)
		return &reply.Units[0]
	}
	deadline := time.Now().Add(20 * time.Second)
	for before := status(); ; {
		said := Details(c.run, n)
		said.Job.ID = 0
		after := status()
		if before == nil && after == nil {
			return nil, said
		}
		diff := "it is there now and then"
		if before != nil && after != nil {
			diff = cmp.Diff(details(*before), details(*after), figures(n))
		}
		if diff == "" {
			return after, said
		}
		require.True(c, time.Now().Before(deadline), "%s does not come to rest: %s", n, diff)
		before = after
	}
}

// unmet holds conditions against systemctl status: show does not print them.
func (c comparison) unmet(n unit.Name, texts []string) int {
	c.Helper()
	if len(texts) == 0 {
		return 0
	}
	said := c.run("sh", "-c", `systemctl status --lines=0 --full --no-pager -- "$0" || true`, string(n))
	for _, text := range texts {
		require.Contains(c, said, text+" was not met", n)
	}
	require.Equal(c, strings.Count(said, " was not met"), len(texts), "%s: %s", n, said)
	return len(texts)
}
