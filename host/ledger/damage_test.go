package ledger

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

// sample is the bytes of a ledger of some pages, and its state.
func sample(t *testing.T) ([]byte, State) {
	t.Helper()
	path := newPath(t)
	l := openAt(t, path)
	r := thousand("some bytes of what stood there ")
	r.Put = r.Put[:60]
	require.NoError(t, l.Commit(Tx{Put: []accept.Identity{{Name: "web", Body: []byte("{}")}}, Held: &accept.Held{Index: []byte("{}"), Signature: []byte("s")}, Record: r}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Delete: []unit.Name{"unit-7.service"}}))
	s, err := l.Load()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data, s
}

// read opens the bytes as a ledger and reads all that is in it.
func read(t *testing.T, data []byte) (State, error) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	l, err := Open(Options{Path: path})
	if err == nil {
		var s State
		if s, err = l.Load(); err == nil {
			for _, m := range s.Units {
				for digest := range needs(m.Found) {
					if _, e := l.Blob(digest); e != nil {
						err = e
					}
				}
			}
			require.NoError(t, l.Close())
			return s, err
		}
		_ = l.Close()
	}
	after, rerr := os.ReadFile(path)
	require.NoError(t, rerr)
	require.True(t, bytes.Equal(data, after), "a damaged file is left as it is")
	return State{}, err
}

func TestDamagedFileIsNamedAndLeftAlone(t *testing.T) {
	whole, _ := sample(t)
	for name, data := range map[string][]byte{
		"no ledger at all": []byte(strings.Repeat("[Unit]\n", 3000)),
		"nothing":          {},
		"one line":         []byte("hello\n"),
		"zeros":            make([]byte, len(whole)),
		"cut short":        whole[:4*os.Getpagesize()],
		"only its head":    whole[:2*os.Getpagesize()],
		"a bare page":      whole[:os.Getpagesize()],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, data)
			require.Equal(t, fault.Failed, fault.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "ledger.db: ")
			require.ErrorContains(t, err, "damaged")
			var e *fault.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, e.Hint, "mv ")
		})
	}
}

func TestForeignDatabaseIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("songs")); return err }))
	require.NoError(t, db.Close())
	_, err = Open(Options{Path: path})
	require.ErrorContains(t, err, `it has no "meta"`)
}

// Bytes are changed here and there: what is read is what was written, or an
// error, and never a panic or something else.
func TestChangedBytesAreNeverBelieved(t *testing.T) {
	whole, want := sample(t)
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 400 {
		data := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			data[random.IntN(len(data))] ^= byte(1 << random.IntN(8))
		}
		s, err := read(t, data)
		if err != nil {
			require.Equal(t, fault.Failed, fault.ClassOf(err), "%v", err)
			found++
			continue
		}
		if len(s.Units) != len(want.Units) {
			continue // the newest head was hit: the transaction before it is read
		}
		require.Empty(t, cmp.Diff(want, s))
	}
	require.Greater(t, found, 50, "of 400")
}
