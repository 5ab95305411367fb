package systemd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

// TestTiesOfAUserManager: what judges acts hears of an account's units what it hears of
// the system's.
func TestTiesOfAUserManager(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	o := newOpal(t)
	dir := o.home + "/.config/systemd/user"
	run(t, "runuser", "-u", "opal", "--", "mkdir", "-p", dir)
	run(t, "runuser", "-u", "opal", "--", "sh", "-c", `cd ~/.config/systemd/user
printf '[Unit]\nConflicts=tied-foe.service\n[Service]\nExecStart=/bin/sleep infinity\n' > tied.service
printf '[Unit]\nRequires=tied.service\n[Service]\nExecStart=/bin/sleep infinity\n' > tied-with.service
printf '[Timer]\nOnActiveSec=1h\nUnit=tied.service\n' > tied.timer
ln -sf tied.service tied-nick.service`)
	m := connect(t, Options{Scope: unit.User, Guard: o})
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, []unit.Name{"tied-with.service", "tied.timer"})
	all, err := m.Ties(t.Context(), []unit.Name{"tied-nick.service", "tied-none.service", "tied@.service"})
	require.NoError(t, err)
	tied := all[0]
	require.Equal(t, unit.Name("tied.service"), tied.ID)
	require.Equal(t, unit.Active, tied.Active)
	require.Len(t, tied.Invocation, 32)
	require.Equal(t, []unit.Name{"tied-nick.service", "tied.service"}, tied.Names)
	require.Contains(t, tied.StopsWith, unit.Name("tied-with.service"))
	require.Contains(t, tied.TriggeredBy, unit.Name("tied.timer"))
	require.Contains(t, tied.Conflicts, unit.Name("tied-foe.service"))
	require.Equal(t, unit.NotFound, all[1].Load)
	require.Equal(t, unit.Ties{}, all[2])
	p, err := o.system.Process(t.Context(), o.service())
	require.NoError(t, err)
	require.Equal(t, o.uid, p.UID, "PID 1 says as whom a user manager runs")
	require.NoError(t, o.Peer(t.Context(), p.PID, p.UID))
}
