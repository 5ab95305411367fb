package systemd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
	"stead/test/odd"
)

// TestVerbsSayWhatSystemctlSays makes units of all types in odd states and holds
// what the verbs answer against systemctl, field by field.
func TestVerbsSayWhatSystemctlSays(t *testing.T) {
	if !served(t, func(run func(args ...string) string) { odd.Make(run) }) {
		return
	}
	r := real{t: t, run: here(t), rig: realRig(t)}
	t.Run("status", r.compareStatus)
	t.Run("units", r.compareUnits)
	t.Run("files", r.compareFiles)
	t.Run("journal", r.compareJournal)
}

// told is what a status says, in the words that systemctl's output is read into.
func told(s seats.UnitStatus) unit.Details {
	d := unit.Details{
		ID: unit.Name(s.ID), Names: namesOfTexts(s.Names), Description: s.Description, Documents: s.Documents, Load: unit.LoadState(s.Load),
		LoadError: s.LoadError, Active: unit.ActiveState(s.Active), Sub: s.Sub, Enablement: s.Enablement, Preset: s.Preset, Fragment: s.Fragment,
		DropIns: s.DropIns, NeedReload: s.NeedReload, Invocation: s.Invocation, Job: unit.Job{Type: unit.JobType(s.Job)},
		Triggers: namesOfTexts(s.Triggers), TriggeredBy: namesOfTexts(s.TriggeredBy), Result: s.Result, ExitCode: s.ExitCode, ExitStatus: s.ExitStatus,
		MainPID: s.MainPID, Memory: s.Memory, CPU: s.CPU, Tasks: s.Tasks, Restarts: s.Restarts, Unset: s.Unset,
	}
	if s.Since != nil {
		at := s.Since.UTC()
		d.Since = &at
	}
	return d
}

func namesOfTexts(all []string) []unit.Name {
	out := []unit.Name{}
	for _, n := range all {
		out = append(out, unit.Name(n))
	}
	return out
}

func (r real) compareStatus(t *testing.T) {
	r.t, r.rig.t = t, t
	none, compared, missing := 0, 0, 0
	for _, n := range odd.Names(r.run) {
		status := func() (unit.Details, bool) {
			reply, err := r.status(seats.StatusArguments{Unit: string(n), Lines: &none, Scope: "system"})
			if fault.Is(err, fault.NotFound) {
				return unit.Details{}, false
			}
			require.NoError(t, err, n)
			return told(reply.Units[0]), true
		}
		deadline := time.Now().Add(10 * time.Second)
		for before, there := status(); ; {
			said := odd.Details(r.run, n)
			said.Job.ID = 0
			after, still := status()
			grows := cmpopts.IgnoreFields(unit.Details{}, "CPU", "Memory", "Tasks")
			if diff := cmp.Diff(before, after, grows); there != still || diff != "" {
				require.True(t, time.Now().Before(deadline), "%s does not come to rest: %s", n, diff)
				before, there = after, still
				continue
			}
			if !still {
				require.Equal(t, "not-found inactive", string(said.Load)+" "+string(said.Active), n)
				missing++
				break
			}
			for key := range after.Unset {
				require.NotEmpty(t, after.Unset[key], "%s of %s", key, n)
				after.Unset[key] = ""
			}
			require.Equal(t, said.Memory == nil, after.Memory == nil, n)
			require.Equal(t, said.CPU == nil, after.CPU == nil, n)
			require.Equal(t, said.Tasks == nil, after.Tasks == nil, n)
			require.Empty(t, cmp.Diff(said, after, grows, cmpopts.EquateEmpty()), n)
			compared++
			break
		}
	}
	require.Greater(t, compared, 180)
	require.Greater(t, missing, len(odd.Missing)-1)
	t.Logf("%d units are told as systemctl tells them, %d are unknown to both", compared, missing)
}

// list asks for all pages.
func (r real) list(a seats.UnitsArguments) []seats.UnitLine {
	r.t.Helper()
	var out []seats.UnitLine
	for {
		reply, err := r.units(a)
		require.NoError(r.t, err)
		if out = append(out, reply.Units...); !reply.More {
			return out
		}
		a.Cursor = reply.Cursor
	}
}

func (r real) compareUnits(t *testing.T) {
	r.t, r.rig.t = t, t
	for _, c := range []struct {
		args string
		a    seats.UnitsArguments
	}{
		{"--all", seats.UnitsArguments{All: true}},
		{"", seats.UnitsArguments{}},
		{"--all *odd*", seats.UnitsArguments{All: true, Patterns: []string{"*odd*"}}},
		{"--type=timer,socket --all", seats.UnitsArguments{All: true, Types: []string{"timer", "socket"}}},
		{"--state=failed", seats.UnitsArguments{States: []string{"failed"}}},
		{"--state=not-found,masked,auto-restart", seats.UnitsArguments{States: []string{"not-found", "masked", "auto-restart"}}},
		{"odd-running.service run-odd.mount", seats.UnitsArguments{Patterns: []string{"odd-running", "run-odd.mount"}}},
	} {
		var got []unit.Listed
		for _, l := range r.list(c.a) {
			got = append(got, unit.Listed{
				Name: unit.Name(l.Name), Description: l.Description, Load: unit.LoadState(l.Load), Active: unit.ActiveState(l.Active), Sub: l.Sub,
			})
			require.Equal(t, "system", l.Scope)
			require.Nil(t, l.DeclaredBy)
		}
		want := odd.Units(r.run, strings.Fields(c.args)...)
		for i := range want {
			want[i].Job = unit.Job{}
		}
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), c.args)
	}
	for _, l := range r.list(seats.UnitsArguments{All: true, Patterns: []string{"*odd*"}}) {
		require.Equal(t, r.show(l.Name, "UnitFileState"), l.Enablement, l.Name)
	}
}

func (r real) compareFiles(t *testing.T) {
	r.t, r.rig.t = t, t
	for _, c := range []struct {
		args string
		a    seats.UnitsArguments
	}{
		{"", seats.UnitsArguments{}},
		{"*odd*", seats.UnitsArguments{Patterns: []string{"*odd*"}}},
		{"--type=timer --type=socket --state=static,disabled", seats.UnitsArguments{Types: []string{"timer", "socket"}, States: []string{"static", "disabled"}}},
	} {
		c.a.Files = true
		var got []unit.ListedFile
		for _, l := range r.list(c.a) {
			got = append(got, unit.ListedFile{Name: unit.Name(l.Name), State: l.Enablement, Preset: l.Preset})
		}
		require.Empty(t, cmp.Diff(odd.Files(r.run, strings.Fields(c.args)...), got, cmpopts.EquateEmpty()), c.args)
	}
}

// compareJournal holds what the journal says of each unit against journalctl. The
// definition of one that cannot be loaded is complained about at every look.
func (r real) compareJournal(t *testing.T) {
	r.t, r.rig.t = t, t
	units, most := 0, 10000
	for _, n := range odd.Names(r.run) {
		id := r.show(string(n), "Id")
		if !strings.Contains(id, "odd") {
			continue
		}
		said := func() []string {
			var out []json.RawMessage
			for line := range strings.Lines(r.run("journalctl", "-o", "json", "--all", "--no-pager", "-u", id)) {
				out = append(out, json.RawMessage(line))
			}
			return inOrder(t, out)
		}
		before := said()
		reply, err := ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Unit: string(n), Lines: &most})
		if fault.Is(err, fault.NotFound) {
			require.Empty(t, before, n)
			continue
		}
		require.NoError(t, err, n)
		got, after := inOrder(t, reply.Entries), said()
		require.LessOrEqual(t, len(before), len(got), n)
		require.LessOrEqual(t, len(got), len(after), n)
		require.Equal(t, before, got[:len(before)], n)
		require.Equal(t, got, after[:len(got)], n)
		if len(got) > 0 {
			units++
		}
	}
	require.Greater(t, units, 80)
	t.Logf("the journal of %d units", units)
}
