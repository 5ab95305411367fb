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
		why, yes := Protected(n)
		require.True(t, yes, n)
		require.NotEmpty(t, why, n)
	}
	for _, n := range []unit.Name{
		"web.service", "steady.service", "instead.service", "my-stead-host.service", "systemd-udevd.service", "systemd-timesyncd.service", "system-x.slice", "system-.slice",
		"userdb.service", "user.service", "dbus.target", "dbus-org.bluez.service", "basic.target", "multi-user.target", "web-.service", "systemd-.timer",
		"service.service", "systemd-journal-upload.service", "my.mount", "rescue.target", "stead", "",
	} {
		why, yes := Protected(n)
		require.False(t, yes, "%s: %s", n, why)
	}
}
