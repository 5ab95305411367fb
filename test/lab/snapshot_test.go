package lab_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestExclusionsAreFewAndHaveReasons(t *testing.T) {
	all := lab.Exclusions()
	require.NotEmpty(t, all)
	require.LessOrEqual(t, len(all), 10)
	for _, e := range all {
		require.True(t, strings.HasPrefix(e.Path, "/"), e.Path)
		require.NotEmpty(t, e.Reason, e.Path)
	}
}

func TestSnapshotSeesWhatDiffers(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	snap := func() lab.Snapshot {
		t.Helper()
		s, err := n.Snapshot(t.Context())
		require.NoError(t, err)
		return s
	}
	const own = "/etc/systemd/system/own.service"
	require.NoError(t, n.WriteFile(own, []byte("[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"), 0o644))
	require.NoError(t, n.WriteFile("/opt/there", []byte("a"), 0o644))
	n.Run(t, "systemctl", "daemon-reload")
	before := snap()
	require.Contains(t, before.Disk[own], "file 0644 0:0, ")
	require.Equal(t, "disabled enabled", strings.TrimSpace(before.Files["own.service"]+" enabled"))
	require.NotContains(t, before.Disk, "/etc", "a folder that was merely copied up")

	data, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	passwd := fmt.Sprintf("file 0644 0:0, %d bytes, sha256 %x", len(data), sha256.Sum256(data))
	n.Run(t, "systemctl", "enable", "--now", "own.service")
	n.Run(t, "sh", "-c", "chmod 600 /opt/there; rm /etc/passwd; ln -s x /opt/link; mkdir /opt/dir; chown 1:1 /opt/dir; mkdir -p /var/lib/stead; echo x > /var/lib/stead/x; touch /etc/group")
	require.Equal(t, []string{
		"/etc/passwd: it was " + passwd + ", and is not there",
		"/etc/systemd/system/multi-user.target.wants: it was not there, and is folder 0755 0:0",
		"/etc/systemd/system/multi-user.target.wants/own.service: it was not there, and is link to /etc/systemd/system/own.service",
		"/opt/dir: it was not there, and is folder 0755 1:1",
		"/opt/link: it was not there, and is link to x",
		"/opt/there: it was file 0644 0:0, 1 bytes, sha256 ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb, " +
			"and is file 0600 0:0, 1 bytes, sha256 ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
		"unit file own.service: it was disabled, and is enabled",
		"unit own.service: it was not there, and is loaded active running",
	}, withoutMark(before.Diff(snap())))

	require.NoError(t, n.CopyIn("/etc/passwd", "/etc/passwd"))
	n.Run(t, "sh", "-c", "chmod 644 /opt/there; rm -r /opt/link /opt/dir")
	n.Run(t, "systemctl", "disable", "--now", "own.service")
	n.Run(t, "rm", "-rf", "/etc/systemd/system/multi-user.target.wants")
	require.Empty(t, before.Diff(snap()), "what is as it was is no difference")
}

// withoutMark takes away what depends on whether this machine has a folder of that name.
func withoutMark(diff []string) []string {
	for i := range diff {
		diff[i] = strings.TrimSuffix(diff[i], ", made anew")
	}
	return diff
}
