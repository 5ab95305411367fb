package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/identity"
	"stead/mesh/wire"
	"stead/runtime/tool"
	"stead/seats"
)

func TestStatusSaysAllThatSystemdSays(t *testing.T) {
	u := service("web.service", "www.service")
	at, pid, memory, status, restarts := time.Date(2026, 11, 30, 18, 2, 11, 0, time.UTC), uint32(1843), uint64(4<<20), 3, uint32(2)
	u.Details = unit.Details{
		ID: "web.service", Names: u.Names, Description: "web", Documents: []string{"man:web(8)"}, Load: unit.Loaded, LoadError: "no",
		Active: unit.Active, Sub: "running", Enablement: "enabled", Preset: "disabled", Fragment: "/etc/systemd/system/web.service",
		DropIns: []string{"/etc/systemd/system/web.service.d/10-memory.conf"}, NeedReload: true, Invocation: "abc",
		Job: unit.Job{ID: 7, Type: unit.ReloadJob}, Triggers: []unit.Name{"a.service"}, TriggeredBy: []unit.Name{"web.socket"},
		Unmet:  []unit.Condition{{Text: "ConditionPathExists=/nope"}},
		Result: "success", ExitCode: "exited", ExitStatus: &status, Since: &at, MainPID: &pid, Memory: &memory, Restarts: &restarts,
		Unset: map[string]string{unit.FigureCPU: "[not set]: CPUAccounting= is off", unit.FigureTasks: "[not set]: it does not run"},
	}
	u.lines = []string{"Nov 30 18:02:10 one", "Nov 30 18:02:11 two"}
	f := newFakeNode(u)
	f.declared = []wire.DeclaredUnit{{Unit: "www.service", Scope: "system", Name: "web", Generation: 4, Ensure: "running"}}
	r := f.rig(t)
	for _, name := range []string{"web", "web.service", "www", "www.service"} {
		reply, err := r.status(seats.StatusArguments{Unit: name, Scope: "system"})
		require.NoError(t, err)
		require.Equal(t, seats.StatusReply{Units: []seats.UnitStatus{{
			ID: "web.service", Names: []string{"web.service", "www.service"}, Scope: "system", Description: "web", Load: "loaded", LoadError: "no",
			Active: "active", Sub: "running", Enablement: "enabled", Preset: "disabled", Result: "success", ExitCode: "exited", ExitStatus: &status,
			Since: &at, MainPID: &pid, Memory: &memory, Restarts: &restarts,
			Unset:    map[string]string{"cpu": "[not set]: CPUAccounting= is off", "tasks": "[not set]: it does not run"},
			Fragment: "/etc/systemd/system/web.service", DropIns: []string{"/etc/systemd/system/web.service.d/10-memory.conf"}, NeedReload: true,
			TriggeredBy: []string{"web.socket"}, Triggers: []string{"a.service"}, Job: "reload", Invocation: "abc",
			Unmet: []string{"ConditionPathExists=/nope"}, Documents: []string{"man:web(8)"}, Lines: u.lines,
			DeclaredBy: &seats.DeclaredBy{Name: "web", Generation: 4, Ensure: "running"},
		}}}, reply)
	}
}

func TestFiguresThatAreNotThereAreNull(t *testing.T) {
	r := newFakeNode(service("web.service")).rig(t)
	text, err := r.d.Call(t.Context(), request(t, seats.Status, seats.StatusArguments{Unit: "web"}))
	require.NoError(t, err)
	var reply struct{ Units []map[string]any }
	require.NoError(t, json.Unmarshal(text, &reply))
	for _, figure := range []string{"memory", "cpu", "tasks", "restarts", "main_pid", "since", "exit_status", "declared_by"} {
		value, there := reply.Units[0][figure]
		require.True(t, there, figure)
		require.Nil(t, value, figure)
	}
	require.Equal(t, map[string]any{"memory": "[not set]: it is"}, reply.Units[0]["unset"])
}

func TestLogLinesOfAStatus(t *testing.T) {
	u := service("web.service")
	for i := range 1000 {
		u.lines = append(u.lines, fmt.Sprint("line ", i))
	}
	f := newFakeNode(u)
	r := f.rig(t)
	lines := func(n *int) seats.UnitStatus {
		reply, err := r.status(seats.StatusArguments{Unit: "web", Lines: n})
		require.NoError(t, err)
		return reply.Units[0]
	}
	none, most := 0, 1000
	require.Equal(t, u.lines[990:], lines(nil).Lines)
	require.Empty(t, lines(&none).Lines)
	require.Equal(t, 1, f.calls["Tail"], "the journal is not asked for nothing")
	require.Equal(t, u.lines, lines(&most).Lines)

	for i := range u.lines {
		u.lines[i] = fmt.Sprint(i) + strings.Repeat("<", 1<<10)
	}
	s := lines(&most)
	require.Regexp(t, `^the first \d{3} of 1000 lines do not fit into one answer$`, s.LinesError)
	require.Equal(t, u.lines[1000-len(s.Lines):], s.Lines, "the newest stay")
	require.Greater(t, len(s.Lines), 40)

	f.fails["Tail"] = fault.New(fault.Denied, "read", "journal", errors.New("insufficient permissions"))
	s = lines(nil)
	require.Empty(t, s.Lines)
	require.Equal(t, "read: journal: insufficient permissions", s.LinesError)
	require.Equal(t, "active", s.Active, "the rest is told all the same")
}

// Who may not read the journal is shown none of it by another verb.
func TestLogLinesAreForWhoMayReadTheJournal(t *testing.T) {
	u := service("web.service")
	u.lines = []string{"the password is x"}
	f := newFakeNode(u)
	r := f.rig(t)
	q := request(t, seats.Status, seats.StatusArguments{Unit: "web"})
	q.Caller = tool.Caller{Role: "viewer", Name: "vera"}
	text, err := r.d.Call(t.Context(), q)
	require.NoError(t, err)
	require.NotContains(t, string(text), "password")
	require.Contains(t, string(text), `"lines_error":"log lines are for who may read the journal"`)
	require.Contains(t, string(text), `"active":"active"`)
	require.Zero(t, f.calls["Tail"])
	none := 0
	q.Payload = request(t, seats.Status, seats.StatusArguments{Unit: "web", Lines: &none}).Payload
	text, err = r.d.Call(t.Context(), q)
	require.NoError(t, err)
	require.NotContains(t, string(text), "lines_error", "none was asked for")
}

// A unit file may say what it likes: the answer still fits into a message.
func TestStatusFitsIntoAMessage(t *testing.T) {
	u := service("web.service")
	u.Description, u.LoadError = strings.Repeat("<", 1<<20), strings.Repeat("&", 1<<20)
	for range 5000 {
		u.Documents = append(u.Documents, strings.Repeat("<", 1<<12))
		u.Unmet = append(u.Unmet, unit.Condition{Text: strings.Repeat("<", 1<<12)})
		u.lines = append(u.lines, strings.Repeat("<", 1<<10))
	}
	most := 1000
	r := newFakeNode(u).rig(t)
	text, err := r.d.Call(t.Context(), request(t, seats.Status, seats.StatusArguments{Unit: "web", Lines: &most}))
	require.NoError(t, err)
	require.Less(t, len(text), identity.MaxPayload-8<<10)
	var reply seats.StatusReply
	require.NoError(t, json.Unmarshal(text, &reply))
	require.Equal(t, "… and 4936 more", reply.Units[0].Documents[64])
}

func TestStatusOfWhatIsHardlyThere(t *testing.T) {
	r := someUnits().rig(t)
	for name, want := range map[string]string{"ghost": "not-found active", "away": "loaded inactive", "bad": "loaded failed"} {
		reply, err := r.status(seats.StatusArguments{Unit: name})
		require.NoError(t, err, name)
		require.Equal(t, want, reply.Units[0].Load+" "+reply.Units[0].Active)
	}
}

func TestUnknownUnitIsAnsweredWithTheClosestNames(t *testing.T) {
	f := someUnits()
	f.declared = []wire.DeclaredUnit{
		{Unit: "reload-watcher.service", Scope: "user", Name: "reload-watcher"},
		{Unit: "bad.service", Aliases: []string{"evil.service"}, Scope: "system", Name: "bad"},
	}
	vendor := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(vendor, "sound@.service"), nil, 0o600))
	o := f.options(t)
	o.UserFolders = []string{vendor}
	r := newRig(t, o)
	const none = "there is no such unit in system scope"
	const declared = none + "; one is declared in user scope, which cannot be read: this node has no operator account"
	for name, want := range map[string][2]string{
		"wbe":                   {none, "did you mean web.service?"},
		"web.mount":             {none, "did you mean web.service, web-data.mount?"},
		"wwww.service":          {none, "did you mean www.service?"},
		"xqzzt":                 {none, ""},
		"data":                  {none, "did you mean web-data.mount?"},
		"gone.service":          {none, ""},
		"evil":                  {none, "it is an alias that bad.service asks for, and that is made when that is enabled"},
		"sound@one.service":     {none, ""}, // there is no account that it could be of
		"reload-watchr.service": {none, ""},
	} {
		_, err := r.status(seats.StatusArguments{Unit: name})
		requireFault(t, err, fault.NotFound, "status: "+unit.Full(name)+": "+want[0], want[1])
		_, err = r.act(seats.Start, seats.ActArguments{Unit: name})
		requireFault(t, err, fault.NotFound, "start: "+unit.Full(name)+": "+want[0], want[1])
	}
	_, err := r.status(seats.StatusArguments{Unit: "reload-watcher"})
	requireFault(t, err, fault.NotFound, "status: reload-watcher.service: "+declared, "stead status reload-watcher.service -n ws1 --user")
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "reload-watcher"})
	requireFault(t, err, fault.NotFound, "start: reload-watcher.service: "+declared, "stead start reload-watcher.service -n ws1 --user")
	require.Zero(t, f.jobs, "nothing was done")
	require.Equal(t, 1, f.calls["Files"], "systemd reads every unit file to list them, which is not done for each wrong name")

	// The hint is no more than that: the answer comes without it.
	f.fails["Units"], f.fails["Files"] = errors.New("no"), errors.New("no")
	_, err = f.rig(t).status(seats.StatusArguments{Unit: "wbe"})
	requireFault(t, err, fault.NotFound, "status: wbe.service: "+none, "")
}

func TestStatusOfNoUnit(t *testing.T) {
	f := someUnits()
	r := f.rig(t)
	_, err := r.status(seats.StatusArguments{Unit: "job@.service"})
	requireFault(t, err, fault.Invalid, "read unit: job@.service: it is a template, and only its instances have a state", "")
	_, err = r.status(seats.StatusArguments{Unit: "-x"})
	require.ErrorContains(t, err, "looks like an option")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	for _, unit := range []string{"", "we*", "/etc/passwd", "../web.service", "web.service --force"} {
		_, err := r.status(seats.StatusArguments{Unit: unit})
		require.Equal(t, fault.Invalid, fault.ClassOf(err), unit)
	}
	f.fails["Details"] = fault.New(fault.Unavailable, "read unit", "web.service", errors.New("no connection"))
	_, err = r.status(seats.StatusArguments{Unit: "web"})
	requireFault(t, err, fault.Unavailable, "read unit: web.service: no connection", "")
}

// meeting is a node on which a unit is looked at and its log read at one time, or
// not at all.
type meeting struct {
	*fakeNode
	looks, reads chan struct{}
}

func (m meeting) Details(ctx context.Context, n unit.Name) (unit.Details, error) {
	select {
	case m.looks <- struct{}{}:
	case <-m.reads:
	case <-ctx.Done():
		return unit.Details{}, ctx.Err()
	}
	return m.fakeNode.Details(ctx, n)
}

func (m meeting) Tail(ctx context.Context, n unit.Name, count int) ([]string, error) {
	select {
	case m.reads <- struct{}{}:
	case <-m.looks:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return m.fakeNode.Tail(ctx, n, count)
}

func TestStatusReadsTheLogWhileItLooks(t *testing.T) {
	f := newFakeNode(service("web.service", "www.service"))
	f.units["web.service"].lines = []string{"up"}
	m := meeting{f, make(chan struct{}), make(chan struct{})}
	r := newRig(t, Options{Reader: m, User: f, Journal: m, UserJournal: func(uint32) Journal { return f }, Acts: f, UserFolders: []string{}, Declared: func() []wire.DeclaredUnit { return nil }})
	reply, err := r.status(seats.StatusArguments{Unit: "web", Scope: "system"})
	require.NoError(t, err)
	require.Equal(t, []string{"up"}, reply.Units[0].Lines)

	// An alias is no name of the journal's: it is read by the unit's own.
	reply, err = f.rig(t).status(seats.StatusArguments{Unit: "www", Scope: "system"})
	require.NoError(t, err)
	require.Equal(t, []string{"up"}, reply.Units[0].Lines)
	require.Equal(t, 3, f.calls["Tail"])
}
