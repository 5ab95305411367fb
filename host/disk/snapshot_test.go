package disk

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

func TestSnapshotIsWhatStandsThere(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/f": "text", etc + "/empty": "", etc + "/l": "-> f"})
	require.NoError(t, os.Chmod(w.at(etc+"/f"), 0o640))
	file := fileOf("text")
	file.Mode = 0o640
	for name, want := range map[string]struct {
		entry plan.Entry
		data  []byte
	}{
		"f":       {file, []byte("text")},
		"empty":   {fileOf(""), []byte{}},
		"l":       {plan.Entry{Kind: plan.Link, Target: "f"}, nil},
		"no":      {absent(), nil},
		"no/such": {absent(), nil},
	} {
		e, data, err := w.Snapshot(etc + "/" + name)
		require.NoError(t, err, name)
		require.Equal(t, want.entry, e, name)
		require.Equal(t, want.data, data, name)
	}
}

// What could not be put back is not to be overwritten.
func TestASnapshotOfAnObstacleIsAConflict(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/d/": ""})
	require.NoError(t, unix.Mkfifo(w.at(etc+"/p"), 0o600))
	for name, kind := range map[string]plan.Kind{"d": plan.Dir, "p": plan.Other} {
		e, _, err := w.Snapshot(etc + "/" + name)
		require.True(t, fault.Is(err, fault.Conflict), "%s: %v", name, err)
		require.Equal(t, kind, e.Kind)
	}
}
