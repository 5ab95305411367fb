package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(path string, bound int) (*Spool, error) { return Open(Options{Path: path, Bound: bound}) }

func newSpool(t *testing.T, bound int) *Spool {
	t.Helper()
	s, err := at(filepath.Join(t.TempDir(), "host", "events.db"), bound)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// again closes s and opens what it left.
func again(t *testing.T, s *Spool) *Spool {
	t.Helper()
	require.NoError(t, s.Close())
	return reopened(t, s)
}

func reopened(t *testing.T, s *Spool) *Spool {
	t.Helper()
	next, err := at(s.path, s.bound)
	require.NoError(t, err)
	t.Cleanup(func() { _ = next.Close() })
	return next
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// events numbers them from first to last, a second apart.
func events(first, last int) []wire.Event {
	var all []wire.Event
	for n := first; n <= last; n++ {
		all = append(all, wire.Event{ID: fmt.Sprint(n), At: noon.Add(time.Duration(n) * time.Second), Source: "host", Node: "ws1", Kind: "started"})
	}
	return all
}

func add(t *testing.T, s *Spool, all []wire.Event) {
	t.Helper()
	require.NoError(t, s.Put(all, nil))
}

func next(t *testing.T, s *Spool, most int) []string {
	t.Helper()
	got, err := s.Next(most, 1<<20)
	require.NoError(t, err)
	var ids []string
	for _, e := range got {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestEventsComeInOrderUntilTheyAreDone(t *testing.T) {
	s := newSpool(t, 0)
	require.Empty(t, next(t, s, 10))
	add(t, s, events(1, 5))
	require.Equal(t, []string{"1", "2"}, next(t, s, 2))
	require.Equal(t, []string{"1", "2", "3"}, next(t, s, 3), "nothing was acknowledged")
	s.Done()
	require.Equal(t, []string{"4", "5"}, next(t, s, 10))
	require.Equal(t, 2, s.Len())
	s.Done()
	s.Done()
	require.Equal(t, 0, s.Len())
	require.Empty(t, next(t, s, 10))
}

func TestABatchIsBoundedInBytesButNotEmpty(t *testing.T) {
	s := newSpool(t, 0)
	add(t, s, events(1, 3))
	got, err := s.Next(10, 1)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func TestEverythingOutlivesARestart(t *testing.T) {
	s := newSpool(t, 0)
	require.NoError(t, s.Put(events(1, 4), map[string][]byte{"web": []byte("a"), "db": []byte("b")}))
	require.NoError(t, s.Put(nil, map[string][]byte{"db": nil}))
	next(t, s, 1)
	s.Done()
	s = again(t, s)
	require.Equal(t, 3, s.Len())
	require.Equal(t, []string{"2", "3", "4"}, next(t, s, 10))
	s.Done()
	told, err := s.Told()
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"web": []byte("a")}, told)
	s = again(t, s)
	add(t, s, events(5, 5))
	require.Equal(t, []string{"5"}, next(t, s, 10))
}

// A host that is killed has closed nothing.
func TestWhatWasPutOutlivesAKill(t *testing.T) {
	s := newSpool(t, 0)
	add(t, s, events(1, 3))
	next(t, s, 2)
	s.Done()
	data, err := os.ReadFile(s.path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(s.path, data, 0o600))
	s = reopened(t, s)
	require.Equal(t, []string{"1", "2", "3"}, next(t, s, 10), "what was acknowledged is sent once more, under its ids")
}

func TestSyncTakesOutWhatWasAcknowledged(t *testing.T) {
	s := newSpool(t, 0)
	add(t, s, events(1, 3))
	next(t, s, 2)
	s.Done()
	require.NoError(t, s.Sync())
	data, err := os.ReadFile(s.path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(s.path, data, 0o600))
	require.Equal(t, []string{"3"}, next(t, reopened(t, s), 10))
}

func TestTheOldestAreLostAndThatIsTold(t *testing.T) {
	s := newSpool(t, 5)
	add(t, s, events(1, 5))
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, next(t, s, 10), "the bound itself is not beyond it")
	s = again(t, s)
	add(t, s, events(6, 8))
	got, err := s.Next(10, 1<<20)
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.Equal(t, Lost, got[0].Kind)
	require.Equal(t, "ws1", got[0].Node)
	require.Equal(t, noon.Add(4*time.Second), got[0].At)
	require.Equal(t, "4 events from 2026-03-01 12:00:01 to 2026-03-01 12:00:04 were lost: no controller took them, and a node keeps 5", got[0].Text)
	require.Equal(t, "5", got[1].ID)
	require.Equal(t, "8", got[4].ID)
}

func TestWhatIsLostBitByBitIsToldOnce(t *testing.T) {
	s := newSpool(t, 3)
	for n := 1; n <= 50; n++ {
		add(t, s, events(n, n))
		if n == 20 {
			s = again(t, s)
		}
	}
	got, err := s.Next(10, 1<<20)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Contains(t, got[0].Text, "48 events from 2026-03-01 12:00:01 to 2026-03-01 12:00:48")
	require.Equal(t, "49", got[1].ID)
}

// What is on its way may arrive, so it is not counted as lost.
func TestWhatIsBeingSentIsNotDropped(t *testing.T) {
	s := newSpool(t, 3)
	add(t, s, events(1, 3))
	require.Equal(t, []string{"1", "2"}, next(t, s, 2))
	add(t, s, events(4, 6))
	require.Equal(t, []string{"1", "2"}, next(t, s, 2))
	s.Done()
	got, err := s.Next(10, 1<<20)
	require.NoError(t, err)
	require.Len(t, got, 1, "the bound holds for all together")
	require.Contains(t, got[0].Text, "4 events from 2026-03-01 12:00:03 to 2026-03-01 12:00:06")
	s.Done()
	add(t, s, events(7, 7))
	require.Equal(t, []string{"7"}, next(t, s, 10))
}

func TestASecondProcessIsTurnedAway(t *testing.T) {
	s := newSpool(t, 0)
	_, err := at(s.path, 0)
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
}

func TestADamagedFileIsMovedAsideAndThatIsTold(t *testing.T) {
	for what, spoil := range map[string]func(data []byte) []byte{
		"no file of the kind": func([]byte) []byte { return []byte("what is this?") },
		"cut short":           func(data []byte) []byte { return data[:len(data)/2] },
		"bytes that changed": func(data []byte) []byte {
			for i := range data {
				if string(data[i:min(i+4, len(data))]) == "ws1\"" {
					data[i] = 'W'
				}
			}
			return data
		},
		"a later version": func(data []byte) []byte {
			for i := range data {
				if string(data[i:min(i+7, len(data))]) == "schema1" {
					data[i+6] = '7'
				}
			}
			return data
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSpool(t, 0)
			add(t, s, events(1, 100))
			require.NoError(t, s.Close())
			data, err := os.ReadFile(s.path)
			require.NoError(t, err)
			data = spoil(data)
			require.NoError(t, os.WriteFile(s.path, data, 0o600))
			s = reopened(t, s)
			got, err := s.Next(10, 1<<20)
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.Equal(t, Lost, got[0].Kind)
			require.Contains(t, got[0].Text, "damaged")
			kept, err := os.ReadFile(s.path + ".damaged")
			require.NoError(t, err)
			require.Equal(t, data, kept)
		})
	}
}

func TestWhatCannotBeOpenedIsNamed(t *testing.T) {
	dir := t.TempDir()
	_, err := at(dir, 0)
	require.True(t, fault.Is(err, fault.Failed), "%v", err)
	require.ErrorContains(t, err, dir)
	require.True(t, errors.Is(err, syscall.EISDIR), "%v", err)
}

func TestASpoolWithoutAPlaceServesAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Passing(nil)
	require.NoError(t, err)
	add(t, s, events(1, 3))
	require.Equal(t, []string{"1", "2", "3"}, next(t, s, 10))
	s.Done()
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, s.Close())
}
