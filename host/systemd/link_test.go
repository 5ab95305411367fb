package systemd

import (
	"context"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/host/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startOf(n unit.Name) []unit.JobRequest {
	return []unit.JobRequest{{Name: n, Type: unit.StartJob}}
}

func TestFirstCallsThatAreSwallowedDoNoHarm(t *testing.T) {
	p := newPeer(t)
	p.swallow(4)
	m := p.manager()
	connected(t, m)
	require.Equal(t, 1, p.dialed())
	q := m.Enqueue(context.Background(), startOf("a.service"))
	require.NoError(t, q[0].Err)
	require.Equal(t, uint32(7), q[0].ID)
}

func TestPeerThatNeverAnswersIsLeftAndTriedAgain(t *testing.T) {
	p := newPeer(t)
	p.set(nil)
	m := p.manager()
	require.Eventually(t, func() bool { return p.dialed() >= 2 }, 15*time.Second, 10*time.Millisecond)
	require.False(t, m.Connected())
	p.set(answerAll)
	connected(t, m)
}

func TestHungManagerIsTimeoutAndDropsTheConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(*Manager) error
	}{
		{"observe", func(m *Manager) error {
			_, err := m.Observe(context.Background(), []unit.Name{"a.service"})
			return err
		}},
		{"enqueue", func(m *Manager) error { return m.Enqueue(context.Background(), startOf("a.service"))[0].Err }},
		{"version", func(m *Manager) error {
			_, err := m.Version(context.Background())
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPeer(t)
			p.set(only(nil))
			m := p.manager()
			connected(t, m)
			m.Drain()
			require.Equal(t, fault.Timeout, fault.ClassOf(c.call(m)))
			require.Eventually(t, func() bool { return p.dialed() == 2 && m.Connected() }, 5*time.Second, time.Millisecond)
			require.True(t, m.Drain().All)
		})
	}
}

func TestSlowManagerThatStillAnswersIsNotHung(t *testing.T) {
	p := newPeer(t)
	p.set(only(func(s *session, m *dbus.Message) {
		time.Sleep(100 * time.Millisecond) // of 300 ms without any answer
		answerAll(s, m)
	}))
	m := p.manager()
	connected(t, m)
	var requests []unit.JobRequest
	for range 6 {
		requests = append(requests, unit.JobRequest{Name: "a.service", Type: unit.StartJob})
	}
	for _, q := range m.Enqueue(context.Background(), requests) {
		require.NoError(t, q.Err)
	}
	require.Equal(t, 1, p.dialed())
}

func TestReloadOfOursMayTakeLongerThanACall(t *testing.T) {
	p := newPeer(t)
	p.set(only(func(s *session, m *dbus.Message) {
		time.Sleep(600 * time.Millisecond)
		answerAll(s, m)
	}))
	m := p.manager()
	connected(t, m)
	took, err := m.Reload(context.Background())
	require.NoError(t, err)
	require.Greater(t, took, 500*time.Millisecond)
	require.Equal(t, 1, p.dialed())
}

func TestReloadWithoutAnAnswerIsTimeout(t *testing.T) {
	p := newPeer(t)
	p.set(only(nil))
	m := p.manager()
	connected(t, m)
	_, err := m.Reload(context.Background())
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
}

func TestLossInFlight(t *testing.T) {
	cut := only(func(s *session, _ *dbus.Message) { _ = s.nc.Close() })
	t.Run("a look is unavailable", func(t *testing.T) {
		p := newPeer(t)
		p.set(cut)
		m := p.manager()
		connected(t, m)
		_, err := m.Observe(context.Background(), []unit.Name{"a.service"})
		require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	})
	t.Run("a job may have been queued", func(t *testing.T) {
		p := newPeer(t)
		p.set(cut)
		m := p.manager()
		connected(t, m)
		q := m.Enqueue(context.Background(), startOf("a.service"))
		require.Equal(t, fault.Timeout, fault.ClassOf(q[0].Err))
		require.Zero(t, q[0].ID)
	})
	t.Run("a reload may have been done", func(t *testing.T) {
		p := newPeer(t)
		p.set(cut)
		m := p.manager()
		connected(t, m)
		_, err := m.Reload(context.Background())
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
	})
}

func TestWithoutAConnectionCallsWaitBounded(t *testing.T) {
	m, err := New(Options{Address: t.TempDir() + "/none", Logger: discard(), ConnectWait: 100 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	at := time.Now()
	_, err = m.Observe(ctx, []unit.Name{"a.service"})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "no such file or directory")
	q := m.Enqueue(ctx, startOf("a.service"))
	require.Equal(t, fault.Unavailable, fault.ClassOf(q[0].Err))
	require.Less(t, time.Since(at), 2*time.Second)
	cancel()
	require.NoError(t, <-done)
}

func TestManagerComesBackAfterItsSocketWasGone(t *testing.T) {
	p := newPeer(t)
	m := p.manager()
	connected(t, m)
	m.Drain()
	p.shut()
	require.Eventually(t, func() bool { return !m.Connected() }, 5*time.Second, time.Millisecond)
	require.True(t, m.Drain().All)
	p.listen()
	connected(t, m)
	<-m.Wake()
	require.True(t, m.Drain().All)
}

func TestCanceledCallReturnsAtOnceAndKeepsTheConnection(t *testing.T) {
	p := newPeer(t)
	p.set(only(nil))
	m := p.manager()
	connected(t, m)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	at := time.Now()
	_, err := m.Observe(ctx, []unit.Name{"a.service"})
	require.Equal(t, fault.Canceled, fault.ClassOf(err))
	require.Less(t, time.Since(at), 250*time.Millisecond)
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	require.Equal(t, fault.Timeout, fault.ClassOf(m.Enqueue(short, startOf("a.service"))[0].Err))
	require.Equal(t, 1, p.dialed())
}

func TestPeerThatDoesNotReadBlocksNobodyForEver(t *testing.T) {
	p := newPeer(t)
	stuck := make(chan struct{})
	p.set(only(func(*session, *dbus.Message) { <-stuck }))
	m := p.manager()
	connected(t, m)
	names := make([]unit.JobRequest, 5000)
	for i := range names {
		names[i] = unit.JobRequest{Name: "a-unit-with-a-rather-long-name.service", Type: unit.StartJob}
	}
	for _, q := range m.Enqueue(context.Background(), names) {
		require.Error(t, q.Err)
	}
	close(stuck)
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	for name, o := range map[string]Options{
		"no logger":               {},
		"no address for a user":   {Scope: unit.User, Logger: discard()},
		"a negative call timeout": {Logger: discard(), CallTimeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(o)
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
		})
	}
}
