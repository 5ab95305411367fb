package lab_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestBootRunsSystemd(t *testing.T) {
	n := lab.Start(t, lab.Options{Hostname: "ws1"})
	require.Equal(t, "running\n", n.Run(t, "systemctl", "is-system-running"))
	require.Equal(t, "ws1\n", n.Run(t, "hostname"))
	require.Empty(t, strings.TrimSpace(n.Run(t, "systemctl", "list-units", "--failed", "--no-legend")))
}
