package account

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

var errTest = errors.New("full")

func TestLoginsAreReadFromFiles(t *testing.T) {
	w := newWorld(t)
	w.logins("broken", "opal:x:no:1::/:/bin/sh", "+opal:x:1:1::/:", opalLine, "opal:x:7:7::/:/bin/sh")
	l := Logins{w.passwd}
	id, err := l.Lookup("opal")
	require.NoError(t, err)
	require.Equal(t, Identity{Name: "opal", UID: 1001, GID: 1001, Groups: []int{29}, Home: "/srv/opal", Shell: "/bin/sh"}, id)
	_, err = l.Lookup("ruby")
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	name, err := l.Of(1001)
	require.NoError(t, err)
	require.Equal(t, "opal", name)
	name, err = l.Of(5)
	require.NoError(t, err)
	require.Empty(t, name)
	_, err = Logins{t.TempDir()}.Lookup("opal")
	require.Equal(t, fault.Failed, fault.ClassOf(err))
}

func TestMountsOfAHome(t *testing.T) {
	mounts, automounts := mountsOf("/srv/o-pal.x/")
	require.Equal(t, []unit.Name{"srv.mount", `srv-o\x2dpal.x.mount`}, mounts)
	require.Equal(t, []unit.Name{"srv.automount", `srv-o\x2dpal.x.automount`}, automounts)
	mounts, _ = mountsOf("/")
	require.Empty(t, mounts)
	require.Equal(t, `\x2ehidden-.x`, escapePath("/.hidden/.x"))
}

func TestAHomeThatIsMountedWhenSomebodyComesIsThere(t *testing.T) {
	seen := map[unit.Name]unit.Status{
		"srv.mount":     {Load: unit.Loaded, Active: unit.Inactive},
		"srv.automount": {Load: unit.Loaded, Active: unit.Active},
	}
	mounts, automounts := mountsOf("/srv/opal")
	require.Empty(t, unmounted(seen, mounts, automounts))
	seen["srv.automount"] = unit.Status{}
	require.Equal(t, unit.Name("srv.mount"), unmounted(seen, mounts, automounts))
}
