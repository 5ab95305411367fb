package unit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestOnlyTheMainProcessOfItsServiceIsAnAccountsManager(t *testing.T) {
	require.Equal(t, Name("user@1000.service"), ManagerOf(1000))
	require.NoError(t, CheckManager(1000, 7, Listener{7, 1000}))
	for name, c := range map[string]struct {
		main  uint32
		l     Listener
		class fault.Class
		text  string
	}{
		"no process":            {0, Listener{0, 1000}, fault.NotFound, "it has no main process"},
		"another process":       {7, Listener{8, 1000}, fault.Denied, "process 8 of uid 1000 listens, and the manager is process 7"},
		"another account's":     {7, Listener{7, 1001}, fault.Denied, "process 7 of uid 1001 listens"},
		"root in its place":     {7, Listener{7, 0}, fault.Denied, "process 7 of uid 0 listens"},
		"one that has no pid":   {7, Listener{0, 1000}, fault.Denied, "process 0"},
		"nobody, while it runs": {7, Listener{}, fault.Denied, "process 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckManager(1000, c.main, c.l)
			require.ErrorContains(t, err, c.text)
			require.Equal(t, c.class, fault.ClassOf(err))
		})
	}
}
