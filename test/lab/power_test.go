package lab_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// service is enabled before the power goes and must run when it is back.
const service = "[Service]\nExecStart=sleep 4713\n[Install]\nWantedBy=multi-user.target\n"

func TestDiskOutlivesWhatRunDoesNot(t *testing.T) {
	for name, cycle := range map[string]func(*testing.T, *lab.Node){
		"reboot": func(t *testing.T, n *lab.Node) { require.NoError(t, n.Reboot(t.Context())) },
		"power cut": func(t *testing.T, n *lab.Node) {
			require.NoError(t, n.PowerCut(t.Context()))
			require.NoError(t, n.PowerOn(t.Context()))
		},
		"power off": func(t *testing.T, n *lab.Node) {
			require.NoError(t, n.PowerOff(t.Context()))
			require.NoError(t, n.PowerOn(t.Context()))
		},
		"poweroff from inside": func(t *testing.T, n *lab.Node) {
			n.Exec(t.Context(), "systemctl", "poweroff")
			require.NoError(t, n.WaitOff(t.Context()))
			require.NoError(t, n.PowerOn(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := lab.Start(t, lab.Options{})
			before := n.Run(t, "cat", "/etc/machine-id")
			boot := n.Run(t, "cat", "/proc/sys/kernel/random/boot_id")
			pid, upper := n.PID(), n.Upper()
			for _, file := range []string{"/etc/kept", "/var/lib/kept", "/run/gone", "/tmp/gone", "/dev/shm/gone"} {
				require.NoError(t, n.WriteFile(file, []byte(file), 0o600))
			}
			require.NoError(t, n.WriteFile("/etc/systemd/system/back.service", []byte(service), 0o644))
			n.Run(t, "systemctl", "enable", "--now", "back.service")

			cycle(t, n)

			require.Equal(t, "running\n", n.Run(t, "systemctl", "is-system-running"))
			require.Equal(t, before, n.Run(t, "cat", "/etc/machine-id"))
			require.NotEqual(t, boot, n.Run(t, "cat", "/proc/sys/kernel/random/boot_id"))
			require.NotEmpty(t, n.Run(t, "journalctl", "--boot=-1", "--lines=1", "--quiet"), "the journal has forgotten the boot before")
			require.NotEqual(t, pid, n.PID())
			require.Equal(t, upper, n.Upper())
			kept, err := n.ReadFile("/etc/kept")
			require.NoError(t, err)
			require.Equal(t, "/etc/kept", string(kept))
			require.FileExists(t, n.Upper()+"/var/lib/kept")
			for _, file := range []string{"/run/gone", "/tmp/gone", "/dev/shm/gone"} {
				require.NoFileExists(t, n.Path(file))
			}
			require.Equal(t, "active\n", n.Run(t, "systemctl", "is-active", "back.service"))
			require.Contains(t, n.Run(t, "journalctl", "--no-pager", "-u", "back.service", "-o", "short-monotonic"), "Started")
		})
	}
}

func TestNodeThatIsOff(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	require.NoError(t, n.WriteFile("/etc/kept", []byte("x"), 0o600))
	require.ErrorContains(t, n.PowerOn(t.Context()), "it is up")
	require.NoError(t, n.PowerCut(t.Context()))
	require.NoError(t, n.PowerCut(t.Context()), "it may be cut twice")
	require.Zero(t, n.PID())
	require.Equal(t, lab.Off, n.Condition())
	_, err := n.Exec(t.Context(), "true")
	require.ErrorContains(t, err, "is off")
	require.ErrorContains(t, n.Command(t.Context(), "true").Start(), "is off")
	_, err = n.ReadFile("/etc/kept")
	require.ErrorContains(t, err, "is off")
	require.ErrorContains(t, n.Reboot(t.Context()), "is off")
	require.ErrorContains(t, n.PowerOff(t.Context()), "is off")
	// What is on the disk can be looked at all the same.
	b, err := os.ReadFile(n.Disk("/etc/kept"))
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
}

func TestBootThatHangsSaysWhatItWaitsFor(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	require.NoError(t, n.WriteFile("/etc/systemd/system/hangs.service", []byte(strings.Replace(service, "[Service]", "[Service]\nType=oneshot\nTimeoutStopSec=1", 1)), 0o644))
	n.Run(t, "systemctl", "enable", "hangs.service")
	ctx, cancel := withTimeout(t, 3)
	defer cancel()
	require.ErrorContains(t, n.Reboot(ctx), "hangs.service")
	require.Equal(t, lab.Up, n.Condition())
	out, err := n.Exec(t.Context(), "systemctl", "is-system-running")
	require.NoError(t, err)
	require.Equal(t, "starting\n", out.Stdout)
}
