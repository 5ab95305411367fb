package shape_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
	"stead/host/unit"
	"stead/test/lab"
)

const sleeper = "[Service]\nExecStart=/bin/sleep infinity\n"

// node boots a node with unit files and drop-ins, given as pairs of path below
// /etc/systemd/system and content.
func node(t *testing.T, pairs ...string) *lab.Node {
	t.Helper()
	n := lab.Start(t, lab.Options{})
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, n.WriteFile("/etc/systemd/system/"+pairs[i], []byte(pairs[i+1]), 0o644))
	}
	n.Run(t, "systemctl", "daemon-reload")
	return n
}

func show(t *testing.T, n *lab.Node, u, property string) string {
	t.Helper()
	return strings.TrimSpace(n.Run(t, "systemctl", "show", "--value", "-p", property, "--", u))
}

// Whatever goes down with a unit that stead stands on, or that a drop-in of
// another name reaches, is refused: here is what systemd does of it.
func TestProtectedIsWhatSystemdWouldStop(t *testing.T) {
	n := node(t, "stead-host.service", sleeper,
		"conflicts.service", "[Unit]\nConflicts=stead-host.service\n"+sleeper,
		"propagates.service", "[Unit]\nPropagatesStopTo=stead-host.service\n"+sleeper,
		"required.service", sleeper+"[Install]\nRequiredBy=stead-host.service\n",
		"partof.service", "[Unit]\nPartOf=stead-host.service\n"+sleeper)
	for _, c := range []struct {
		name   string
		before []string
		cause  []string
		stops  bool
	}{
		{"a conflict", nil, []string{"start", "conflicts.service"}, true},
		{"a spreading stop", []string{"start", "propagates.service"}, []string{"stop", "propagates.service"}, true},
		{"sysinit.target", nil, []string{"stop", "sysinit.target"}, true},
		{"basic.target, which is not protected", nil, []string{"stop", "basic.target"}, false},
		{"PartOf, which is not refused", []string{"start", "partof.service"}, []string{"stop", "partof.service"}, false},
		{"a requirement", []string{"enable", "required.service"}, []string{"stop", "required.service"}, true},
	} {
		if c.before != nil {
			n.Run(t, append([]string{"systemctl", "-q"}, c.before...)...)
		}
		n.Run(t, "systemctl", "start", "stead-host.service")
		n.Run(t, append([]string{"systemctl"}, c.cause...)...)
		want := map[bool]string{true: "inactive", false: "active"}[c.stops]
		is := show(t, n, "stead-host.service", "ActiveState")
		for end := time.Now().Add(20 * time.Second); is == "deactivating" && time.Now().Before(end); { // a job was waited for, and not this one
			is = show(t, n, "stead-host.service", "ActiveState")
		}
		require.Equal(t, want, is, c.name)
	}
}

func TestProtectedCoversDropInRoots(t *testing.T) {
	description := func(root string) string { return "[Unit]\nDescription=from " + root + "\n" }
	roots := map[string]string{"stead-.service": "stead-host.service", "systemd-.service": "systemd-logind.service", "systemd-journald-.socket": "systemd-journald-dev-log.socket", "user-.slice": "user-0.slice"}
	pairs := []string{"stead-host.service", sleeper}
	for root := range roots {
		pairs = append(pairs, root+".d/50-x.conf", description(root))
	}
	n := node(t, pairs...)
	for root, reached := range roots {
		require.Equal(t, "from "+root, show(t, n, reached, "Description"), "systemd reads %s.d for %s", root, reached)
		_, yes := shape.Protected(unit.System, unit.Name(root))
		require.True(t, yes, root)
	}
}

// Every name by which systemd knows what stead stands on is protected.
func TestProtectedCoversEveryAliasOnARealMachine(t *testing.T) {
	n := node(t)
	seen := 0
	for _, u := range []string{"dbus.service", "dbus.socket", "systemd-logind.service", "systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket",
		"user@0.service", "user-runtime-dir@0.service", "reboot.target", "poweroff.target", "-.slice", "system.slice", "user.slice", "init.scope", "-.mount"} {
		for _, name := range strings.Fields(show(t, n, u, "Names")) {
			_, yes := shape.Protected(unit.System, unit.Name(name))
			require.True(t, yes, "%s, a name of %s", name, u)
			seen++
		}
	}
	require.Greater(t, seen, 15, "some have aliases")
}

// What content is refused for, and what not.
func TestTextRulesAreThoseOfSystemd(t *testing.T) {
	long := strings.Repeat("a", 246) + ".service" // 254 bytes
	n := node(t, "empty.service", "", "newline.service", "\n", "noend.service", "[Service]\nExecStart=/bin/true\nEnvironment=A=1",
		"backslash.service", "[Service]\nExecStart=/bin/true\nEnvironment=A=1 \\\n", "nul.service", "[Service]\nExecStart=/bin/true\nEnvironment=A=1\x00B=2\n",
		"cr.service", "[Service]\nExecStart=/bin/true\nEnvironment=A=1\rB=2\n", "hides.service", sleeper, "hides.service.d/10-x.conf", "", long, sleeper)
	require.NoError(t, n.WriteFile("/usr/lib/systemd/system/hides.service.d/10-x.conf", []byte("[Service]\nEnvironment=VENDOR=1\n"), 0o644))
	n.Run(t, "systemctl", "daemon-reload")
	require.Equal(t, "masked", show(t, n, "empty.service", "LoadState"), "an empty file is a mask")
	require.Equal(t, "bad-setting", show(t, n, "newline.service", "LoadState"), "one that is not empty is none")
	require.Equal(t, "A=1", show(t, n, "noend.service", "Environment"), "the last newline may be missing")
	require.Equal(t, "A=1", show(t, n, "backslash.service", "Environment"), "what a backslash at the end continues is silently nothing")
	require.Equal(t, "A=1", show(t, n, "nul.service", "Environment"), "a NUL ends the line")
	require.Equal(t, "A=1", show(t, n, "cr.service", "Environment"), "a CR ends the line")
	require.Empty(t, show(t, n, "hides.service", "Environment"), "an empty drop-in hides the vendor's")
	require.Equal(t, "loaded", show(t, n, long, "LoadState"), "254 bytes are a fine name")
	require.ErrorContains(t, os.Mkdir(t.TempDir()+"/"+long+".d", 0o755), "file name too long", "and leave no room for .d")
	require.Equal(t, unit.NameMax-1, len(long), fmt.Sprintf("%d", len(long)))
}
