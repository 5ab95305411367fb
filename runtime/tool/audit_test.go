package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/spool"
	"stead/mesh/wire"
	"stead/seats"
)

// controller stores what is sent, unless it is told to fail.
type controller struct {
	mu     sync.Mutex
	err    error
	stored []wire.Event
	tries  int
}

func (c *controller) send(_ context.Context, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	if c.err != nil {
		return c.err
	}
	var b wire.EventBatch
	if err := json.Unmarshal(payload, &b); err != nil {
		return err
	}
	c.stored = append(c.stored, b.Events...)
	return nil
}

func (c *controller) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *controller) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, e := range c.stored {
		ids = append(ids, e.ID)
	}
	return ids
}

// memory is a spool that fails when it is told to.
type memory struct {
	mu     sync.Mutex
	err    error
	events []wire.Event
	given  int
}

func (m *memory) Put(events []wire.Event, _ map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.events = append(m.events, events...)
	}
	return m.err
}

func (m *memory) Next(most, _ int) ([]wire.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given = min(most, len(m.events))
	return m.events[:m.given], nil
}

func (m *memory) Done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = m.events[m.given:]
}

func (m *memory) Sync() error { return nil }

func (m *memory) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func record(i int) Record {
	r := newRecord("ws1", callOf(seats.Stop, `{"unit":"a.service","scope":"system"}`))
	r.ID = fmt.Sprintf("id%d", i)
	return r
}

// started runs an audit until the function it returns is called.
func started(t *testing.T, s keeper, c *controller, connected <-chan struct{}) (*Audit, func()) {
	a, err := NewAudit(AuditOptions{Node: "ws1", Spool: s, Send: c.send, Connected: connected, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestCallsAreToldOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := &memory{}, &controller{}
		a, stop := started(t, m, c, nil)
		var want []string
		for i := range 1200 {
			a.Record(record(i))
			want = append(want, fmt.Sprintf("id%d", i))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, want, c.ids())
		require.Equal(t, 3, c.tries, "in batches")
		stop()
	})
}

func TestCallsOutliveARuntimeThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.db")
	s, err := spool.Open(spool.Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	c := &controller{err: fault.New(fault.Unavailable, "", "", errors.New("out of reach"))}
	a, stop := started(t, s, c, nil)
	a.Record(record(1))
	a.Record(record(2))
	stop()
	require.NoError(t, s.Close())
	s, err = spool.Open(spool.Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	c.set(nil)
	_, stop = started(t, s, c, nil)
	require.Eventually(t, func() bool { return len(c.ids()) == 2 }, 10*time.Second, time.Millisecond)
	stop()
	require.Equal(t, []string{"id1", "id2"}, c.ids())
	require.Equal(t, "a.service", c.stored[0].Unit)
	require.Equal(t, "system", c.stored[0].Scope)
	require.NoError(t, s.Close())
}

func TestSendingIsTriedAgainWithDelayOrInANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected := make(chan struct{}, 1)
		m, c := &memory{}, &controller{err: fault.New(fault.Timeout, "", "", errors.New("silent"))}
		a, stop := started(t, m, c, connected)
		a.Record(record(1))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		c.mu.Lock()
		tries := c.tries
		c.mu.Unlock()
		require.Greater(t, tries, 10)
		require.Less(t, tries, 60)
		c.set(nil)
		connected <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"id1"}, c.ids())
		stop()
	})
}

// Servers are there a moment before controllers are: what waited long must not
// wait as long again.
func TestANewConnectionBeginsTheDelayAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected := make(chan struct{}, 1)
		m, c := &memory{}, &controller{err: fault.New(fault.Unavailable, "", "", errors.New("nobody serves it"))}
		a, stop := started(t, m, c, connected)
		a.Record(record(1))
		time.Sleep(10 * time.Minute)
		connected <- struct{}{}
		synctest.Wait()
		c.set(nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"id1"}, c.ids())
		stop()
	})
}

func TestDiskThatTakesNothingLosesTheOldestAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := &memory{err: errors.New("full")}, &controller{}
		a, stop := started(t, m, c, nil)
		for i := range maxPending + 10 {
			a.Record(record(i))
			if i%1000 == 0 {
				time.Sleep(time.Minute)
			}
		}
		time.Sleep(time.Minute)
		m.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		ids := c.ids()
		require.Len(t, ids, maxPending+1)
		require.Equal(t, "lost", c.stored[0].Kind)
		require.Equal(t, "10 calls were lost: the disk took none", c.stored[0].Text)
		require.Equal(t, "id10", ids[1])
		require.Equal(t, fmt.Sprintf("id%d", maxPending+9), ids[len(ids)-1])
		stop()
	})
}

func TestCallsThatAreRefusedAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := &memory{}, &controller{err: fault.New(fault.Invalid, "", "", errors.New("no id"))}
		a, stop := started(t, m, c, nil)
		a.Record(record(1))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		c.set(nil)
		a.Record(record(2))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "id2", c.ids()[len(c.ids())-1])
		stop()
	})
}

func TestRecordNeverWaits(t *testing.T) {
	a, err := NewAudit(AuditOptions{Node: "ws1", Spool: &memory{}, Send: (&controller{}).send, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for i := range 2 * maxPending {
		a.Record(record(i))
	}
	require.Len(t, a.pending, maxPending)
	require.Equal(t, maxPending, a.lost)
	_, err = NewAudit(AuditOptions{})
	require.Error(t, err)
}
