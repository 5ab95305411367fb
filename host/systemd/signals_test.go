package systemd

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// sync returns once the peer's signals so far were taken in.
func (p *peer) sync(m *Manager) {
	p.t.Helper()
	l, err := m.using(context.Background(), "sync")
	require.NoError(p.t, err)
	require.NoError(p.t, l.one(context.Background(), pingCall()).err)
}

// quietPeer is a peer with a manager that has been drained.
func quietPeer(t *testing.T) (*peer, *Manager) {
	p := newPeer(t)
	m := p.manager()
	connected(t, m)
	p.sync(m)
	m.Drain()
	return p, m
}

func state(active string, stamp uint64) map[string]dbus.Variant {
	return map[string]dbus.Variant{
		"ActiveState": dbus.MakeVariant(active), "StateChangeTimestampMonotonic": dbus.MakeVariant(stamp),
	}
}

func TestJobEndsBeforeTheReplyAreKept(t *testing.T) {
	p, m := quietPeer(t)
	p.set(only(func(s *session, c *dbus.Message) {
		s.jobRemoved(7, "a.service", "done")
		s.jobRemoved(8, "b.service", "failed")
		answerAll(s, c)
	}))
	q := m.Enqueue(context.Background(), startOf("a.service"))
	require.Equal(t, uint32(7), q[0].ID)
	require.Equal(t, unit.Changes{
		Units: []unit.Name{"a.service", "b.service"},
		Jobs:  []unit.JobEnd{{ID: 7, Unit: "a.service", Result: unit.JobDone}, {ID: 8, Unit: "b.service", Result: unit.JobFailed}},
	}, m.Drain())
}

func TestChangesAreCoalescedInOrder(t *testing.T) {
	p, m := quietPeer(t)
	for i := range 3 {
		for _, n := range []unit.Name{"b.service", "a.service"} {
			p.session().changed(n, unitIfc, state("active", uint64(i+1)))
		}
	}
	p.sync(m)
	require.Len(t, m.Wake(), 1)
	require.Equal(t, []unit.Name{"b.service", "a.service"}, m.Drain().Units)
	require.Empty(t, m.Wake())
	require.Zero(t, m.Drain())
}

func TestSignalThatSaysNothingNewWakesNobody(t *testing.T) {
	p, m := quietPeer(t)
	p.session().changed("a.service", unitIfc, state("active", 1))
	p.sync(m)
	require.Equal(t, []unit.Name{"a.service"}, m.Drain().Units)
	p.session().changed("a.service", unitIfc, state("active", 1))
	p.session().changed("a.service", typeIfcs["service"], map[string]dbus.Variant{"StatusText": dbus.MakeVariant("busy")})
	p.session().signal(busPath, managerIfc, "UnitNew", "b.service", pathOfUnit("b.service"))
	p.session().signal(busPath, managerIfc, "UnitRemoved", "b.service", pathOfUnit("b.service"))
	p.sync(m)
	require.Empty(t, m.Wake())
	require.Zero(t, m.Drain())
	p.session().changed("a.service", unitIfc, state("active", 2))
	p.sync(m)
	require.Equal(t, []unit.Name{"a.service"}, m.Drain().Units)
}

func TestReloadListsNothingAndThenAll(t *testing.T) {
	p, m := quietPeer(t)
	s, before := p.session(), time.Now()
	p.sync(m)
	silent := time.Now() // what is written from here on the manager may have read or not, for all that is known
	s.signal(busPath, managerIfc, "Reloading", true)
	s.changed("a.service", unitIfc, state("active", 1))
	p.sync(m)
	require.Empty(t, m.Wake())
	require.Zero(t, m.Drain())
	s.jobRemoved(3, "a.service", "done")
	p.sync(m)
	require.Equal(t, unit.Changes{Jobs: []unit.JobEnd{{ID: 3, Unit: "a.service", Result: unit.JobDone}}}, m.Drain())
	s.signal(busPath, managerIfc, "Reloading", false)
	p.sync(m)
	got := m.Drain()
	require.True(t, got.Reloaded.After(before) && got.Reloaded.Before(silent), "no sooner than the last call that was answered before it")
	got.Reloaded = time.Time{}
	require.Equal(t, unit.Changes{All: true}, got)
	s.signal(busPath, managerIfc, "Reloading", false)
	p.sync(m)
	require.Zero(t, m.Drain().Reloaded, "of one that began before anybody listened nothing is known")
}

func TestConnectionLostDuringAReloadListsChangesAgain(t *testing.T) {
	p, m := quietPeer(t)
	p.session().signal(busPath, managerIfc, "Reloading", true)
	p.sync(m)
	_ = p.session().nc.Close()
	require.Eventually(t, func() bool { return p.dialed() == 2 && m.Connected() }, 5*time.Second, time.Millisecond)
	p.sync(m)
	m.Drain()
	p.session().changed("a.service", unitIfc, state("active", 1))
	p.sync(m)
	require.Equal(t, unit.Changes{Units: []unit.Name{"a.service"}}, m.Drain())
}

func TestTooManyChangesAreAll(t *testing.T) {
	c := newChanges()
	for i := range mostUnits {
		c.changed(unit.Name(fmt.Sprint("u", i, ".service")))
	}
	c.ended(unit.JobEnd{ID: 1, Unit: "u1.service", Result: unit.JobDone})
	got := c.drain()
	require.False(t, got.All)
	require.Len(t, got.Units, mostUnits)
	for i := range mostUnits + 1 {
		c.changed(unit.Name(fmt.Sprint("u", i, ".service")))
	}
	c.ended(unit.JobEnd{ID: 2, Unit: "u1.service", Result: unit.JobDone})
	require.Equal(t, unit.Changes{All: true, Jobs: []unit.JobEnd{{ID: 2, Unit: "u1.service", Result: unit.JobDone}}}, c.drain())
}

func TestSignalsOfAnotherShapeAreLeftAlone(t *testing.T) {
	p, m := quietPeer(t)
	s := p.session()
	s.signal(busPath, managerIfc, "JobRemoved", "x")
	s.signal(busPath, managerIfc, "Reloading", "x")
	s.signal(busPath, managerIfc, "UnitRemoved", uint32(1))
	s.signal(pathOfUnit("a.service"), "org.freedesktop.DBus.Properties", "PropertiesChanged", uint32(1), uint32(2))
	s.signal("/elsewhere", "org.freedesktop.DBus.Properties", "PropertiesChanged", unitIfc, state("active", 1), []string{})
	p.sync(m)
	require.Zero(t, m.Drain())
}

// TestMarkIsAnotherOnceTheManagerSaidSomethingNew of that unit: a call that was
// answered behind it is enough to know.
func TestMarkIsAnotherOnceTheManagerSaidSomethingNew(t *testing.T) {
	p, m := quietPeer(t)
	const a = unit.Name("a.service")
	differs := func(want bool, what string, say func(s *session)) {
		t.Helper()
		before := m.Mark(a)
		require.NotZero(t, before)
		say(p.session())
		p.sync(m)
		require.Equal(t, want, m.Mark(a) != before, what)
	}
	pid := func(n uint32) map[string]dbus.Variant { return map[string]dbus.Variant{"MainPID": dbus.MakeVariant(n)} }
	differs(true, "the first word", func(s *session) { s.changed(a, typeIfcs["service"], pid(7)) })
	differs(false, "the same again", func(s *session) { s.changed(a, typeIfcs["service"], pid(7)) })
	differs(true, "another process", func(s *session) { s.changed(a, typeIfcs["service"], pid(8)) })
	differs(true, "another state", func(s *session) { s.changed(a, unitIfc, state("active", 1)) })
	differs(false, "another unit", func(s *session) {
		s.changed("b.service", unitIfc, state("active", 1))
		s.signal(busPath, managerIfc, "UnitRemoved", "b.service", pathOfUnit("b.service"))
	})
	differs(true, "it was unloaded", func(s *session) { s.signal(busPath, managerIfc, "UnitRemoved", a, pathOfUnit(a)) })
	differs(true, "it came and went", func(s *session) {
		s.changed(a, unitIfc, state("active", 2))
		s.signal(busPath, managerIfc, "UnitRemoved", a, pathOfUnit(a))
	})
	before := m.Mark(a)
	require.NoError(t, p.session().nc.Close())
	require.Eventually(t, func() bool { return m.Mark(a) != before }, 10*time.Second, time.Millisecond)
	connected(t, m)
	require.NotEqual(t, before, m.Mark(a), "it is of another connection")
}
