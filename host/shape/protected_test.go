package shape

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestProtected(t *testing.T) {
	for _, n := range []unit.Name{
		"stead.service", "stead-host.service", "stead-escalate.socket", "stead-x.timer", "stead@1.service", "stead.slice", "stead.target",
		"init.scope", "-.slice", "-.mount", "system.slice", "user.slice", "user-1000.slice", "user-.slice", "sysinit.target",
		"dbus.service", "dbus.socket", "dbus-broker.service", "dbus-daemon.service", "messagebus.service",
		"systemd-logind.service", "dbus-org.freedesktop.login1.service", "systemd-logind-varlink.socket",
		"systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket", "systemd-journald-audit.socket", "systemd-journald@.service", "systemd-journald@x.socket",
		"user@.service", "user@1000.service", "user-runtime-dir@.service", "user-runtime-dir@0.service",
		"reboot.target", "poweroff.target", "halt.target", "kexec.target", "shutdown.target", "ctrl-alt-del.target", "runlevel6.target", "suspend.target", "initrd-switch-root.target", "initrd-switch-root.service",
		"systemd-reboot.service", "systemd-suspend.service",
		// drop-ins of these are read for the units above
		"stead-.service", "stead-.timer", "systemd-.service", "systemd-.socket", "systemd-journald-.socket", "systemd-journald-dev-.socket", "dbus-.service", "user-.service", "user-runtime-.service",
	} {
		why, yes := Protected(unit.System, n)
		require.True(t, yes, n)
		require.NotEmpty(t, why, n)
	}
	for _, n := range []unit.Name{
		"web.service", "steady.service", "instead.service", "my-stead-host.service", "systemd-udevd.service", "systemd-timesyncd.service", "system-x.slice", "system-.slice",
		"userdb.service", "user.service", "dbus.target", "dbus-org.bluez.service", "basic.target", "multi-user.target", "web-.service", "systemd-.timer",
		"service.service", "systemd-journal-upload.service", "my.mount", "rescue.target", "stead", "",
	} {
		why, yes := Protected(unit.System, n)
		require.False(t, yes, "%s: %s", n, why)
	}
}

// A user manager stands on units of its own, and those of the system are names like
// any other there.
func TestProtectedInUserScope(t *testing.T) {
	for _, n := range []unit.Name{
		"stead.service", "stead-x.timer", "init.scope", "-.slice", "app.slice", "session.slice", "basic.target", "dbus.service", "dbus.socket", "dbus-broker.service",
		"exit.target", "shutdown.target", "systemd-exit.service", "stead-.service", "systemd-.service", "dbus-.service",
	} {
		why, yes := Protected(unit.User, n)
		require.True(t, yes, n)
		require.NotEmpty(t, why, n)
	}
	for _, n := range []unit.Name{
		"web.service", "default.target", "graphical-session.target", "background.slice", "app-x.slice", "app-.slice", "pipewire.service", "dbus-org.bluez.obex.service", "sysinit.target",
		"systemd-logind.service", "reboot.target", "systemd-tmpfiles-clean.timer", "xdg-desktop-portal.service", "",
	} {
		why, yes := Protected(unit.User, n)
		require.False(t, yes, "%s: %s", n, why)
	}
	_, yes := StandsOn(unit.User, "exit.target")
	require.False(t, yes, "every unit conflicts with what ends the manager")
	_, yes = StandsOn(unit.User, "basic.target")
	require.True(t, yes)
}
