package journal

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

// readerEnv tells the test binary to be a process that reads the journal.
const readerEnv = "STEAD_JOURNAL_UNIT"

// In a container whose boot id is not the kernel's, a service with
// ProtectKernelTunables= sees the kernel's own: systemd mounts it a fresh /proc.
func TestLinesAreFoundFromAHardenedServiceInAContainer(t *testing.T) {
	if name := os.Getenv(readerEnv); name != "" {
		lines := Reader{Scope: unit.System}.Lines(t.Context(), []unit.Name{unit.Name(name), "silent.service"})
		said := strings.Join(lines[unit.Name(name)], "\n")
		require.Contains(t, said, "of this boot")
		require.NotContains(t, said, "of an older boot")
		require.NotContains(t, lines, unit.Name("silent.service"))
		return
	}
	n := lab.Start(t, lab.Options{})
	say := func(text string) {
		require.NoError(t, n.WriteFile("/etc/systemd/system/talks.service",
			[]byte("[Service]\nType=oneshot\nExecStart=/bin/echo "+text+"\n"), 0o644))
		n.Run(t, "systemctl", "daemon-reload")
		n.Run(t, "systemctl", "start", "talks.service")
		n.Run(t, "journalctl", "--sync")
	}
	say("of an older boot")
	require.NoError(t, n.Reboot(t.Context()))
	say("of this boot")
	require.NoError(t, n.CopyIn("/proc/self/exe", "/opt/reader"))
	n.Run(t, "systemd-run", "--quiet", "--pipe", "--wait", "-p", "ProtectKernelTunables=yes", "-p", "PrivateDevices=yes", "-p", "MemoryDenyWriteExecute=yes",
		"--setenv="+readerEnv+"=talks.service", "/opt/reader", "-test.run=^TestLinesAreFoundFromAHardenedServiceInAContainer$")
}
