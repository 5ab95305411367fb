package ledger

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

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

func TestLedgerOfTheVersionBeforeIsBroughtForward(t *testing.T) {
	path := stamp(t, strconv.Itoa(Schema-1))
	l := openAt(t, path)
	s, err := l.Load()
	require.NoError(t, err)
	require.Len(t, s.Units, 1)
	found, err := l.version()
	require.NoError(t, err)
	require.Equal(t, Schema, found)
}

func TestLedgerOfANewerSteadIsRefusedByName(t *testing.T) {
	path := stamp(t, "7")
	_, err := Open(Options{Path: path})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.EqualError(t, err, "open ledger: "+path+": its schema is 7 and this stead reads 1 to 2: a newer stead wrote it")
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
