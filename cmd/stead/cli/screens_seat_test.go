package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/client"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

func ptr[T any](v T) *T { return &v }

func webDeclared() *seats.DeclaredBy {
	return &seats.DeclaredBy{Name: "web", Generation: 3, Ensure: "running", Enabled: ptr(true)}
}

func someUnitLines() []seats.UnitLine {
	return []seats.UnitLine{
		{Name: "web.service", Scope: "system", Description: "the web server", Load: "loaded", Active: "failed", Sub: "failed", Enablement: "enabled", DeclaredBy: webDeclared(),
			Since: ptr(at(3 * time.Minute)), Result: "exit-code"},
		{Name: "backup.timer", Scope: "system", Description: "a backup each night", Load: "loaded", Active: "active", Sub: "waiting", Enablement: "enabled"},
		{Name: "gone.service", Scope: "system", Load: "not-found", Active: "inactive", Sub: "dead"},
	}
}

func listed(o unitsOptions, silent ...client.Answer) func(w screen) {
	return func(w screen) {
		nodes := []subject.Node{"web1", "database12", "n3", "n4"}
		u := unitLister{w: w, o: o, on: map[subject.Node]int{}, blind: map[string][]string{}, grid: gridOf(nodes)}
		reply := seats.UnitsReply{Units: someUnitLines(), Unreadable: []seats.Unreadable{{Scope: "user", Reason: "this node has no operator account"}}}
		if err := errors.Join(u.tell("web1", reply), u.tell("database12", seats.UnitsReply{Units: someUnitLines()[1:2]}), u.tell("n3", seats.UnitsReply{})); err != nil {
			complain(w, err, "")
		}
		t := &tour{nodes: nodes, silent: silent, log: w}
		if err := u.end(t); err != nil && !errors.Is(err, errSilent) && !errors.Is(err, errTold) {
			complain(w, err, "")
		}
	}
}

func TestScreenOfUnits(t *testing.T) {
	silent := []client.Answer{{Node: "ws9", Silent: "no answer in time"}, {Node: "ws8", Silent: "nobody serves it"}, {Node: "ws7", Silent: "no answer in time"}}
	golden(t, "units", 0, listed(unitsOptions{}))
	golden(t, "units-wide", 0, listed(unitsOptions{output: "wide"}))
	golden(t, "units-failed-silent", 0, listed(unitsOptions{failed: true}, silent...))
	golden(t, "units-files", 0, listed(unitsOptions{q: seats.UnitsArguments{Files: true}}))
	golden(t, "units-user", 0, listed(unitsOptions{address: address{user: true}}))
	golden(t, "units-narrow", 80, func(w screen) {
		u := unitLister{w: w, on: map[subject.Node]int{}, grid: gridOf([]subject.Node{"web1"})}
		long := seats.UnitLine{Name: `run-credentials-systemd\x2dtmpfiles\x2dsetup\x2ddev.service.mount`, Scope: "system", Load: "loaded", Active: "active", Sub: "mounted"}
		require.NoError(t, u.tell("web1", seats.UnitsReply{Units: append(someUnitLines(), long)}))
	})
	golden(t, "units-none", 0, func(w screen) { (&unitLister{}).summary(w, 1, nil) })
}

func someStatus() seats.UnitStatus {
	return seats.UnitStatus{ID: "web.service", Scope: "system", Description: "the web server", Load: "loaded", Active: "active", Sub: "running",
		Enablement: "enabled", Preset: "disabled", Since: ptr(at(26 * time.Hour)), MainPID: ptr(uint32(1843)), Tasks: ptr(uint64(1)), Memory: ptr(uint64(4300000)),
		CPU: ptr(uint64(12_300_000_000)), Restarts: ptr(uint32(2)), Fragment: "/etc/systemd/system/web.service", DropIns: []string{"/etc/systemd/system/web.service.d/10-memory.conf"},
		NeedReload: true, TriggeredBy: []string{"web.socket"}, Lines: []string{"Feb 28 10:00:01  listening on 80"}, DeclaredBy: webDeclared()}
}

func failedStatus() seats.UnitStatus {
	return seats.UnitStatus{ID: "thermal.service", Scope: "user", Load: "loaded", Active: "failed", Sub: "failed", Result: "exit-code", ExitCode: "exited", ExitStatus: ptr(203),
		Since: ptr(at(time.Minute)), Job: "start", Unmet: []string{"ConditionPathExists=/run/x"}, LinesError: "the journal cannot be read"}
}

func TestScreenOfStatus(t *testing.T) {
	missing := seats.UnitStatus{ID: "x.service", Scope: "system", Load: "bad-setting", LoadError: "line 3 is unknown", Active: "inactive", Sub: "dead"}
	show := func(f format) func(w screen) {
		return func(w screen) {
			s := statusTeller{w: w, format: f}
			require.NoError(t, s.tell("web1", seats.StatusReply{Units: []seats.UnitStatus{someStatus(), failedStatus()}}))
			require.NoError(t, s.tell("ws1", seats.StatusReply{Units: []seats.UnitStatus{missing}, Unreadable: []seats.Unreadable{{Scope: "user", Reason: "user manager of opal is not running"}}}))
			require.True(t, s.bad)
		}
	}
	golden(t, "status", 0, show(""))
	golden(t, "status-wide", 0, show("wide"))
}

func TestWhatIsWantedOfAUnit(t *testing.T) {
	good := someStatus()
	require.False(t, unwanted(good))
	require.True(t, unwanted(failedStatus()))
	good.Active = "inactive"
	require.True(t, unwanted(good), "it is declared to run")
	good.DeclaredBy.Ensure = ""
	require.False(t, unwanted(good))
	good.Active, good.DeclaredBy.Ensure = "active", "stopped"
	require.True(t, unwanted(good))
	good.DeclaredBy = nil
	require.False(t, unwanted(good))
}

func TestScreenOfActs(t *testing.T) {
	up, down := seats.State{Active: "active", Sub: "running"}, seats.State{Active: "inactive", Sub: "dead"}
	golden(t, "acts", 0, func(w screen) {
		tell := func(verb subject.Verb, a seats.Acted) {
			require.NoError(t, actTeller{w: w, log: w, of: deeds()[verb]}.tell(&tour{log: w}, "web1", a))
		}
		tell(seats.Stop, seats.Acted{Unit: "web.service", Result: "done", Before: up, After: down, Took: 0.2, DeclaredBy: webDeclared(),
			Note: `declaration "web" ensures running: the host will start it again`})
		tell(seats.Stop, seats.Acted{Unit: "backup.service", Result: "done", Before: up, After: down, Took: 1.23, Note: "it can still be started by backup.timer"})
		tell(seats.Restart, seats.Acted{Unit: "web.service", Result: "done", Before: up, After: up, Took: 0.012})
		tell(seats.Start, seats.Acted{Unit: "web.service", Result: "queued", Before: down, After: seats.State{Active: "activating", Sub: "start"}})
		tell(seats.Start, seats.Acted{Unit: "web.service", Result: "skipped", Before: down, After: down})
		tell(seats.Start, seats.Acted{Unit: "web.service", Scope: "user", Result: "failed", Before: down, After: seats.State{Active: "failed", Sub: "failed"}})
		tell(seats.Restart, seats.Acted{Unit: "web.service", Scope: "user", Result: "done", Before: up, After: up, Took: 0.012})
		tell(seats.Start, seats.Acted{Unit: "web.service", Scope: "user", Result: "queued", Before: down, After: seats.State{Active: "activating", Sub: "start"}})
		tell(seats.Start, seats.Acted{Unit: "web.service", Error: "Unit web.service is masked."})
		tell(seats.Start, seats.Acted{Unit: "web.service"})
	})
	golden(t, "enabled", 0, func(w screen) {
		tell := func(verb subject.Verb, r seats.EnableReply) {
			require.NoError(t, linkTeller{w: w, log: w, of: deeds()[verb]}.tell(&tour{log: w}, "ws1", r))
		}
		tell(seats.Enable, seats.EnableReply{Unit: "backup.timer", Made: []seats.Link{{Path: "/etc/systemd/system/timers.target.wants/backup.timer", To: "/etc/systemd/system/backup.timer"}},
			Acted: &seats.Acted{Unit: "backup.timer", Result: "done", Before: down, After: seats.State{Active: "active", Sub: "waiting"}, Took: 0.01}})
		tell(seats.Disable, seats.EnableReply{Unit: "x.service", Scope: "user"})
		tell(seats.Enable, seats.EnableReply{Unit: "x.service", NoInstall: true, Passed: []string{"x.service: an alias was passed over"}})
		tell(seats.Disable, seats.EnableReply{Unit: "web.service", Removed: []string{"/etc/systemd/system/multi-user.target.wants/web.service"}, DeclaredBy: webDeclared(),
			Note: `declaration "web" has it enabled: the host will enable it again`})
	})
}

func entry(fields string) json.RawMessage {
	return json.RawMessage(`{"__REALTIME_TIMESTAMP":"1772359200123456","__CURSOR":"c","_HOSTNAME":"big",` + fields + `}`)
}

func TestScreenOfEntries(t *testing.T) {
	all := []json.RawMessage{
		entry(`"SYSLOG_IDENTIFIER":"web","_PID":"1843","_SYSTEMD_UNIT":"web.service","MESSAGE":"listening on 80"`),
		entry(`"SYSLOG_IDENTIFIER":"kernel","MESSAGE":"eth0: link up"`),
		entry(`"_COMM":"worker","_PID":"7","MESSAGE":"first\nsecond\n\nfourth\n"`),
		entry(`"SYSLOG_IDENTIFIER":["a","b"],"MESSAGE":[104,195,169]`),
		entry(`"SYSLOG_IDENTIFIER":"web","MESSAGE":[255,254,0]`),
		entry(`"SYSLOG_IDENTIFIER":"web","MESSAGE":"\u001b[31mred\u001b[0m"`),
		json.RawMessage(`{"__REALTIME_TIMESTAMP":"1772359200123456","__CURSOR":"large","SYSLOG_IDENTIFIER":"web","MESSAGE":null}`),
		entry(`"SYSLOG_IDENTIFIER":"web"`),
		entry(`"MESSAGE":[1,256]`),
		json.RawMessage(`{"MESSAGE":"when?"}`),
		json.RawMessage(`"text"`),
	}
	omitted := []seats.OmittedField{{Cursor: "large", Field: "MESSAGE", Bytes: 3 << 20}}
	show := func(p entryPrinter) func(w screen) {
		return func(w screen) {
			p.w = w
			for _, e := range all {
				require.NoError(t, p.print("web1", e, omitted))
			}
			require.NoError(t, p.end())
		}
	}
	zone := time.Local
	time.Local = time.UTC
	defer func() { time.Local = zone }()
	golden(t, "entries", 0, show(entryPrinter{}))
	golden(t, "entries-wide-named", 0, show(entryPrinter{format: "wide", named: true}))
	golden(t, "entries-none", 0, func(w screen) { require.NoError(t, (&entryPrinter{w: w}).end()) })
	golden(t, "entries-yaml", 0, func(w screen) {
		require.NoError(t, (&entryPrinter{w: w, format: "yaml"}).print("web1", all[0], nil))
	})
	var b bytes.Buffer
	verbatim := json.RawMessage(`{"b" : 1,"a":"<\u0041>"}`)
	p := entryPrinter{w: screen{Writer: &b}, format: "json"}
	require.NoError(t, errors.Join(p.print("web1", verbatim, nil), p.end()))
	require.Equal(t, string(verbatim)+"\n", b.String(), "byte for byte")
}

func TestScreenOfSeats(t *testing.T) {
	seat := wire.Seat{Seat: seats.Seeded()[0], Nodes: 3, Held: 2, Revision: 1, By: "controller c1", At: at(time.Hour)}
	module := wire.Module{Manifest: modules.Catalogue()[0], On: 3, Revision: 2, By: "controller c1", At: at(time.Hour)}
	free := wire.Module{Manifest: modules.Manifest{Name: "tools", Version: 2}}
	holders := []wire.Holder{{Holder: seats.Holder{Seat: seat.Name, Node: "web1", Module: "systemd"}, Since: at(time.Minute)}, {Holder: seats.Holder{Seat: seat.Name, Node: "web2"}}}
	for name, wide := range map[string]bool{"": false, "-wide": true} {
		golden(t, "seats"+name, 0, func(w screen) { w.got(wire.Seats, wire.GetReply{Seats: []wire.Seat{seat}}, wide) })
		golden(t, "modules"+name, 0, func(w screen) { w.got(wire.Modules, wire.GetReply{Modules: []wire.Module{module, free}}, wide) })
	}
	golden(t, "holders", 0, func(w screen) { w.got(wire.Holders, wire.GetReply{Holders: holders}, false) })
}

func TestErrorsOfNodesNameTheNode(t *testing.T) {
	v := manager(subject.Write, seats.Start)
	var log bytes.Buffer
	tr := &tour{log: &log, l: &link{}}
	take := func(subject.Node, json.RawMessage) error { return errors.New("it is no reply") }
	cause := errors.New("no such unit in system scope")
	require.NoError(t, tr.note(v, client.Answer{Node: "ws1", Err: fault.New(fault.NotFound, "start", "backup.service", cause).WithHint("stead units -n ws1")}, take))
	require.NoError(t, tr.note(v, client.Answer{Node: "ws2", Err: fault.New(fault.Failed, "", "", cause)}, take))
	require.NoError(t, tr.note(v, client.Answer{Node: "ws3", Err: cause}, take))
	require.NoError(t, tr.note(v, client.Answer{Node: "ws4", Err: fault.New(fault.Canceled, "", "", cause)}, take))
	require.Equal(t, "error: start backup.service on ws1: no such unit in system scope\nhint: stead units -n ws1\n"+
		"error: start on ws2: no such unit in system scope\nerror: start on ws3: no such unit in system scope\n", log.String())
	require.Equal(t, errTold, tr.end(true))
	require.Equal(t, "not_found", tr.answers[0].Error.Class)
	require.Equal(t, errNotWanted, (&tour{}).end(true))
	require.Equal(t, errSilent, (&tour{log: &log, silent: []client.Answer{{Node: "x", Silent: "late"}}}).end(true))
	require.True(t, strings.HasSuffix(log.String(), "error: late: x\nhint: "+silence+"\n"))
}
