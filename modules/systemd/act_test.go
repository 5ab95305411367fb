package systemd

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/seats"
)

func stateOf(active, sub string) seats.State { return seats.State{Active: active, Sub: sub} }

func TestActsEndWithTheResultOfTheirJob(t *testing.T) {
	for _, c := range []struct {
		verb  subject.Verb
		unit  string
		made  *fakeUnit
		want  seats.Acted
		asked escalate.Request
	}{
		{seats.Stop, "web", service("web.service"),
			seats.Acted{Result: "done", Before: stateOf("active", "running"), After: stateOf("inactive", "dead")}, escalate.Request{Act: escalate.Stop}},
		{seats.Start, "web.service", service("web.service").state(unit.Inactive, "dead"),
			seats.Acted{Result: "done", Before: stateOf("inactive", "dead"), After: stateOf("active", "running")}, escalate.Request{Act: escalate.Start}},
		{seats.Restart, "www", service("web.service", "www.service"),
			seats.Acted{Result: "done", Before: stateOf("active", "running"), After: stateOf("active", "running")}, escalate.Request{Act: escalate.Restart}},
		{seats.Start, "web", &fakeUnit{Details: service("web.service").state(unit.Inactive, "dead").Details, result: unit.JobFailed},
			seats.Acted{Result: "failed", Before: stateOf("inactive", "dead"), After: stateOf("failed", "failed")}, escalate.Request{Act: escalate.Start}},
		{seats.Stop, "web", &fakeUnit{Details: service("web.service").Details, leaves: true},
			seats.Acted{Result: "done", Before: stateOf("active", "running"), After: stateOf("inactive", "dead")}, escalate.Request{Act: escalate.Stop}},
	} {
		t.Run(fmt.Sprint(c.verb, " ", c.unit), func(t *testing.T) {
			f := newFakeNode(c.made)
			reply, err := f.rig(t).act(c.verb, seats.ActArguments{Unit: c.unit})
			require.NoError(t, err)
			c.want.Unit, c.want.Scope, c.want.Took = "web.service", "system", 0.02
			require.Equal(t, []seats.Acted{c.want}, reply.Units)
			c.asked.Unit = unit.Name(unit.Full(c.unit))
			require.Equal(t, []escalate.Request{c.asked}, f.asked)
		})
	}
}

func TestActThatContradictsItsDeclarationSaysSo(t *testing.T) {
	for _, c := range []struct {
		verb   subject.Verb
		ensure string
		want   string
	}{
		{seats.Stop, "running", `declaration "web" ensures running: the host will start it again`},
		{seats.Stop, "restarted", `declaration "web" ensures running: the host will start it again`},
		{seats.Stop, "stopped", ""},
		{seats.Stop, "", ""},
		{seats.Start, "stopped", `declaration "web" ensures stopped: the host will stop it again`},
		{seats.Restart, "stopped", `declaration "web" ensures stopped: the host will stop it again`},
		{seats.Start, "running", ""},
		{seats.Restart, "running", ""},
	} {
		t.Run(fmt.Sprint(c.verb, " ", c.ensure), func(t *testing.T) {
			f := newFakeNode(service("web.service", "www.service"))
			// Declared by an alias, and of another scope too.
			f.declared = []wire.DeclaredUnit{
				{Unit: "web.service", Scope: "user", Name: "other", Ensure: "running"},
				{Unit: "www.service", Scope: "system", Name: "web", Generation: 7, Ensure: c.ensure},
			}
			reply, err := f.rig(t).act(c.verb, seats.ActArguments{Unit: "web"})
			require.NoError(t, err)
			require.Equal(t, c.want, reply.Units[0].Note)
			require.Equal(t, &seats.DeclaredBy{Name: "web", Generation: 7, Ensure: c.ensure}, reply.Units[0].DeclaredBy)
		})
	}
}

// Before it is made, the name of an alias may be another unit's, which nothing is
// declared of.
func TestAliasThatIsNotMadeIsNotTheDeclaredUnit(t *testing.T) {
	f := newFakeNode(service("web.service"), service("www.service"))
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Aliases: []string{"www.service"}, Scope: "system", Name: "web", Ensure: "running"}}
	reply, err := f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "www"})
	require.NoError(t, err)
	require.Nil(t, reply.Units[0].DeclaredBy)
	require.Empty(t, reply.Units[0].Note)
}

func TestStopSaysWhatMayStartItAgain(t *testing.T) {
	u := service("web.service")
	u.TriggeredBy = []unit.Name{"web.path", "web.socket", "web.timer"}
	f := newFakeNode(u, service("web.path").state(unit.Inactive, "dead"), service("web.socket"), service("web.timer"))
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Ensure: "running"}}
	r := f.rig(t)
	reply, err := r.act(seats.Stop, seats.ActArguments{Unit: "web.service"})
	require.NoError(t, err)
	require.Equal(t, `declaration "web" ensures running: the host will start it again; it can still be started by web.socket, web.timer`, reply.Units[0].Note)
	reply, err = r.act(seats.Stop, seats.ActArguments{Unit: "web*"})
	require.NoError(t, err)
	require.Len(t, reply.Units, 4)
	for _, u := range reply.Units[:1] {
		require.Empty(t, u.Note, u.Unit)
	}
	require.Equal(t, `declaration "web" ensures running: the host will start it again`, reply.Units[1].Note, "what triggers it was stopped with it")
}

func TestPatternMeansLoadedUnits(t *testing.T) {
	f := someUnits()
	masked := service("web-old.service").state(unit.Inactive, "dead")
	masked.Load, masked.err = unit.Masked, fault.New(fault.Refused, "start", "web-old.service", errors.New("Unit web-old.service is masked."))
	f.units["web-old.service"] = masked
	f.units["web.service"].result = unit.JobDependency
	r := f.rig(t)
	reply, err := r.act(seats.Start, seats.ActArguments{Unit: "w[e]b*"})
	require.NoError(t, err)
	var got []string
	for _, u := range reply.Units {
		got = append(got, u.Unit+" "+u.Result+" "+u.Error)
	}
	require.Equal(t, []string{"web-data.mount done ", "web-old.service  start: web-old.service: Unit web-old.service is masked.", "web.service dependency "}, got)
	require.Equal(t, stateOf("inactive", "dead"), reply.Units[1].After)

	// Of one that is named, and when there is nothing else, it is an error.
	for _, name := range []string{"web-old", "web-o*"} {
		_, err = r.act(seats.Start, seats.ActArguments{Unit: name})
		requireFault(t, err, fault.Refused, "start: web-old.service: Unit web-old.service is masked.", "")
	}
	twin := service("game.device")
	twin.following = "other.device"
	f.units["game.device"] = twin
	reply, err = r.act(seats.Stop, seats.ActArguments{Unit: "g*"})
	require.NoError(t, err)
	require.Len(t, reply.Units, 1)
	require.Equal(t, "ghost.service", reply.Units[0].Unit, "what is only a name to systemd, or another name of a device, is no unit")
}

func TestPatternOfManyUnitsWantsAYes(t *testing.T) {
	f := newFakeNode()
	for i := range 11 {
		u := service(unit.Name(fmt.Sprintf("w-%02d.service", i)))
		f.units[u.ID] = u
	}
	r := f.rig(t)
	_, err := r.act(seats.Restart, seats.ActArguments{Unit: "w-*"})
	requireFault(t, err, fault.Refused, `restart: "w-*": it means 11 units: w-00.service, w-01.service, w-02.service, w-03.service, w-04.service, w-05.service, `+
		"w-06.service, w-07.service, and 3 more", "more than 10 units want --yes (yes=true)")
	require.Empty(t, f.asked)
	reply, err := r.act(seats.Restart, seats.ActArguments{Unit: "w-0*"})
	require.NoError(t, err)
	require.Len(t, reply.Units, 10)
	reply, err = r.act(seats.Restart, seats.ActArguments{Unit: "w-*", Yes: true})
	require.NoError(t, err)
	require.Len(t, reply.Units, 11)

	for i := range 257 {
		u := service(unit.Name(fmt.Sprintf("w-%03d.service", i)))
		f.units[u.ID] = u
	}
	_, err = r.act(seats.Restart, seats.ActArguments{Unit: "w-???.service", Yes: true})
	require.ErrorContains(t, err, "it means 257 units; at most 256 at one time")
	require.Equal(t, fault.Refused, fault.ClassOf(err))
}

func TestPatternWithoutAUnit(t *testing.T) {
	f := someUnits()
	r := f.rig(t)
	for pattern, hint := range map[string]string{
		"wbe*": "did you mean web.service, web-data.mount?", "gone*": "", "*ad.servcie": "", "xqz*": "", "*eb.mount": "",
	} {
		_, err := r.act(seats.Stop, seats.ActArguments{Unit: pattern, Yes: true})
		requireFault(t, err, fault.NotFound, fmt.Sprintf("stop: %q: no loaded unit of system scope matches", pattern), hint)
	}
	require.Empty(t, f.asked)
}

func TestProtectedUnitsAreRefused(t *testing.T) {
	bus := service("dbus-broker.service", "dbus.service")
	sly := service("sly.service", "systemd-logind.service")
	off := service("poweroff.target", "runlevel0.target").state(unit.Inactive, "dead")
	f := newFakeNode(bus, sly, off, service("stead-host.service"), service("web.service"), service("dull.service"))
	r := f.rig(t)
	const base, own, ends = "stead stands on it", "it is stead's own", "starting it stops or suspends the machine"
	for _, c := range []struct {
		verb       subject.Verb
		unit, want string
	}{
		{seats.Stop, "dbus-broker", "dbus-broker.service: it is protected: " + base},
		{seats.Stop, "dbus", "dbus.service: it is protected: " + base},
		{seats.Restart, "sly", "sly.service: it is systemd-logind.service, which is protected: " + base},
		{seats.Restart, "stead-host", "stead-host.service: it is protected: " + own},
		{seats.Stop, "stead-runtime", "stead-runtime.service: it is protected: " + own},
		{seats.Start, "poweroff.target", "poweroff.target: it is protected: " + ends},
		{seats.Start, "runlevel0.target", "runlevel0.target: it is protected: " + ends},
		{seats.Start, "reboot.target", "reboot.target: it is protected: " + ends},
		{seats.Stop, "*e*", `"*e*": dbus-broker.service is protected: ` + base + "; poweroff.target is protected: " + ends + "; systemd-logind.service is protected: " + base +
			"; stead-host.service is protected: " + own},
	} {
		_, err := r.act(c.verb, seats.ActArguments{Unit: c.unit})
		requireFault(t, err, fault.Refused, string(c.verb)+": "+c.want, "")
	}
	for unit, want := range map[string]string{
		"dbus-broker": "dbus-broker.service: it is protected: " + base, "sly": "sly.service: it is systemd-logind.service, which is protected: " + base,
		"user@.service": "user@.service: it is protected: " + base, "stead-host": "stead-host.service: it is protected: " + own,
	} {
		for _, now := range []bool{false, true} {
			_, err := r.link(seats.Disable, seats.EnableArguments{Unit: unit, Now: now && unit != "user@.service"})
			requireFault(t, err, fault.Refused, "disable: "+want, "")
		}
	}
	_, err := r.link(seats.Enable, seats.EnableArguments{Unit: "poweroff.target", Now: true})
	requireFault(t, err, fault.Refused, "start: poweroff.target: it is protected: "+ends, "")
	require.Zero(t, f.jobs, "nothing was done, not even to the others that a pattern means")

	// What is only stood on may be started, and its links made.
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "dbus"})
	require.NoError(t, err)
	_, err = r.link(seats.Enable, seats.EnableArguments{Unit: "stead-host", Now: true})
	require.NoError(t, err)
}

func TestTemplateCannotBeActedOn(t *testing.T) {
	f := newFakeNode()
	_, err := f.rig(t).act(seats.Start, seats.ActArguments{Unit: "job@"})
	requireFault(t, err, fault.Invalid, "start: job@.service: it is a template, and only its instances can be started and stopped", "")
	require.Empty(t, f.asked)
}

func TestJobThatIsNotWaitedFor(t *testing.T) {
	u := service("web.service").state(unit.Inactive, "dead")
	u.hangs = true
	f := newFakeNode(u)
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Ensure: "stopped"}}
	reply, err := f.rig(t).act(seats.Start, seats.ActArguments{Unit: "web", Wait: truth(false)})
	require.NoError(t, err)
	require.Equal(t, "queued", reply.Units[0].Result)
	require.Equal(t, stateOf("activating", "start"), reply.Units[0].After)
	require.NotEmpty(t, reply.Units[0].Note)
	require.Equal(t, []escalate.Request{{Act: escalate.Start, Unit: "web.service", NoWait: true}}, f.asked)
}

func TestJobThatTakesLongerThanItsCallerWaits(t *testing.T) {
	for _, c := range []struct {
		name     string
		timeout  string
		patience time.Duration
		want     string
	}{
		{"as the caller says", "2s", time.Minute, "2.0 s"},
		{"as a job is waited for when nobody says", "", 3 * time.Minute, "90.0 s"},
		{"ahead of the deadline of the call", "", 3 * time.Second, "2.7 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := service("web.service").state(unit.Inactive, "dead")
				u.hangs = true
				f := newFakeNode(u)
				_, err := askFor[seats.ActReply](f.rig(t), c.patience, seats.Start, seats.ActArguments{Unit: "web", Timeout: c.timeout})
				requireFault(t, err, fault.Timeout, "wait for job: web.service: job 1 has not ended after "+c.want+", and goes on; the unit is activating (start)", "")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		u := service("web-1.service").state(unit.Inactive, "dead")
		u.hangs = true
		f := newFakeNode(u, service("web-2.service"))
		reply, err := f.rig(t).act(seats.Restart, seats.ActArguments{Unit: "web-*", Timeout: "1s"})
		require.NoError(t, err, "one is done")
		require.Equal(t, "queued", reply.Units[0].Result)
		require.Regexp(t, `^wait for job: web-1.service: job \d has not ended after 1.0 s, and goes on; the unit is activating \(start\)$`, reply.Units[0].Error)
		require.Equal(t, "done", reply.Units[1].Result)
	})
}

func TestBadWaits(t *testing.T) {
	f := someUnits()
	r := f.rig(t)
	for _, timeout := range []string{"0s", "11m", "10m1ms", "soon", "-5s", "1e9h", "99999999999999h"} {
		_, err := r.act(seats.Start, seats.ActArguments{Unit: "web", Timeout: timeout})
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%s: %v", timeout, err)
		require.ErrorContains(t, err, "timeout", timeout)
	}
	require.Empty(t, f.asked)
}

func TestActsThatCannotBeDone(t *testing.T) {
	away := fault.New(fault.Unavailable, "stop", "web.service", errors.New("the root helper cannot be asked: not connected yet"))
	for _, c := range []struct {
		method string
		unit   string
		err    error
		want   string
	}{
		{"Units", "web*", fault.New(fault.Unavailable, "list units", "", errors.New("no bus")), "list units: no bus"},
		{"Details", "web*", fault.New(fault.Unavailable, "read unit", "web.service", errors.New("no bus")), "read unit: web.service: no bus"},
		{"Do", "web", away, away.Error()},
		{"Do", "web*", away, away.Error() + "; and so for 1 more"},
	} {
		t.Run(c.method+" "+c.unit, func(t *testing.T) {
			f := someUnits()
			f.fails[c.method] = c.err
			_, err := f.rig(t).act(seats.Stop, seats.ActArguments{Unit: c.unit})
			requireFault(t, err, fault.Unavailable, c.want, "")
			if c.method != "Do" {
				require.Empty(t, f.asked)
			}
		})
	}
}

// The act was done: an answer that says "unavailable" would be a lie.
func TestActIsToldWhenNothingCanBeReadBehindIt(t *testing.T) {
	f := newFakeNode(service("web.service"), service("db.service"))
	f.units["db.service"].TriggeredBy = []unit.Name{"db.socket"}
	f.fails["Named"] = fault.New(fault.Unavailable, "list units", "", errors.New("no bus"))
	r := f.rig(t)
	reply, err := r.act(seats.Stop, seats.ActArguments{Unit: "db"})
	require.NoError(t, err)
	require.Equal(t, "done", reply.Units[0].Result)
	require.Equal(t, stateOf("inactive", "dead"), reply.Units[0].After, "the helper saw it")
	require.Equal(t, "whether db.socket can start it again is not known: list units: no bus", reply.Units[0].Note)
	f.blind = true
	reply, err = r.act(seats.Stop, seats.ActArguments{Unit: "web"})
	require.NoError(t, err)
	require.Equal(t, "done", reply.Units[0].Result)
	require.Equal(t, "how it stands now is not known: list units: no bus", reply.Units[0].Note)
	require.Equal(t, seats.State{}, reply.Units[0].After)
}

// TestActOnOneUnitCostsNoLook: what the helper says of it is all that there is to
// know. What a unit is called that has more names than it says is looked up.
func TestActOnOneUnitCostsNoLook(t *testing.T) {
	f := newFakeNode(service("web.service", "www.service"), service("many.service"))
	r := f.rig(t)
	for _, verb := range []subject.Verb{seats.Restart, seats.Stop, seats.Start} {
		reply, err := r.act(verb, seats.ActArguments{Unit: "www"})
		require.NoError(t, err)
		require.Equal(t, "web.service", reply.Units[0].Unit)
	}
	require.Equal(t, map[string]int{"Do": 3}, f.calls)

	for i := range 100 {
		f.units["many.service"].Names = append(f.units["many.service"].Names, unit.Name(fmt.Sprintf("n%d.service", i)))
	}
	f.declared = []wire.DeclaredUnit{{Unit: "n99.service", Scope: "system", Name: "many", Ensure: "running"}}
	reply, err := r.act(seats.Stop, seats.ActArguments{Unit: "n7"})
	require.NoError(t, err)
	require.Equal(t, "many.service", reply.Units[0].Unit)
	require.Equal(t, "many", reply.Units[0].DeclaredBy.Name)
	require.Equal(t, stateOf("active", "running"), reply.Units[0].Before)
}

func TestUnitsOfAPatternAreActedOnTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNode()
		f.slow = time.Second
		for i := range 100 {
			u := service(unit.Name(fmt.Sprintf("w-%02d.service", i)))
			f.units[u.ID] = u
		}
		began := time.Now()
		reply, err := f.rig(t).act(seats.Restart, seats.ActArguments{Unit: "w-*", Yes: true})
		require.NoError(t, err)
		require.Len(t, reply.Units, 100)
		require.Equal(t, 4*time.Second, time.Since(began))
		require.Equal(t, together, f.busiest)
		for i, u := range reply.Units {
			require.Equal(t, fmt.Sprintf("w-%02d.service", i), u.Unit)
		}
	})
}

// TestActOnAPausedUnitSaysUntilWhen: nothing is undone before.
func TestActOnAPausedUnitSaysUntilWhen(t *testing.T) {
	until := time.Date(2126, 12, 1, 16, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		verb   subject.Verb
		pause  wire.Pause
		want   string
		paused *seats.Paused
	}{
		"paused": {seats.Stop, wire.Pause{Until: until, By: "operator alice", Reason: "a new disk"},
			`declaration "web" ensures running, and is paused until 2126-12-01 16:30 UTC by operator alice (a new disk): then the host will start it again`,
			&seats.Paused{Until: until, By: "operator alice", Reason: "a new disk"}},
		"without a reason": {seats.Stop, wire.Pause{Until: until, By: "operator alice"},
			`declaration "web" ensures running, and is paused until 2126-12-01 16:30 UTC by operator alice: then the host will start it again`,
			&seats.Paused{Until: until, By: "operator alice"}},
		"no contradiction": {seats.Restart, wire.Pause{Until: until, By: "operator alice"}, "", &seats.Paused{Until: until, By: "operator alice"}},
		"over":             {seats.Stop, wire.Pause{Until: time.Now(), By: "operator alice"}, `declaration "web" ensures running: the host will start it again`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeNode(service("web.service"))
			f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Ensure: "running", Paused: &c.pause}}
			reply, err := f.rig(t).act(c.verb, seats.ActArguments{Unit: "web"})
			require.NoError(t, err)
			require.Equal(t, c.want, reply.Units[0].Note)
			require.Equal(t, c.paused, reply.Units[0].DeclaredBy.Paused)
			status, err := f.rig(t).status(seats.StatusArguments{Unit: "web"})
			require.NoError(t, err)
			require.Equal(t, c.paused, status.Units[0].DeclaredBy.Paused)
			units, err := f.rig(t).units(seats.UnitsArguments{Declared: true})
			require.NoError(t, err)
			require.Equal(t, c.paused, units.Units[0].DeclaredBy.Paused)
		})
	}
}
