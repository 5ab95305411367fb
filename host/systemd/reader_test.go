package systemd

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// reader returns a Reader in front of p, which answers its hello, that runs until
// the test ends.
func (p *peer) reader(handle func(*session, *dbus.Message)) *Reader {
	p.set(func(s *session, m *dbus.Message) {
		if member(m) == "Hello" {
			s.reply(m, ":1.7")
			return
		}
		handle(s, m)
	})
	r, err := NewReader(ReaderOptions{Address: p.socket, Logger: discard(), CallTimeout: 300 * time.Millisecond, ConnectWait: 400 * time.Millisecond})
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		require.NoError(p.t, <-done)
	})
	require.Eventually(p.t, r.Connected, 10*time.Second, time.Millisecond)
	return r
}

// enough is what says of a unit that it is there.
func enough(s *session, m *dbus.Message) {
	s.reply(m, map[string]dbus.Variant{"Id": dbus.MakeVariant("a.service")})
}

func TestReaderAsksAgainWhatHasNoAnswer(t *testing.T) {
	for name, fail := range map[string]func(*session, *dbus.Message){
		"the manager left": func(s *session, m *dbus.Message) { s.fail(m, "org.freedesktop.DBus.Error.NoReply", "gone") },
		"it is away":       func(s *session, m *dbus.Message) { s.fail(m, "org.freedesktop.DBus.Error.ServiceUnknown", "away") },
		"too many calls":   func(s *session, m *dbus.Message) { s.fail(m, "org.freedesktop.DBus.Error.LimitsExceeded", "much") },
		"the bus is gone":  func(s *session, _ *dbus.Message) { _ = s.nc.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			r := newPeer(t).reader(func(s *session, m *dbus.Message) {
				if calls.Add(1) < 3 {
					fail(s, m)
					return
				}
				enough(s, m)
			})
			d, err := r.Details(t.Context(), "a.service")
			require.NoError(t, err)
			require.Equal(t, unit.Name("a.service"), d.ID)
			require.Equal(t, int32(3), calls.Load())
		})
	}
}

func TestReaderGivesUpInTime(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(*session, *dbus.Message)
		class fault.Class
	}{
		"the manager is away": {func(s *session, m *dbus.Message) { s.fail(m, "org.freedesktop.DBus.Error.ServiceUnknown", "away") }, fault.Unavailable},
		"the bus hangs up":    {func(s *session, _ *dbus.Message) { _ = s.nc.Close() }, fault.Unavailable},
		"the manager hangs":   {func(*session, *dbus.Message) {}, fault.Timeout},
		"it says no":          {func(s *session, m *dbus.Message) { s.fail(m, "org.freedesktop.DBus.Error.AccessDenied", "no") }, fault.Denied},
		"an endless answer": {func(s *session, _ *dbus.Message) {
			head := append([]byte{'l', 2, 0, 1}, make([]byte, 12)...)
			binary.LittleEndian.PutUint32(head[4:], mostAnswer+1)
			_, _ = s.nc.Write(head)
		}, fault.Unavailable},
		"another unit's answer": {func(s *session, m *dbus.Message) {
			s.reply(m, map[string]dbus.Variant{"Id": dbus.MakeVariant("../../x")})
		}, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPeer(t).reader(c.fail)
			at := time.Now()
			_, err := r.Details(t.Context(), "a.service")
			require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
			require.Less(t, time.Since(at), 5*time.Second)
		})
	}
}

func TestOneNameThatTheManagerRefusesFailsNobodyElse(t *testing.T) {
	r := newPeer(t).reader(func(s *session, m *dbus.Message) {
		names, _ := m.Body[0].([]string)
		for _, n := range names {
			if n == "bad.service" {
				s.fail(m, "org.freedesktop.DBus.Error.InvalidArgs", "bad")
				return
			}
		}
		answerAll(s, m)
	})
	got, err := r.Named(t.Context(), []unit.Name{"a.service", "bad.service", "b.service"})
	require.NoError(t, err)
	require.Equal(t, []unit.LoadState{unit.Loaded, unit.LoadFailed, unit.Loaded}, []unit.LoadState{got[0].Load, got[1].Load, got[2].Load})
	require.Equal(t, unit.Name("b.service"), got[2].Name)
}

func TestNewReaderRefusesWhatItCannotUse(t *testing.T) {
	for name, o := range map[string]ReaderOptions{"no logger": {}, "a negative wait": {Logger: discard(), ConnectWait: -1}} {
		t.Run(name, func(t *testing.T) {
			_, err := NewReader(o)
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
		})
	}
}
