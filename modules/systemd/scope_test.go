package systemd

import (
	"errors"
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

// unasked is a user scope that cannot be asked.
var unasked = fault.New(fault.Unavailable, "read details", "", errors.New("user manager of opal is not running"))

// workstation is a node with an account, whose manager has a unit of its own, and one
// of a name that the system has too.
func workstation() *fakeNode {
	f := someUnits()
	u := f.opal(service("reload-watcher.service", "rw.service"), service("web.service").state(unit.Inactive, "dead"))
	u.units["reload-watcher.service"].links = []unit.LinkMade{{Path: "/srv/o/default.target.wants/reload-watcher.service", To: "/srv/o/reload-watcher.service"}}
	u.units["reload-watcher.service"].lines = []string{"reloaded"}
	f.declared = []wire.DeclaredUnit{
		{Unit: "reload-watcher.service", Scope: "user", Name: "reload-watcher", Generation: 3, Ensure: "running", Enabled: truth(true)},
		{Unit: "web.service", Scope: "system", Name: "web", Generation: 1, Ensure: "running"},
	}
	return f
}

func TestReadingIsOfBothScopesWhenNoneIsSaid(t *testing.T) {
	f := workstation()
	r := f.rig(t)
	reply, err := r.units(seats.UnitsArguments{All: true, Patterns: []string{"web*", "reload*"}})
	require.NoError(t, err)
	require.Empty(t, reply.Unreadable)
	scopes := map[string]string{}
	for _, l := range reply.Units {
		by := ""
		if l.DeclaredBy != nil {
			by = l.DeclaredBy.Name
		}
		scopes[l.Scope+"/"+l.Name] = l.Active + " " + l.Enablement + " " + by
	}
	require.Equal(t, "active enabled reload-watcher", scopes["user/reload-watcher.service"])
	require.Equal(t, "active enabled web", scopes["system/web.service"])
	require.Equal(t, "inactive enabled ", scopes["user/web.service"], "a declaration is of its scope alone")
	require.NotContains(t, scopes, "system/reload-watcher.service")
	require.IsIncreasing(t, cursors(reply.Units), "sorted by scope and name")

	for scope, want := range map[string][]string{"": {"system", "user"}, "system": {"system"}, "user": {"user"}} {
		status, err := r.status(seats.StatusArguments{Unit: "web", Scope: scope})
		require.NoError(t, err)
		var got []string
		for _, u := range status.Units {
			got = append(got, u.Scope)
		}
		require.Equal(t, want, got)
		require.Empty(t, status.Unreadable)
	}
	status, err := r.status(seats.StatusArguments{Unit: "rw"})
	require.NoError(t, err)
	require.Len(t, status.Units, 1)
	require.Equal(t, "user reload-watcher.service active", status.Units[0].Scope+" "+status.Units[0].ID+" "+status.Units[0].Active)
	require.Equal(t, "reload-watcher", status.Units[0].DeclaredBy.Name)
	require.Equal(t, []string{"reloaded"}, status.Units[0].Lines)

	_, err = r.status(seats.StatusArguments{Unit: "reload-watchr"})
	requireFault(t, err, fault.NotFound, "status: reload-watchr.service: there is no such unit, in neither scope", "did you mean reload-watcher.service?")
	_, err = r.status(seats.StatusArguments{Unit: "reload-watcher", Scope: "system"})
	requireFault(t, err, fault.NotFound, "status: reload-watcher.service: there is no such unit in system scope; there is one in user scope", "stead status reload-watcher.service -n ws1 --user")
	_, err = r.status(seats.StatusArguments{Unit: "bad", Scope: "user"})
	requireFault(t, err, fault.NotFound, "status: bad.service: there is no such unit in user scope; there is one in system scope", "stead status bad.service -n ws1 --system")
}

func cursors(lines []seats.UnitLine) (all []string) {
	for _, l := range lines {
		all = append(all, l.Scope+"/"+l.Name)
	}
	return all
}

func TestScopeThatCannotBeReadIsNamedWithItsReason(t *testing.T) {
	why := func(text string) []seats.Unreadable { return []seats.Unreadable{{Scope: "user", Reason: text}} }
	down := workstation()
	for _, method := range []string{"Units", "Named", "Files", "Details", "Enablement"} {
		down.user.fails[method] = unasked
	}
	late := workstation()
	late.user.fails["Enablement"] = unasked
	for name, c := range map[string]struct {
		f    *fakeNode
		want string
	}{
		"no account":      {someUnits(), "this node has no operator account"},
		"no manager":      {down, "user manager of opal is not running"},
		"gone in between": {late, "user manager of opal is not running"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.f.rig(t)
			reply, err := r.units(seats.UnitsArguments{})
			require.NoError(t, err)
			require.Equal(t, why(c.want), reply.Unreadable)
			require.NotEmpty(t, reply.Units)
			for _, l := range reply.Units {
				require.Equal(t, "system", l.Scope)
			}
			reply, err = r.units(seats.UnitsArguments{Scope: "system"})
			require.NoError(t, err)
			require.Empty(t, reply.Unreadable)
			reply, err = r.units(seats.UnitsArguments{Scope: "user"})
			require.NoError(t, err)
			require.Equal(t, why(c.want), reply.Unreadable)
			require.Empty(t, reply.Units)
			if c.f == late {
				return
			}
			status, err := r.status(seats.StatusArguments{Unit: "web", Scope: "user"})
			require.NoError(t, err)
			require.Equal(t, seats.StatusReply{Units: []seats.UnitStatus{}, Unreadable: why(c.want)}, status)
			status, err = r.status(seats.StatusArguments{Unit: "web"})
			require.NoError(t, err)
			require.Len(t, status.Units, 1)
			require.Equal(t, why(c.want), status.Unreadable)
		})
	}
	_, err := down.rig(t).status(seats.StatusArguments{Unit: "xqzzt"})
	requireFault(t, err, fault.NotFound, "status: xqzzt.service: there is no such unit in system scope; user scope cannot be read: user manager of opal is not running", "")
	_, err = down.rig(t).act(seats.Stop, seats.ActArguments{Unit: "reload-watcher"})
	requireFault(t, err, fault.NotFound, "stop: reload-watcher.service: there is no such unit in system scope; one is declared in user scope, which cannot be read: user manager of opal is not running",
		"stead stop reload-watcher.service -n ws1 --user")

	blind := workstation()
	blind.fails["Details"], blind.fails["Units"] = errors.New("no bus"), errors.New("no bus")
	status, err := blind.rig(t).status(seats.StatusArguments{Unit: "reload-watcher"})
	require.NoError(t, err)
	require.Equal(t, "user", status.Units[0].Scope)
	require.Equal(t, []seats.Unreadable{{Scope: "system", Reason: "no bus"}}, status.Unreadable)
	_, err = blind.rig(t).status(seats.StatusArguments{Unit: "web", Scope: "system"})
	require.ErrorContains(t, err, "no bus")
}

// TestUserManagerThatHangsIsNotWaitedFor by who asks about the system, or both.
func TestUserManagerThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := workstation()
		f.user.hangs = true
		r := f.rig(t)
		for name, call := range map[string]func() error{
			"units":          func() error { _, err := r.units(seats.UnitsArguments{}); return err },
			"status":         func() error { _, err := r.status(seats.StatusArguments{Unit: "web"}); return err },
			"no such unit":   func() error { _, err := r.act(seats.Start, seats.ActArguments{Unit: "xqzzt"}); return err },
			"another's unit": func() error { _, err := r.act(seats.Start, seats.ActArguments{Unit: "reload-watcher"}); return err },
		} {
			began := time.Now()
			err := call()
			require.LessOrEqual(t, time.Since(began), asideFor, name)
			require.True(t, err == nil || fault.Is(err, fault.NotFound), "%s: %v", name, err)
		}
		for _, a := range []seats.ActArguments{{Unit: "web"}, {Unit: "we*"}} {
			began := time.Now()
			_, err := r.act(seats.Restart, a)
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
		}
	})
}

func TestActsAreOfTheScopeThatIsSaid(t *testing.T) {
	f := workstation()
	r := f.rig(t)
	for _, verb := range []subject.Verb{seats.Start, seats.Stop, seats.Restart} {
		reply, err := r.act(verb, seats.ActArguments{Unit: "rw", Scope: "user"})
		require.NoError(t, err)
		require.Len(t, reply.Units, 1)
		u := reply.Units[0]
		require.Equal(t, "reload-watcher.service user done", u.Unit+" "+u.Scope+" "+u.Result)
		require.Equal(t, "reload-watcher", u.DeclaredBy.Name)
		require.Equal(t, verb == seats.Stop, u.Note == `declaration "reload-watcher" ensures running: the host will start it again`, u.Note)
		require.Equal(t, escalate.Request{Act: escalate.Act(verb), Unit: "rw.service", Scope: unit.User}, f.user.asked[len(f.user.asked)-1])
	}
	link, err := r.link(seats.Enable, seats.EnableArguments{Unit: "reload-watcher", Scope: "user", Now: true})
	require.NoError(t, err)
	require.Equal(t, "user", link.Scope)
	require.Len(t, link.Made, 1)
	require.Equal(t, "user done", link.Acted.Scope+" "+link.Acted.Result)
	link, err = r.link(seats.Disable, seats.EnableArguments{Unit: "reload-watcher", Scope: "user"})
	require.NoError(t, err)
	require.Equal(t, []string{"/srv/o/default.target.wants/reload-watcher.service"}, link.Removed)
	require.Equal(t, `declaration "reload-watcher" has it enabled: the host will make its links again`, link.Note)
	require.Empty(t, f.asked, "nothing was done to a unit of the system")

	reply, err := r.act(seats.Restart, seats.ActArguments{Unit: "we*", Scope: "user"})
	require.NoError(t, err)
	require.Equal(t, "web.service user", reply.Units[0].Unit+" "+reply.Units[0].Scope)
	require.Empty(t, reply.Units[0].DeclaredBy)
	_, err = r.act(seats.Stop, seats.ActArguments{Unit: "basic.target", Scope: "user"})
	requireFault(t, err, fault.Refused, "stop: basic.target: it is protected: the account's manager and session stand on it", "")
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "exit.target", Scope: "user"})
	requireFault(t, err, fault.Refused, "start: exit.target: it is protected: starting it ends the account's manager", "")
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "bad", Scope: "user"})
	requireFault(t, err, fault.NotFound, "start: bad.service: there is no such unit in user scope; there is one in system scope", "stead start bad.service -n ws1")
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "reload-watcher"})
	requireFault(t, err, fault.NotFound, "start: reload-watcher.service: there is no such unit in system scope; there is one in user scope", "stead start reload-watcher.service -n ws1 --user")
	_, err = r.link(seats.Enable, seats.EnableArguments{Unit: "reload-watcher"})
	requireFault(t, err, fault.NotFound, "enable: reload-watcher.service: there is no such unit in system scope; there is one in user scope", "stead enable reload-watcher.service -n ws1 --user")
	many := workstation()
	for i := range 11 {
		u := service(unit.Name("m" + string(rune('a'+i)) + ".service"))
		many.user.units[u.ID] = u
	}
	_, err = many.rig(t).act(seats.Stop, seats.ActArguments{Unit: "m*", Scope: "user"})
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	stopped, err := many.rig(t).act(seats.Stop, seats.ActArguments{Unit: "m*", Scope: "user", Yes: true})
	require.NoError(t, err)
	require.Len(t, stopped.Units, 11)
}

func TestWithoutAnAccountUserScopeIsNotActedIn(t *testing.T) {
	f := someUnits()
	r := f.rig(t)
	for _, verb := range []subject.Verb{seats.Start, seats.Stop, seats.Restart} {
		_, err := r.act(verb, seats.ActArguments{Unit: "web", Scope: "user"})
		require.ErrorContains(t, err, "this node has no operator account")
		require.Equal(t, fault.Refused, fault.ClassOf(err))
		require.Equal(t, "stead node account NODE LOGIN", fault.HintOf(err))
	}
	_, err := r.link(seats.Enable, seats.EnableArguments{Unit: "web", Scope: "user"})
	require.ErrorContains(t, err, "this node has no operator account")
	_, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "web", Scope: "user"})
	require.ErrorContains(t, err, "this node has no operator account")
	require.Empty(t, f.asked)
}

func TestJournalOfUserScopeIsThatOfTheAccount(t *testing.T) {
	f := workstation()
	r := f.rig(t)
	reply, err := ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "rw", Scope: "user"})
	require.NoError(t, err)
	require.Len(t, reply.Entries, 1)
	require.Equal(t, []seats.JournalArguments{{Unit: "reload-watcher.service", Scope: "user"}}, f.user.queried)
	require.Empty(t, f.queried)
	_, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "reload-watchr", Scope: "user"})
	requireFault(t, err, fault.NotFound, "journal: reload-watchr.service: there is no such unit in user scope", "did you mean reload-watcher.service?")
	_, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "rw"})
	requireFault(t, err, fault.NotFound, "journal: rw.service: there is no such unit in system scope; there is one in user scope", "stead journal -u rw.service -n ws1 --user")
	// What a manager that is down has logged is there all the same.
	f.user.fails["Details"] = unasked
	reply, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "reload-watcher.service", Scope: "user"})
	require.NoError(t, err)
	require.Len(t, reply.Entries, 1)
}
