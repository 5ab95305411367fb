package escalate

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestBookOutlivesItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "calls")
	b, err := openBook(path)
	require.NoError(t, err)
	for _, id := range []string{"one", "two", "three"} {
		known, err := b.begin(&entry{ID: id, Act: Restart, Unit: "a.service", For: "x", Began: time.Unix(9, 0).UTC()})
		require.NoError(t, err)
		require.Nil(t, known)
	}
	_, err = b.change("two", func(e *entry) { e.Job = 7 })
	require.NoError(t, err)
	_, err = b.change("three", func(e *entry) { e.End = &end{Outcome: Outcome{Job: 8, Result: unit.JobDone}} })
	require.NoError(t, err)
	require.NoError(t, b.told([]string{"two"}), "it has not ended: nobody can know its end")
	// It was killed while it wrote.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"id":"four","act":"sto`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	again, err := openBook(path)
	require.NoError(t, err)
	require.Equal(t, b.all(func(*entry) bool { return true }), again.all(func(*entry) bool { return true }))
	known, err := again.begin(&entry{ID: "three"})
	require.NoError(t, err)
	require.Equal(t, unit.JobDone, known.End.Result, "it is not done again")
	require.NoError(t, again.told([]string{"three"}))
	e, err := again.change("three", func(e *entry) { e.End = nil })
	require.NoError(t, err)
	require.Nil(t, e)
	require.Equal(t, 2, again.underWay(unit.System))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestBookThatTakesNothingLetsNothingBegin(t *testing.T) {
	b, err := openBook(filepath.Join(t.TempDir(), "calls"))
	require.NoError(t, err)
	require.NoError(t, b.file.Close())
	_, err = b.begin(&entry{ID: "one"})
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	require.Zero(t, b.underWay(unit.System))
	_, err = openBook("/proc/none/calls")
	require.Error(t, err)
}

func TestBookIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	b, err := openBook(path)
	require.NoError(t, err)
	_, err = b.begin(&entry{ID: "open"})
	require.NoError(t, err)
	for i := range maxUntold + maxPast + 500 {
		id := fmt.Sprintf("ended%d", i)
		_, err := b.begin(&entry{ID: id})
		require.NoError(t, err)
		_, err = b.change(id, func(e *entry) { e.End = &end{} })
		require.NoError(t, err)
	}
	_, err = b.begin(&entry{ID: "last"})
	require.NoError(t, err)
	require.Len(t, b.all(func(*entry) bool { return true }), maxUntold+2)
	require.Nil(t, b.known("ended0"))
	require.NotNil(t, b.known("open"), "it is under way")
	require.LessOrEqual(t, b.lines, len(b.order)+maxPast+slack+1)
	again, err := openBook(path)
	require.NoError(t, err)
	require.Equal(t, b.all(func(*entry) bool { return true }), again.all(func(*entry) bool { return true }))
	require.Equal(t, b.past.order, again.past.order)
	require.Len(t, again.past.order, maxPast)
}

// TestBookKnowsWhatWasTold and says what it does not know any more.
func TestBookKnowsWhatWasTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	made := time.Now()
	b, err := openBook(path)
	require.NoError(t, err)
	require.True(t, b.forgotten(made.Add(-time.Second)), "before there was a book")
	require.False(t, b.forgotten(time.Now()))
	call := func(b *book, i int, began time.Time) {
		t.Helper()
		id := fmt.Sprintf("call%d", i)
		_, err := b.begin(&entry{ID: id, Call: "c", Said: "inactive dead", Act: Start, Unit: unit.Name(fmt.Sprintf("u%d.service", i)), Began: began})
		require.NoError(t, err)
		_, err = b.change(id, func(e *entry) { e.End = &end{Outcome: Outcome{Job: uint32(i), Result: unit.JobDone}} })
		require.NoError(t, err)
		require.NoError(t, b.told([]string{id}))
	}
	began := time.Now().Add(time.Hour)
	call(b, 1, began)
	for range 2 {
		require.Empty(t, b.all(func(*entry) bool { return true }), "nobody is to be told of it")
		known, err := b.begin(&entry{ID: "call1"})
		require.NoError(t, err)
		require.NotNil(t, known, "it would be done again")
		require.Equal(t, Outcome{Job: 1, Result: unit.JobDone}, known.End.Outcome)
		require.Equal(t, []Begun{{Act: Start, Unit: "u1.service", Before: "inactive dead"}}, b.about("c"))
		require.Empty(t, b.about("d"))
		require.NoError(t, b.close())
		b, err = openBook(path)
		require.NoError(t, err)
	}
	require.False(t, b.forgotten(began))
	for i := range maxPast {
		call(b, 2+i, began.Add(time.Minute))
	}
	for range 2 {
		require.Nil(t, b.known("call1"))
		require.True(t, b.forgotten(began))
		require.False(t, b.forgotten(began.Add(onItsWay)))
		require.NoError(t, b.close())
		b, err = openBook(path)
		require.NoError(t, err)
	}
}
