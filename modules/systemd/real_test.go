package systemd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/seats"
)

// seatUnits are the units that the verbs are tried on.
func seatUnits(t *testing.T) func(run func(args ...string) string) {
	return func(run func(args ...string) string) {
		const system = "/etc/systemd/system/"
		sleeper := "[Service]\nExecStart=/bin/sleep infinity\n"
		for i := range 12 {
			put(t, fmt.Sprintf("%sseat-many-%02d.service", system, i), sleeper)
		}
		for name, text := range map[string]string{
			"seat-a.service":         "[Unit]\nDescription=one that runs\n" + sleeper + "[Install]\nWantedBy=multi-user.target\nAlias=seat-alias.service\n",
			"seat-bad.service":       "[Service]\nType=oneshot\nExecStart=/bin/false\n",
			"seat-slow.service":      "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 3\n",
			"seat-unmet.service":     "[Unit]\nConditionPathExists=/nope\n" + sleeper,
			"seat-needs.service":     "[Unit]\nRequires=seat-bad.service\nAfter=seat-bad.service\n" + sleeper,
			"seat-sock.socket":       "[Socket]\nListenStream=/run/seat.sock\n",
			"seat-sock.service":      sleeper,
			"seat-t@.service":        sleeper + "[Install]\nWantedBy=multi-user.target\nDefaultInstance=one\n",
			"seat-static.service":    sleeper,
			"seat-also.service":      sleeper + "[Install]\nWantedBy=multi-user.target\nAlso=seat-static.service\n",
			"seat-talks.service":     "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'for i in 1 2 3; do echo line $i; done; printf \"\\\\377\\\\n\"'\n",
			"../user/seat-u.service": sleeper,
		} {
			put(t, system+name, text)
		}
		require.NoError(t, os.MkdirAll(system+"multi-user.target.wants", 0o755))
		require.NoError(t, os.Symlink("/dev/null", system+"seat-masked.service"))
		require.NoError(t, os.Symlink("/etc/systemd/system/seat-gone.service", "/etc/systemd/system/multi-user.target.wants/seat-gone.service"))
		require.NoError(t, os.Symlink("/etc/systemd/system/seat-static.service", system+"seat-nick.service"))
		run("systemctl", "daemon-reload")
		run("useradd", "-m", "opal")
		run("loginctl", "enable-linger", "opal")
		run("sh", "-c", "until systemctl -q is-active user@$(id -u opal); do sleep 0.05; done")
		put(t, escalate.AccountPath, fmt.Sprintf(`{"name":"opal","uid":%s}`, strings.TrimSpace(run("id", "-u", "opal"))))
	}
}

// real is a rig on this machine, with systemctl to hold it against.
type real struct {
	rig
	t   *testing.T
	run func(args ...string) string
}

func (r real) show(name, property string) string {
	r.t.Helper()
	return strings.TrimSpace(r.run("systemctl", "show", "-P", property, "--", name))
}

// acted does an act on one unit, holds what it says of how that stands against
// systemctl, and returns it.
func (r real) acted(verb subject.Verb, a seats.ActArguments) seats.Acted {
	r.t.Helper()
	reply, err := r.act(verb, a)
	require.NoError(r.t, err)
	require.Len(r.t, reply.Units, 1)
	u := reply.Units[0]
	require.Equal(r.t, seats.State{Active: r.show(u.Unit, "ActiveState"), Sub: r.show(u.Unit, "SubState")}, u.After)
	return u
}

// actedInUser does an act on one unit of the account.
func (r real) actedInUser(verb subject.Verb, name string) seats.Acted {
	r.t.Helper()
	reply, err := r.act(verb, seats.ActArguments{Unit: name, Scope: "user"})
	require.NoError(r.t, err)
	require.Len(r.t, reply.Units, 1)
	require.Equal(r.t, "user", reply.Units[0].Scope)
	return reply.Units[0]
}

func (r real) fails(verb subject.Verb, a seats.ActArguments, class fault.Class, text string) error {
	r.t.Helper()
	_, err := r.act(verb, a)
	require.ErrorContains(r.t, err, text)
	require.Equal(r.t, class, fault.ClassOf(err), "%v", err)
	return err
}

func TestVerbsActOnARealMachine(t *testing.T) {
	if !served(t, seatUnits(t)) {
		return
	}
	r := real{t: t, run: here(t), rig: realRig(t,
		wire.DeclaredUnit{Unit: "seat-a.service", Aliases: []string{"seat-alias.service"}, Scope: "system", Name: "a", Generation: 2, Ensure: "running", Enabled: truth(true)},
		wire.DeclaredUnit{Unit: "seat-nick.service", Scope: "system", Name: "nick", Ensure: "stopped"},
	)}
	t.Run("jobs", r.jobs)
	t.Run("patterns", r.patterns)
	t.Run("links", r.links)
	t.Run("refusals", r.refusals)
	t.Run("many at once", r.many)
	// F102: every call opens a connection, or asks for signals, and never ends that.
	// stead: has one connection to each manager, whatever is called and how often.
	t.Run("F102 a thousand calls need no further connection", r.soak)
}

func (r real) soak(t *testing.T) {
	r.t, r.rig.t = t, t
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(files)
	}
	none := 0
	call := func(times int) {
		for range times {
			_, err := r.status(seats.StatusArguments{Unit: "seat-a", Lines: &none, Scope: "system"})
			require.NoError(t, err)
		}
		for range times / 50 { // no start, of which systemd takes five in ten seconds
			require.Equal(t, "done", r.acted(seats.Stop, seats.ActArguments{Unit: "seat-a"}).Result)
		}
	}
	call(50)
	before := open()
	call(1000)
	require.LessOrEqual(t, open(), before)
}

func (r real) jobs(t *testing.T) {
	r.t, r.rig.t = t, t
	u := r.acted(seats.Start, seats.ActArguments{Unit: "seat-a"})
	require.Equal(t, "done", u.Result)
	require.Equal(t, seats.State{Active: "inactive", Sub: "dead"}, u.Before)
	require.Equal(t, seats.State{Active: "active", Sub: "running"}, u.After)
	require.Equal(t, &seats.DeclaredBy{Name: "a", Generation: 2, Ensure: "running", Enabled: truth(true)}, u.DeclaredBy)
	require.Empty(t, u.Note)
	require.Greater(t, u.Took, 0.0)

	before := r.show("seat-a.service", "InvocationID")
	require.Equal(t, "done", r.acted(seats.Restart, seats.ActArguments{Unit: "seat-a.service"}).Result)
	require.NotEqual(t, before, r.show("seat-a.service", "InvocationID"))
	require.Equal(t, `declaration "a" ensures running: the host will start it again`, r.acted(seats.Stop, seats.ActArguments{Unit: "seat-a"}).Note)

	u = r.acted(seats.Start, seats.ActArguments{Unit: "seat-nick"})
	require.Equal(t, "seat-static.service", u.Unit)
	require.Equal(t, `declaration "nick" ensures stopped: the host will stop it again`, u.Note, "declared by an alias")
	require.Empty(t, r.acted(seats.Stop, seats.ActArguments{Unit: "seat-static"}).Note)

	require.Equal(t, "failed", r.acted(seats.Start, seats.ActArguments{Unit: "seat-bad"}).Result)
	require.Equal(t, "dependency", r.acted(seats.Start, seats.ActArguments{Unit: "seat-needs"}).Result)
	u = r.acted(seats.Start, seats.ActArguments{Unit: "seat-unmet"})
	require.Equal(t, "done", u.Result, "so systemd has it")
	require.Equal(t, "inactive", u.After.Active)

	reply, err := r.act(seats.Start, seats.ActArguments{Unit: "seat-slow", Wait: truth(false)})
	require.NoError(t, err)
	require.Equal(t, "queued", reply.Units[0].Result)
	began := time.Now()
	err = r.fails(seats.Start, seats.ActArguments{Unit: "seat-slow", Timeout: "300ms"}, fault.Timeout, "has not ended after 0.3 s, and goes on; the unit is activating (start)")
	require.Less(t, time.Since(began), 2*time.Second, "%v", err)
	require.Equal(t, "done", r.acted(seats.Start, seats.ActArguments{Unit: "seat-slow"}).Result)

	require.Equal(t, "done", r.acted(seats.Start, seats.ActArguments{Unit: "seat-sock.socket"}).Result)
	require.Equal(t, "done", r.acted(seats.Start, seats.ActArguments{Unit: "seat-sock.service"}).Result)
	require.Equal(t, "it can still be started by seat-sock.socket", r.acted(seats.Stop, seats.ActArguments{Unit: "seat-sock"}).Note)
	require.Equal(t, "done", r.acted(seats.Restart, seats.ActArguments{Unit: "seat-t@two.service"}).Result)
}

func (r real) patterns(t *testing.T) {
	r.t, r.rig.t = t, t
	err := r.fails(seats.Start, seats.ActArguments{Unit: "seat-many-*"}, fault.NotFound, "no loaded unit of system scope matches")
	require.Equal(t, "did you mean seat-many-00.service, seat-many-01.service, seat-many-02.service?", fault.HintOf(err), "a pattern means what is loaded")
	for i := range 12 {
		require.Equal(t, "done", r.acted(seats.Start, seats.ActArguments{Unit: fmt.Sprintf("seat-many-%02d", i)}).Result)
	}
	invocation := r.show("seat-many-03.service", "InvocationID")
	r.fails(seats.Restart, seats.ActArguments{Unit: "seat-many-*"}, fault.Refused, "it means 12 units: seat-many-00.service, ")
	require.Equal(t, invocation, r.show("seat-many-03.service", "InvocationID"))
	reply, err := r.act(seats.Restart, seats.ActArguments{Unit: "seat-many-0[0-4].service"})
	require.NoError(t, err)
	require.Len(t, reply.Units, 5)
	require.NotEqual(t, invocation, r.show("seat-many-03.service", "InvocationID"))
	reply, err = r.act(seats.Stop, seats.ActArguments{Unit: "seat-many-*", Yes: true})
	require.NoError(t, err)
	require.Len(t, reply.Units, 12)
	for _, u := range reply.Units {
		require.Equal(t, "done active inactive", u.Result+" "+u.Before.Active+" "+u.After.Active, u.Unit)
	}
	r.fails(seats.Stop, seats.ActArguments{Unit: "d*", Yes: true}, fault.Refused, "dbus.service is protected")
	require.Equal(t, "active", r.show("dbus.service", "ActiveState"))
}

func (r real) links(t *testing.T) {
	r.t, r.rig.t = t, t
	const wants, alias = "/etc/systemd/system/multi-user.target.wants/", "/etc/systemd/system/seat-alias.service"
	reply, err := r.link(seats.Enable, seats.EnableArguments{Unit: "seat-a", Now: true})
	require.NoError(t, err)
	require.ElementsMatch(t, []seats.Link{{Path: wants + "seat-a.service", To: "/etc/systemd/system/seat-a.service"}, {Path: alias, To: "/etc/systemd/system/seat-a.service"}}, reply.Made)
	require.Equal(t, "done", reply.Acted.Result)
	require.Empty(t, reply.Note)
	require.Equal(t, "enabled", r.show("seat-a.service", "UnitFileState"))
	require.Equal(t, "seat-a.service", r.show("seat-alias.service", "Id"), "systemd knows it")
	u := r.acted(seats.Stop, seats.ActArguments{Unit: "seat-alias"})
	require.Equal(t, "seat-a.service", u.Unit)
	require.Equal(t, "a", u.DeclaredBy.Name)

	reply, err = r.link(seats.Disable, seats.EnableArguments{Unit: "seat-a", Now: true})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{wants + "seat-a.service", alias}, reply.Removed)
	require.Equal(t, `declaration "a" has it enabled: the host will make its links again`, reply.Note)
	require.Equal(t, `declaration "a" ensures running: the host will start it again`, reply.Acted.Note)
	require.Equal(t, "disabled", r.show("seat-a.service", "UnitFileState"))
	_, err = r.status(seats.StatusArguments{Unit: "seat-alias"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
	require.Equal(t, "it is an alias that seat-a.service asks for, and that is made when that is enabled", fault.HintOf(err))

	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "seat-t@.service"})
	require.NoError(t, err)
	require.Equal(t, []seats.Link{{Path: wants + "seat-t@one.service", To: "/etc/systemd/system/seat-t@.service"}}, reply.Made)
	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "seat-t@two"})
	require.NoError(t, err)
	require.Len(t, reply.Made, 1)
	reply, err = r.link(seats.Disable, seats.EnableArguments{Unit: "seat-t@.service"})
	require.NoError(t, err)
	require.Len(t, reply.Removed, 2, "those of every instance, as systemctl has it")

	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "seat-static"})
	require.NoError(t, err)
	require.True(t, reply.NoInstall)
	reply, err = r.link(seats.Disable, seats.EnableArguments{Unit: "seat-gone"})
	require.NoError(t, err)
	require.Equal(t, []string{wants + "seat-gone.service"}, reply.Removed, "of a unit that is gone")
	for _, verb := range []subject.Verb{seats.Enable, seats.Disable} {
		_, err = r.link(verb, seats.EnableArguments{Unit: "seat-gone"})
		require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
	}
	_, err = r.link(seats.Enable, seats.EnableArguments{Unit: "seat-masked"})
	require.ErrorContains(t, err, "masked")
	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "seat-also"})
	require.NoError(t, err)
	require.Equal(t, []seats.Link{{Path: wants + "seat-also.service", To: "/etc/systemd/system/seat-also.service"}}, reply.Made)
}

func (r real) refusals(t *testing.T) {
	r.t, r.rig.t = t, t
	for verb, name := range map[subject.Verb]string{seats.Stop: "dbus", seats.Restart: "systemd-journald", seats.Start: "poweroff.target"} {
		r.fails(verb, seats.ActArguments{Unit: name}, fault.Refused, "is protected")
	}
	r.fails(seats.Stop, seats.ActArguments{Unit: "stead-runtime"}, fault.Refused, "it is protected: it is stead's own")
	r.fails(seats.Start, seats.ActArguments{Unit: "runlevel6.target"}, fault.Refused, "protected")
	// What reaches a protected unit by another way only the root helper sees.
	r.fails(seats.Stop, seats.ActArguments{Unit: "system.slice"}, fault.Refused, "protected")
	_, err := r.link(seats.Disable, seats.EnableArguments{Unit: "dbus"})
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	r.fails(seats.Start, seats.ActArguments{Unit: "seat-masked"}, fault.Refused, "seat-masked.service is masked")
	r.fails(seats.Start, seats.ActArguments{Unit: "seat-t@.service"}, fault.Invalid, "it is a template")
	r.fails(seats.Start, seats.ActArguments{Unit: "seat-u"}, fault.NotFound, "there is no such unit in system scope; there is one in user scope")
	u := r.actedInUser(seats.Start, "seat-u")
	require.Equal(t, "done inactive active", u.Result+" "+u.Before.Active+" "+u.After.Active)
	u = r.actedInUser(seats.Stop, "seat-u")
	require.Equal(t, "done active inactive", u.Result+" "+u.Before.Active+" "+u.After.Active)
	err = r.fails(seats.Start, seats.ActArguments{Unit: "seat-salt"}, fault.NotFound, "there is no such unit in system scope")
	require.Empty(t, fault.HintOf(err))
	err = r.fails(seats.Restart, seats.ActArguments{Unit: "seat-solw"}, fault.NotFound, "there is no such unit in system scope")
	require.Equal(t, "did you mean seat-slow.service, seat-sock.service, seat-sock.socket?", fault.HintOf(err))
	err = r.fails(seats.Start, seats.ActArguments{Unit: "seat-sock.timer"}, fault.NotFound, "there is no such unit in system scope")
	require.Equal(t, "did you mean seat-sock.socket, seat-sock.service?", fault.HintOf(err))
}

// many has calls of one moment end each with its own answer.
func (r real) many(t *testing.T) {
	r.t, r.rig.t = t, t
	errs := make(chan error, 36)
	for i := range 36 {
		go func() {
			reply, err := r.act([]subject.Verb{seats.Start, seats.Restart, seats.Stop}[i/12], seats.ActArguments{Unit: fmt.Sprintf("seat-many-%02d", i%12)})
			if err == nil && len(reply.Units) != 1 {
				err = fmt.Errorf("%d units", len(reply.Units))
			}
			errs <- err
		}()
	}
	for range 36 {
		require.NoError(t, <-errs)
	}
}

func TestVerbsReadTheJournalOfARealMachine(t *testing.T) {
	if !served(t, func(run func(args ...string) string) {
		seatUnits(t)(run)
		run("systemctl", "start", "seat-talks.service")
		run("ln", "-s", "seat-talks.service", "/etc/systemd/system/seat-speaks.service")
		run("journalctl", "--sync")
	}) {
		return
	}
	r := real{t: t, run: here(t), rig: realRig(t)}
	// journalctl writes fields in another order each time.
	said := func(args ...string) []string {
		var out []string
		for line := range strings.Lines(r.run(append([]string{"journalctl", "-o", "json", "--all", "--no-pager"}, args...)...)) {
			out = append(out, inOrder(t, []json.RawMessage{json.RawMessage(line)})...)
		}
		return out
	}
	reply, err := ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Unit: "seat-speaks", Boot: "0"})
	require.NoError(t, err)
	require.Greater(t, len(reply.Entries), 4)
	require.Equal(t, said("-u", "seat-talks"), inOrder(t, reply.Entries), "with every field, and by the name that entries carry")
	require.Contains(t, fmt.Sprintf("%s", reply.Entries), `"MESSAGE":[255]`) // PID 1's own may come in between
	two := 2
	page, err := ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Unit: "seat-talks", Lines: &two})
	require.NoError(t, err)
	require.Equal(t, said("-u", "seat-talks", "-n", "2"), inOrder(t, page.Entries))

	status, err := r.status(seats.StatusArguments{Unit: "seat-talks"})
	require.NoError(t, err)
	require.Len(t, status.Units[0].Lines, len(reply.Entries))
	lines := strings.Join(status.Units[0].Lines, "\n")
	require.Regexp(t, `(?m)^[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d line 2$`, lines)
	require.Regexp(t, `(?m):\d\d \\xff$`, lines)

	_, err = ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Unit: "seat-tlaks"})
	requireFault(t, err, fault.NotFound, "journal: seat-tlaks.service: there is no such unit in system scope", "did you mean seat-talks.service?")
	empty, err := ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Unit: "seat-a"})
	require.NoError(t, err)
	require.Empty(t, empty.Entries)
	_, err = ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Since: "nonsense"})
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	mine, err := ask[seats.JournalReply](r.rig, seats.Journal, seats.JournalArguments{Scope: "user"})
	require.NoError(t, err)
	require.NotEmpty(t, mine.Entries)
	for _, e := range mine.Entries {
		require.Contains(t, string(e), `"_SYSTEMD_UNIT":"user@`, "of the account's manager, and what it runs")
	}

	// What is said while it is followed arrives, and the follower's end ends it.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &chunks{got: make(chan seats.JournalReply, 100)}
	ended := make(chan error, 1)
	none := 0
	go func() {
		ended <- r.d.Follow(ctx, request(t, seats.Journal, seats.JournalArguments{Unit: "seat-speaks", Follow: true, Lines: &none}), s)
	}()
	first := <-s.got
	require.Empty(t, first.Entries)
	require.NotEmpty(t, first.Cursor)
	_, err = r.act(seats.Start, seats.ActArguments{Unit: "seat-talks"})
	require.NoError(t, err)
	heard := ""
	for !strings.Contains(heard, "line 3") {
		select {
		case c := <-s.got:
			for _, e := range c.Entries {
				heard += string(e)
			}
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(10 * time.Second):
			require.Fail(t, "what is said does not arrive", heard)
		}
	}
	cancel()
	select {
	case err := <-ended:
		require.Equal(t, fault.Canceled, fault.ClassOf(err), "%v", err)
	case <-time.After(time.Second):
		require.Fail(t, "it goes on without its caller")
	}
}

// inOrder are entries with their fields in order.
func inOrder(t *testing.T, entries []json.RawMessage) []string {
	var out []string
	for _, e := range entries {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(e, &fields))
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

// chunks is a caller who takes all.
type chunks struct{ got chan seats.JournalReply }

func (c *chunks) Limit() int   { return 1 << 20 }
func (c *chunks) Ready() error { return nil }

func (c *chunks) Send(payload []byte, _ string) error {
	var r seats.JournalReply
	if err := json.Unmarshal(payload, &r); err != nil {
		return err
	}
	c.got <- r
	return nil
}
