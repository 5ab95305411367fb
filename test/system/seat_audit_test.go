package system

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
	"stead/test/lab"
)

// until waits for what must come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, is), "not within %s: %s", patience, what)
}

// events are the calls of one person that the mesh was told of, asked on the
// controller's node.
func events(t *testing.T, who string) []wire.Event {
	t.Helper()
	var all []wire.Event
	require.NoError(t, json.Unmarshal([]byte(here(t)("stead", "events", "--since", "1h", "-o", "json")), &all))
	return callsOf(all, who)
}

func callsOf(all []wire.Event, who string) []wire.Event {
	return slices.DeleteFunc(all, func(e wire.Event) bool {
		return e.Source != "runtime" || e.Call == nil || !strings.HasSuffix(e.Who, " "+who)
	})
}

// made is one call, as its caller knows it.
type made struct {
	verb      subject.Verb
	node      subject.Node
	arguments string
	streamed  bool
	began     time.Time
	took      time.Duration
	class     fault.Class
}

func (m made) String() string {
	return fmt.Sprintf("%s on %s %.60s: %s", m.verb, m.node, m.arguments, m.result())
}

func (m made) result() string {
	if m.class == "" {
		return wire.CallDone
	}
	return string(m.class)
}

// recorder makes calls and keeps what they were.
type recorder struct {
	person
	all []made
}

// call calls a verb, which must end so; "" is done.
func (c *recorder) call(verb subject.Verb, class fault.Class, arguments string) {
	c.Helper()
	m := made{verb: verb, node: "ws1", arguments: arguments, began: time.Now()}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	_, err := c.conn.Call(ctx, verbOf("ws1", verb), []byte(arguments))
	m.took, m.class = time.Since(m.began), fault.ClassOf(err)
	require.Equal(c, class, m.class, "%s: %v", m, err)
	c.all = append(c.all, m)
}

// follow follows a verb until the first chunk.
func (c *recorder) follow(verb subject.Verb, class fault.Class, arguments string) {
	c.Helper()
	m := made{verb: verb, node: "ws1", arguments: arguments, streamed: true, began: time.Now()}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	err := c.conn.Follow(ctx, verbOf("ws1", verb), mesh.FollowOptions{
		Request: func(string) []byte { return []byte(arguments) },
		Take:    func(mesh.Chunk) error { cancel(); return nil },
	})
	m.took, m.class = time.Since(m.began)+time.Second, fault.ClassOf(err)
	require.Equal(c, class, m.class, "%s: %v", m, err)
	c.all = append(c.all, m)
}

// recorded makes a call of every verb that is done, and of every verb ones that are
// not, and holds what the audit has against it.
func recorded(t *testing.T, alice person) {
	c := &recorder{person: alice}
	before := len(events(t, "alice"))
	c.call(seats.Units, "", `{"patterns":["a.*"]}`)
	c.call(seats.Units, fault.Invalid, `{"patern":["a.*"]}`)
	c.call(seats.Status, "", `{"unit":"a"}`)
	c.call(seats.Status, fault.NotFound, `{"unit":"audit-none"}`)
	c.call(seats.Status, fault.Invalid, `{"unit":7}`)
	c.call(seats.Status, fault.Invalid, `no JSON`)
	c.call(seats.Status, fault.Invalid, `{"unit":"`+strings.Repeat("x", 70<<10)+`"}`)
	c.call(seats.Stop, "", `{"unit":"a.service"}`)
	c.call(seats.Stop, fault.Refused, `{"unit":"dbus.service"}`)
	c.call(seats.Start, "", `{"unit":"a.service","timeout":"30s"}`)
	c.call(seats.Start, fault.Refused, `{"unit":"poweroff.target"}`)
	c.call(seats.Restart, "", `{"unit":"a.service"}`)
	c.call(seats.Restart, fault.Refused, `{"unit":"systemd-journald.service"}`)
	c.call(seats.Restart, fault.Refused, `{"unit":"a.service","scope":"user"}`)
	c.call(seats.Enable, "", `{"unit":"a.service"}`)
	c.call(seats.Enable, fault.NotFound, `{"unit":"audit-none.service"}`)
	c.call(seats.Disable, "", `{"unit":"a.service"}`)
	c.call(seats.Disable, fault.Refused, `{"unit":"dbus.service"}`)
	c.call(seats.Journal, "", `{"unit":"a.service","lines":1}`)
	c.call(seats.Journal, fault.Invalid, `{"since":"nonsense"}`)
	c.follow(seats.Journal, fault.Canceled, `{"unit":"a.service","follow":true}`)
	c.follow(seats.Status, fault.Unsupported, `{"unit":"a.service"}`)
	c.follow(seats.Journal, fault.NotFound, `{"unit":"audit-none","follow":true}`)

	var told []wire.Event
	until(t, "the last call is on record", func() bool {
		told = events(t, "alice")[before:]
		return slices.ContainsFunc(told, c.all[len(c.all)-1].is)
	})
	require.Len(t, told, len(c.all))
	who, err := identity.ReadCredentials("/root/alice.json")
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, m := range c.all {
		i := slices.IndexFunc(told, func(e wire.Event) bool { return m.is(e) })
		require.GreaterOrEqual(t, i, 0, "not on record: %s; what is: %+v", m, told)
		e := told[i]
		require.False(t, ids[e.ID], "%s is on record twice", m)
		ids[e.ID] = true
		require.Equal(t, "operator alice "+who.PublicKey()+" OPS", fmt.Sprint(e.Who, " ", e.Call.User, " ", e.Call.Account), "who the server says it is: %s", m)
		require.Greater(t, e.Call.Took, 0.0, m)
		require.LessOrEqual(t, e.Call.Took, m.took.Seconds(), m)
		require.WithinRange(t, e.At, m.began, m.began.Add(m.took), m)
	}
	t.Logf("%d calls of eight verbs, done and refused: each on record once", len(c.all))
}

// is is whether an event is of this call.
func (m made) is(e wire.Event) bool {
	sum := sha256.Sum256([]byte(m.arguments))
	return e.Node == string(m.node) && e.Kind == string(m.verb) && e.Call.Verb == e.Kind && e.Call.Seat == string(seats.NodeServiceManager) &&
		e.Call.Result == m.result() && e.Call.Streamed == m.streamed && e.Call.Digest == hex.EncodeToString(sum[:]) &&
		strings.HasPrefix(m.arguments, strings.TrimSuffix(e.Call.Arguments, "…"))
}

// recordedLate has calls end while no controller runs, one of them as the last
// thing that a runtime does. They are on record later, each once.
func (r *rig) recordedLate() {
	r.Helper()
	ws1, ws2 := r.nodes["ws1"], r.nodes["ws2"]
	const slow = "slow.service"
	callers, gone := context.WithCancel(r.Context())
	defer gone()
	var asking sync.WaitGroup
	for _, m := range []*machine{ws1, ws2} {
		require.NoError(r, m.WriteFile(etc+"/"+slow, []byte("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'until test -e /run/go; do sleep 0.1; done'\n"), 0o644))
		m.Run(r.T, "systemctl", "daemon-reload")
		asking.Go(func() { _, _ = r.ctl.Exec(callers, "stead", "start", slow, "-n", m.Hostname()) }) // its end is no answer
	}
	for _, m := range []*machine{ws1, ws2} {
		m.until("its job runs", func() bool { return m.prop(slow, "ActiveState") == "activating" })
	}
	gone()
	asking.Wait()
	r.ctl.Run(r.T, "systemctl", "stop", controllerService)
	for _, m := range []*machine{ws1, ws2} {
		m.Run(r.T, "touch", "/run/go")
		m.until("its job ends", func() bool { return m.prop(slow, "ActiveState") == "active" })
	}
	const calls = "/var/lib/private/stead-runtime/calls.db"
	before := ws1.read(calls)
	ws1.within(5*time.Second, func() bool { return ws1.read(calls) != before })
	ws1.Run(r.T, "systemctl", "kill", "-s", "KILL", runtimeService)
	ws1.until("another runtime runs", func() bool { return ws1.prop(runtimeService, "ActiveState") == "active" })
	r.ctl.Run(r.T, "systemctl", "start", controllerService)
	var told []wire.Event
	r.ctl.until("both are on record", func() bool {
		told = r.starts(slow)
		return len(told) >= 2
	})
	for _, e := range told {
		require.Equal(r, "operator alice done", e.Who+" "+e.Call.Result, "%+v", e)
	}
	// Whatever came before it would have come by now.
	r.ctl.until("both nodes serve again", func() bool { return r.stead("status", slow, "--all").Code == 0 })
	r.ctl.until("the next calls are on record", func() bool {
		return len(slices.DeleteFunc(r.events(), func(e wire.Event) bool { return e.Kind != "status" || e.Unit != slow })) >= 2
	})
	told = r.starts(slow)
	require.Len(r, told, 2, "one of them is told twice")
	require.ElementsMatch(r, []string{"ws1", "ws2"}, []string{told[0].Node, told[1].Node})
}

// starts are the calls on record that started a unit.
func (r *rig) starts(unit string) []wire.Event {
	r.Helper()
	return slices.DeleteFunc(callsOf(r.events(), "alice"), func(e wire.Event) bool { return e.Kind != "start" || e.Unit != unit })
}
