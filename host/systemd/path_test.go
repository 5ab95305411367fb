package systemd

import (
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestUnitPathsRoundTrip(t *testing.T) {
	all := ""
	for c := byte(1); c < 128; c++ {
		if _, err := unit.ParseName("a" + string(c) + ".service"); err == nil {
			all += string(c)
		}
	}
	require.Len(t, all, 26+26+10+5+1)
	for _, n := range []unit.Name{
		unit.Name(all + ".service"), "account_db.service", "a-b.service", "x@1.service", `my\x2ddata.mount`, "-.slice", "-.mount",
		"0.service", "_.service", "a__b.service", "_5f.service", "dev-disk-by\\x2dlabel-x.swap", "a@b@c.service", "..service",
	} {
		p := pathOfUnit(n)
		require.True(t, p.IsValid(), p)
		got, ok := unitOfPath(p)
		require.True(t, ok)
		require.Equal(t, n, got)
	}
}

func TestUnitPathsAreThoseOfSystemd(t *testing.T) {
	require.Equal(t, dbus.ObjectPath("/org/freedesktop/systemd1/unit/system_2dlogind_2eservice"), pathOfUnit("system-logind.service"))
	require.Equal(t, dbus.ObjectPath("/org/freedesktop/systemd1/unit/_30a_5fb_40c_2etimer"), pathOfUnit("0a_b@c.timer"))
	for _, p := range []dbus.ObjectPath{"/", "/org/freedesktop/systemd1", "/org/freedesktop/systemd1/job/7", "/org/freedesktop/systemd1/unit/"} {
		_, ok := unitOfPath(p)
		require.False(t, ok, p)
	}
}

func FuzzUnitOfPath(f *testing.F) {
	f.Add("/org/freedesktop/systemd1/unit/a_2eservice")
	f.Add("/org/freedesktop/systemd1/unit/_")
	f.Add("/org/freedesktop/systemd1/unit/a_2")
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := unitOfPath(dbus.ObjectPath(s))
		if !ok || n == "" {
			return
		}
		again, ok := unitOfPath(pathOfUnit(n))
		require.True(t, ok)
		require.Equal(t, n, again)
	})
}
