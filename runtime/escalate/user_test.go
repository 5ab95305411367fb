package escalate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

func TestActsOfUserScopeAreTheAccountsManagers(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	r.unit("a.service", sleeper)
	o.unit("a.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=default.target\n")
	r.helper()
	c, _ := r.client(nil)
	ctx := WithFor(bound(t), "operator alice")
	in := func(act Act) Request { return Request{Act: act, Unit: "a.service", Scope: unit.User} }
	for _, act := range []Act{Start, Restart, ResetFailed, Stop} {
		out, err := c.Do(ctx, in(act))
		require.NoError(t, err)
		if act != ResetFailed {
			require.Equal(t, unit.JobDone, out.Result)
			require.Equal(t, unit.Name("a.service"), out.Before.ID)
			require.Equal(t, act != Stop, out.After.Active == unit.Active)
		}
		r.logged("act done", "act="+string(act)+" ", "unit=a.service", `for="operator alice"`, "scope=user")
	}
	out, err := c.Do(ctx, in(Enable))
	require.NoError(t, err)
	require.Len(t, out.Links.Made, 1)
	out, err = c.Do(ctx, in(Disable))
	require.NoError(t, err)
	require.Len(t, out.Links.Removed, 1)
	require.Empty(t, r.did(), "nothing was asked of PID 1")
	require.Equal(t, []string{"start a.service", "restart a.service", "reset-failed a.service", "stop a.service", "enable a.service", "reload", "disable a.service", "reload"}, o.m.Log())
	met, open := o.connections()
	require.Equal(t, "1 1", fmt.Sprint(met, open), "one connection serves all")

	// A call is of its scope: the same act on a unit of that name is another.
	call := WithCall(bound(t), Call{ID: strings.Repeat("c", 20)})
	_, err = c.Do(call, in(Start))
	require.NoError(t, err)
	_, err = c.Do(call, Request{Act: Start, Unit: "a.service"})
	require.NoError(t, err)
	require.Equal(t, []string{"start a.service"}, r.did())
	known, err := c.Known(WithCall(bound(t), Call{ID: strings.Repeat("c", 20), Asked: time.Second}))
	require.NoError(t, err)
	require.Equal(t, []Begun{{Act: Start, Unit: "a.service"}, {Act: Start, Unit: "a.service", Scope: unit.User}}, known)
	_, err = c.Do(bound(t), Request{Act: Start, Unit: "a.service", Scope: "both"})
	require.ErrorContains(t, err, `"both" is no scope`)
}

func TestWhatIsAskedOfUserScopeIsJudgedByItsOwnRules(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit("a.service", sleeper)
	o.m.ties = map[unit.Name]unit.Ties{
		"alias.service": {Names: []unit.Name{"alias.service", "dbus.service"}},
		"deep.service":  {StopsWith: []unit.Name{"basic.target"}},
		"foe.service":   {Conflicts: []unit.Name{"dbus.socket"}},
	}
	for i := range 600 {
		o.m.ties[unit.Name(fmt.Sprintf("c%d.service", i))] = unit.Ties{StopsWith: []unit.Name{unit.Name(fmt.Sprintf("c%d.service", i+1))}}
	}
	r.helper()
	c, _ := r.client(nil)
	const base = "the account's manager and session stand on it"
	for _, e := range []struct {
		act   Act
		unit  unit.Name
		class fault.Class
		text  string
	}{
		{Stop, "dbus.service", fault.Refused, "stop: dbus.service: it is protected: " + base},
		{Restart, "basic.target", fault.Refused, base},
		{Stop, "app.slice", fault.Refused, base},
		{Disable, "dbus.socket", fault.Refused, base},
		{Stop, "alias.service", fault.Refused, "it is dbus.service, which is protected: " + base},
		{Stop, "deep.service", fault.Refused, "it stops basic.target, which is protected: " + base},
		{Start, "foe.service", fault.Refused, "it stops dbus.socket, which is protected: " + base},
		{Start, "exit.target", fault.Refused, "it ends the account's manager"},
		{Start, "systemd-exit.service", fault.Refused, "it ends the account's manager"},
		{Stop, "c0.service", fault.Refused, "it stops more than 500 units"},
		{Start, "/etc/passwd", fault.Invalid, `start: "/etc/passwd"`},
		{Start, "none.service", fault.NotFound, "Unit none.service not found"},
	} {
		_, err := c.Do(bound(t), Request{Act: e.act, Unit: e.unit, Scope: unit.User})
		require.ErrorContains(t, err, e.text, "%s %s", e.act, e.unit)
		require.Equal(t, e.class, fault.ClassOf(err))
	}
	require.Empty(t, o.m.Log())
}

// TestAccountIsTheOneThatTheHostHasNoted and no caller has a say in it.
func TestAccountIsTheOneThatTheHostHasNoted(t *testing.T) {
	const is = "the operator account of this node is "
	for name, c := range map[string]struct {
		spoil func(o *opal)
		text  string
		hint  string
	}{
		"no file":                  {func(o *opal) { require.NoError(o.t, os.Remove(o.file)) }, "this node has no operator account", setAccount},
		"no account":               {func(o *opal) { o.note(`{"name":"","state":""}`) }, "this node has no operator account", setAccount},
		"root":                     {func(o *opal) { o.note(`{"name":"root"}`) }, is + "root, whose manager is the system's", setAccount},
		"root by its uid":          {func(o *opal) { o.note(`{"name":"toor"}`) }, is + `"toor", which is root under another name`, setAccount},
		"a login that is gone":     {func(o *opal) { o.set(nil) }, is + `"opal", and there is no such login`, "make the login, or name another one: " + setAccount},
		"a uid that is another's":  {func(o *opal) { o.note(`{"name":"ruby","uid":1000}`) }, is + `"ruby" with uid 1000, and that login has uid 1001 now: the host has not taken it in`, ""},
		"a login with another uid": {func(o *opal) { o.set(map[string]uint32{"opal": 4711}) }, is + `"opal" with uid 1000, and that login has uid 4711 now: the host has not taken it in`, ""},
		"no JSON":                  {func(o *opal) { o.note("opal\n") }, "not known: " + "FILE: invalid character", ""},
		"a file of another's":      {func(o *opal) { require.NoError(o.t, os.Chown(o.file, 1, 1)) }, "not known: FILE: others than root may write it", ""},
		"a file that others write": {func(o *opal) { require.NoError(o.t, os.Chmod(o.file, 0o666)) }, "not known: FILE: others than root may write it", ""},
		"a link": {func(o *opal) {
			require.NoError(o.t, os.Rename(o.file, o.file+".real"))
			require.NoError(o.t, os.Symlink(o.file+".real", o.file))
		}, "not known: FILE: too many levels of symbolic links", ""},
		"a folder": {func(o *opal) {
			require.NoError(o.t, os.Remove(o.file))
			require.NoError(o.t, os.Mkdir(o.file, 0o700))
		}, "not known: FILE: it is no file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := r.withOpal()
			o.unit("a.service", sleeper)
			r.unit("a.service", sleeper)
			r.helper()
			client, _ := r.client(nil)
			ask := Request{Act: Restart, Unit: "a.service", Scope: unit.User}
			_, err := client.Do(bound(t), ask)
			require.NoError(t, err)
			c.spoil(o)
			want := strings.ReplaceAll(c.text, "FILE", o.file)
			_, err = client.Do(bound(t), ask)
			require.ErrorContains(t, err, want)
			require.Equal(t, fault.Refused, fault.ClassOf(err))
			require.Equal(t, c.hint, fault.HintOf(err))
			_, err = client.User().Units(bound(t), unit.Filter{})
			require.ErrorContains(t, err, want)
			_, err = client.User().Account(bound(t))
			require.ErrorContains(t, err, want)
			require.Equal(t, 1, strings.Count(fmt.Sprint(o.m.Log()), "restart"))
			_, err = client.Do(bound(t), Request{Act: Start, Unit: "a.service"})
			require.NoError(t, err, "of the system scope")
		})
	}
}

func TestManagerThatCannotBeAskedIsNamed(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	ask := func() error {
		_, err := c.Do(bound(t), Request{Act: Start, Unit: "a.service", Scope: unit.User})
		return err
	}
	o.lives("")
	err := ask()
	require.EqualError(t, err, "start: a.service: user manager of opal is not running")
	require.Equal(t, fault.Failed, fault.ClassOf(err), "it is not asked again by itself")
	a, err := c.User().Account(bound(t))
	require.NoError(t, err)
	require.Equal(t, Account{"opal", 1000, "user manager of opal is not running"}, a, "whose journal it is, is known")
	for i, e := range []struct {
		dialed error
		class  fault.Class
		text   string
	}{
		{fault.New(fault.NotFound, "dial", "the user manager", fault.New(fault.NotFound, "open", "/run/user/1000/x", os.ErrNotExist)), fault.Unavailable, "user manager of opal runs, and does not listen yet"},
		{fault.New(fault.Denied, "dial", "the user manager", errors.New("process 9 listens")), fault.Failed, "another than the user manager of opal stands on its socket: dial: the user manager: process 9 listens"},
		{fault.New(fault.Timeout, "dial", "the user manager", os.ErrDeadlineExceeded), fault.Failed, "user manager of opal does not answer"},
		{fault.New(fault.Refused, "dial", "the user manager", fault.New(fault.Refused, "open", "it", os.ErrPermission)), fault.Failed, "user manager of opal turns stead away: open: it: permission denied"},
		{fault.New(fault.Unavailable, "", "", errors.New("lost")), fault.Unavailable, "the connection to the user manager of opal was lost"},
	} {
		o.mu.Lock()
		o.down = e.dialed
		o.mu.Unlock()
		o.lives(fmt.Sprintf("life %d", i))
		err := ask()
		require.EqualError(t, err, "start: a.service: "+e.text)
		require.Equal(t, e.class, fault.ClassOf(err))
		a, err := c.User().Account(bound(t))
		require.NoError(t, err)
		require.Equal(t, Account{"opal", 1000, e.text}, a)
	}
	o.mu.Lock()
	o.down = nil
	o.mu.Unlock()
	o.lives("well")
	require.NoError(t, ask())
	a, err = c.User().Account(bound(t))
	require.NoError(t, err)
	require.Equal(t, Account{Name: "opal", UID: 1000}, a)
	r.m.mu.Lock()
	r.m.err = errors.New("no answer")
	r.m.mu.Unlock()
	err = ask()
	require.ErrorContains(t, err, "no answer")
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
}

func TestGuardLetsTheMainProcessOfTheAccountsManagerPassAlone(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	g := &Guard{Account{Name: "opal", UID: 1000}, r.m}
	uid, err := g.UID()
	require.NoError(t, err)
	require.Equal(t, uint32(1000), uid)
	require.NoError(t, g.Peer(t.Context(), 77, 1000))
	require.Equal(t, fault.Denied, fault.ClassOf(g.Peer(t.Context(), 78, 1000)))
	require.Equal(t, fault.Denied, fault.ClassOf(g.Peer(t.Context(), 77, 0)))
	o.lives("")
	require.Equal(t, fault.NotFound, fault.ClassOf(g.Peer(t.Context(), 77, 1000)))
	r.m.mu.Lock()
	r.m.err = errors.New("no answer")
	r.m.mu.Unlock()
	require.Equal(t, fault.Unavailable, fault.ClassOf(g.Peer(t.Context(), 77, 1000)))
}

// TestJobOfAManagerThatIsGoneEnds, and its number is not taken for one of the next.
func TestJobOfAManagerThatIsGoneEnds(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit("s.service", slow)
	r.helper()
	c, _ := r.client(nil)
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(context.Background(), Request{Act: Start, Unit: "s.service", Scope: unit.User})
		done <- err
	}()
	r.logged("job queued", "unit=s.service", "scope=user")
	o.lives("two")
	out, err := c.Do(bound(t), Request{Act: Start, Unit: "s.service", Scope: unit.User, NoWait: true})
	require.NoError(t, err)
	require.NotZero(t, out.Job)
	require.Eventually(t, func() bool { return o.m.Ready("s.service") == nil }, 10*time.Second, time.Millisecond)
	select {
	case err = <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	require.EqualError(t, err, "start: s.service: how it ended was not heard: the user manager that had it in hand is gone")
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	met, open := o.connections()
	require.Equal(t, 2, met)
	require.Eventually(t, func() bool { _, open = o.connections(); return open == 1 }, 5*time.Second, time.Millisecond)
}

func TestHelperThatIsStartedAnewGoesOnInUserScope(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit("s.service", slow)
	stop := r.helper()
	c, _ := r.client(nil)
	done := make(chan Outcome, 1)
	go func() {
		out, err := c.Do(context.Background(), Request{Act: Start, Unit: "s.service", Scope: unit.User})
		require.NoError(t, err)
		done <- out
	}()
	r.logged("job queued", "unit=s.service", "scope=user")
	stop()
	_, open := o.connections()
	require.Zero(t, open, "it left nothing behind")
	r.helper()
	require.Eventually(t, func() bool { return o.m.Ready("s.service") == nil }, 10*time.Second, time.Millisecond)
	select {
	case out := <-done:
		require.Equal(t, unit.JobDone, out.Result)
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	require.Equal(t, []string{"start s.service"}, o.m.Log(), "once")
}

func TestConnectionIsKeptWhileSomebodyUsesIt(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.keep = 50 * time.Millisecond
	o.unit("s.service", slow)
	r.helper()
	c, _ := r.client(nil)
	require.NoError(t, c.Wait(bound(t)))
	time.Sleep(20 * time.Millisecond)
	met, _ := o.connections()
	require.Zero(t, met, "nobody has asked")
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(context.Background(), Request{Act: Start, Unit: "s.service", Scope: unit.User})
		done <- err
	}()
	r.logged("job queued", "unit=s.service")
	time.Sleep(2*tendEvery + tendEvery/2)
	_, open := o.connections()
	require.Equal(t, 1, open, "a job is waited for")
	require.Eventually(t, func() bool { return o.m.Ready("s.service") == nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, <-done)
	require.Eventually(t, func() bool { _, open := o.connections(); return open == 0 }, 10*time.Second, 10*time.Millisecond, "nobody uses it")
	r.logged("user scope is left", "account=opal")
	_, err := c.User().Units(bound(t), unit.Filter{})
	require.NoError(t, err)
	o.note(`{"name":"ruby","uid":1001}`)
	require.Eventually(t, func() bool { _, open := o.connections(); return open == 0 }, 10*time.Second, 10*time.Millisecond, "it is another account now")
}
