package disk

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
)

// An account writes files of its own, and could not give back what is another's: that
// counts as its own, so that it is no drift for ever.
func TestFilesOfAnAccountAreItsOwn(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/web.service": plain, etc + "/other.service": plain})
	require.NoError(t, os.Chown(w.at(etc+"/web.service"), 0, 0))
	require.NoError(t, os.Chown(w.at(etc+"/other.service"), 1001, 1002))
	var err error
	w.Disk, err = New(Options{Root: w.root, UnitPath: searchPath(), UID: 1001, GID: 1002})
	require.NoError(t, err)
	k := w.look(plan.Query{Unit: "web.service", Service: service("web.service", plain)})
	want := fileOf(plain)
	want.UID, want.GID = 1001, 1002
	require.Equal(t, want, k.Wants[0].Entry)
	require.Equal(t, want, k.At[etc+"/web.service"], "root's file with these bytes is as declared")
	found, _, err := w.Snapshot(etc + "/other.service")
	require.NoError(t, err)
	require.Equal(t, want, found)

	k = w.look(plan.Query{Unit: "web.service", Service: service("web.service", wanted)})
	w.apply(plan.Change{Path: k.Wants[0].Path, Entry: k.Wants[0].Entry, Content: k.Wants[0].Content})
	require.Equal(t, []int{1001, 1002}, []int{w.entry(etc + "/web.service").UID, w.entry(etc + "/web.service").GID})
}
