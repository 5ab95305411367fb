package ledger

import (
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

// stamp writes a version into a ledger that holds one unit.
func stamp(t *testing.T, version string) string {
	t.Helper()
	path := newPath(t)
	l := openAt(t, path)
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("a.service", "x")}, Blobs: blobs("x")}))
	require.NoError(t, l.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(schemaKey, []byte(version)) }))
	require.NoError(t, l.Close())
	return path
}

// The file was written by a stead of schema 2, from what a mesh declared.
func TestLedgerOfTheVersionBeforeIsBroughtForward(t *testing.T) {
	f, err := os.Open("testdata/schema-2.db.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	for range 2 {
		l := openAt(t, path)
		found, err := l.version()
		require.NoError(t, err)
		require.Equal(t, 3, found)
		s, err := l.Load()
		require.NoError(t, err)
		require.Equal(t, []string{"db", "web"}, slices.Sorted(maps.Keys(s.Declarations)))
		require.True(t, s.Declarations["web"].Of("e1"), "it came from a mesh")
		require.Equal(t, uint64(3), s.Declarations["web"].Generation)
		require.NotNil(t, s.Held)
		require.Equal(t, "web", s.Units[Key{unit.System, "web.service"}].Name)
		require.Equal(t, "boot", s.Managers[unit.System].Boot)
		blob, err := l.Blob(sum([]byte("theirs")))
		require.NoError(t, err)
		require.Equal(t, "theirs", string(blob))
		require.NoError(t, l.Close())
	}
	l := openAt(t, path)
	held := &accept.Held{Index: []byte("i")}
	require.NoError(t, l.Accept(accept.Change{Held: held}))
	s, err := l.Load()
	require.NoError(t, err)
	require.Equal(t, held, s.Held)
}

func TestLedgerThatIsTooOldIsRefusedByName(t *testing.T) {
	path := stamp(t, "1")
	_, err := Open(Options{Path: path})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.EqualError(t, err, "open ledger: "+path+": its schema is 1 and this stead reads 2 to 3: it is too old")
	require.Contains(t, fault.HintOf(err), "start a stead of ledger schema 2 on it once")
}

func TestLedgerOfANewerSteadIsRefusedByName(t *testing.T) {
	path := stamp(t, "7")
	_, err := Open(Options{Path: path})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.EqualError(t, err, "open ledger: "+path+": its schema is 7 and this stead reads 2 to 3: a newer stead wrote it")
	var e *fault.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Hint, "install a stead that reads ledger schema 7")

	// It was let go of, and not touched.
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 1})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		require.Equal(t, "7", string(tx.Bucket(metaBucket).Get(schemaKey)))
		require.Equal(t, 1, tx.Bucket(unitsBucket).Stats().KeyN)
		return nil
	}))
	require.NoError(t, db.Close())
}

func TestStampThatIsNoVersionIsDamage(t *testing.T) {
	for _, v := range []string{"", "-3", "one", "99999999999999999999"} {
		_, err := Open(Options{Path: stamp(t, v)})
		require.Equal(t, fault.Failed, fault.ClassOf(err), "%q", v)
		require.ErrorContains(t, err, "damaged")
	}
}
