package system

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUpDoesNotHarmAMeshThatIsThere: on a node of another mesh it begins none,
// and what the controller of a running one would not take is not given to it.
func TestUpDoesNotHarmAMeshThatIsThere(t *testing.T) {
	m := install(t)
	m.Run(t, "stead", "up", "--node", "ws1")
	pid := m.prop("stead-controller.service", "MainPID")
	for _, args := range [][]string{{"--listen", "nonsense"}, {"--host", " "}, {"--node", "A_B"}} {
		out, err := m.Exec(t.Context(), append([]string{"stead", "up", "--node", "ws1"}, args...)...)
		require.NoError(t, err)
		require.Equal(t, 2, out.Code, "%s: %s", args, out.Stderr)
	}
	require.Equal(t, pid, m.prop("stead-controller.service", "MainPID"))

	// What somebody spoilt and mended by hand is read when up is done again.
	const dropIn = "/etc/systemd/system/stead-controller.service.d/10-up.conf"
	require.NoError(t, m.WriteFile(dropIn, []byte("[Service]\nExecStart=\nExecStart=/bin/false\n"), 0o644))
	out, err := m.Exec(t.Context(), "sh", "-c", "systemctl daemon-reload; systemctl restart stead-controller")
	require.NoError(t, err)
	require.NotZero(t, out.Code)
	m.Run(t, "rm", dropIn)
	m.Run(t, "stead", "up", "--node", "ws1")

	m.Run(t, "systemctl", "disable", "--now", "stead-controller")
	m.Run(t, "mv", "/var/lib/private/stead-controller", "/root/")
	out, err = m.Exec(t.Context(), "stead", "up", "--node", "ws1")
	require.NoError(t, err)
	require.Equal(t, 1, out.Code)
	require.Contains(t, out.Stderr, `this machine is node "ws1" of another mesh`)
	require.Equal(t, "disabled", m.prop("stead-controller.service", "UnitFileState"))
	require.Equal(t, "inactive", m.prop("stead-controller.service", "ActiveState"))
}
