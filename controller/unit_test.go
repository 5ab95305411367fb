package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/test/lab"
)

// placeIn is where the unit file expects the program.
const placeIn = "/usr/local/bin/stead"

func TestTheUnitRunsWithNothingButItsFolderAndTheNetwork(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	// The controller of this test binary in place of the program's.
	require.NoError(t, n.CopyIn("/proc/self/exe", placeIn))
	require.NoError(t, n.WriteFile("/etc/systemd/system/stead-controller.service", []byte(controller.UnitFile()), 0o644))
	require.NoError(t, n.WriteFile("/etc/systemd/system/stead-controller.service.d/test.conf",
		[]byte("[Service]\nEnvironment=\"STEAD_TEST_CONTROLLER=/var/lib/stead-controller|127.0.0.1:4222\"\n"), 0o644))
	n.Run(t, "systemctl", "daemon-reload")
	// A command that ends well says that the unit became ready.
	n.Run(t, "systemctl", "start", "stead-controller")
	show := func(property string) string {
		return strings.TrimSpace(n.Run(t, "systemctl", "show", "--value", "-p", property, "stead-controller"))
	}
	require.Equal(t, "active", show("ActiveState"))
	require.NotEqual(t, "0", show("UID"))
	require.Equal(t, "600 stead-controller", strings.TrimSpace(n.Run(t, "stat", "-L", "-c", "%a %U", "/var/lib/stead-controller/keys/keys.json")))
	require.Equal(t, "700 stead-controller", strings.TrimSpace(n.Run(t, "stat", "-L", "-c", "%a %U", "/var/lib/stead-controller/")))
	verify, err := n.Exec(t.Context(), "systemd-analyze", "verify", "stead-controller.service")
	require.NoError(t, err)
	require.NotContains(t, verify.Stdout+verify.Stderr, "stead-controller")

	// A controller that was killed is there again, with the mesh that it had.
	keys := n.Run(t, "sha256sum", "/var/lib/stead-controller/keys/keys.json")
	pid := show("MainPID")
	n.Run(t, "systemctl", "kill", "-s", "KILL", "stead-controller")
	require.Eventually(t, func() bool {
		out, err := n.Exec(context.WithoutCancel(t.Context()), "systemctl", "is-active", "stead-controller")
		return err == nil && out.Code == 0 && show("MainPID") != pid
	}, patience, 100*time.Millisecond)
	require.Equal(t, keys, n.Run(t, "sha256sum", "/var/lib/stead-controller/keys/keys.json"))
	start := time.Now()
	n.Run(t, "systemctl", "stop", "stead-controller")
	require.Less(t, time.Since(start), 15*time.Second)
	require.Equal(t, "success", show("Result"))

	// What cures say is done by root: the unit goes on from it all the same.
	// systemd tries again and again meanwhile, and takes the folder for the account.
	out, err := n.Exec(t.Context(), "sh", "-c", "timeout 5 env 'STEAD_TEST_CONTROLLER=/var/lib/stead-controller|127.0.0.1:4222' "+placeIn+
		" & sleep 2; systemctl --no-block start stead-controller; sleep 1; stat -L -c %u /var/lib/stead-controller/; systemctl stop stead-controller; wait")
	require.NoError(t, err)
	require.Regexp(t, `^ready\n[1-9][0-9]+\n$`, out.Stdout, "the folder was taken for the account")
	require.NotEmpty(t, n.Run(t, "find", "/var/lib/stead-controller/", "-type", "f", "-user", "root"))
	n.Run(t, "systemctl", "start", "stead-controller")
	require.Empty(t, n.Run(t, "find", "/var/lib/stead-controller/", "-user", "root"))
}
