package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

func stored(t *testing.T, l *Ledger, bucket []byte) int {
	t.Helper()
	n := 0
	require.NoError(t, l.db.View(func(tx *bolt.Tx) error {
		n = tx.Bucket(bucket).Stats().KeyN
		return nil
	}))
	return n
}

func TestBlobLivesAsLongAsAMemoryNeedsIt(t *testing.T) {
	l := openAt(t, newPath(t))
	digest := sum([]byte("shared"))
	has := func() bool { _, err := l.Blob(digest); return err == nil }
	a, b := memory("a.service", "shared"), memory("b.service", "shared")
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{a}, Blobs: blobs("shared")}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{b}}), "it is in the ledger already")
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{a, b}}))
	require.True(t, has())

	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Delete: []unit.Name{"a.service"}}))
	require.True(t, has(), "b needs it")
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("b.service", "")}}))
	require.False(t, has(), "nothing needs it")
	require.Zero(t, stored(t, l, blobsBucket)+stored(t, l, refsBucket))
}

func TestBlobMovesToAnotherUnitInOneRecord(t *testing.T) {
	l := openAt(t, newPath(t))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("a.service", "x")}, Blobs: blobs("x")}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Delete: []unit.Name{"a.service"}, Put: []plan.Memory{memory("b.service", "x")}}))
	data, err := l.Blob(sum([]byte("x")))
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
}

func TestBlobThatNothingNeedsIsNotStored(t *testing.T) {
	l := openAt(t, newPath(t))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Blobs: blobs("idle")}))
	require.Zero(t, stored(t, l, blobsBucket))
}

func TestEmptyFileCanBeRemembered(t *testing.T) {
	l := openAt(t, newPath(t))
	m := memory("a.service", "x")
	m.Found["/empty"] = plan.Entry{Kind: plan.File, Digest: sum(nil)}
	all := blobs("x")
	all[sum(nil)] = nil
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{m}, Blobs: all}))
	data, err := l.Blob(sum(nil))
	require.NoError(t, err)
	require.Empty(t, data)
	_, err = l.Load()
	require.NoError(t, err)
}

func TestRecordThatCouldNotBePutBackIsRefusedWhole(t *testing.T) {
	l := openAt(t, newPath(t))
	for name, r := range map[string]plan.Record{
		"bytes are missing": {Scope: unit.System, Put: []plan.Memory{memory("fine.service", ""), memory("a.service", "lost")}},
		"bytes are others":  {Scope: unit.System, Put: []plan.Memory{memory("fine.service", "")}, Blobs: map[string][]byte{sum([]byte("a")): []byte("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, fault.Internal, fault.ClassOf(l.Record(r)))
			s, err := l.Load()
			require.NoError(t, err)
			require.Empty(t, s.Units)
		})
	}
}
