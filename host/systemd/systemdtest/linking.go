package systemdtest

import (
	"os"
	"slices"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

const wanted = sleeper + "[Install]\nWantedBy=multi-user.target\n"

// linking are the cases about the links of unit files.
func linking() map[string]func(*kit) {
	return map[string]func(*kit){
		"enabling makes links and disabling removes them": linksAndBack,
		"nothing to install is told":                      linksNothing,
		"a template is enabled by its instance":           linksInstance,
		"what cannot be enabled is refused":               linksRefused,
		"disabling removes what others made":              unlinksOthers,
	}
}

func (k *kit) enable(n unit.Name) unit.Linking {
	k.t.Helper()
	l, err := k.Manager.Enable(k.ctx, []unit.Name{n})
	require.NoError(k.t, err)
	slices.SortFunc(l.Made, func(a, b unit.LinkMade) int { return len(a.Path) - len(b.Path) })
	return l
}

func (k *kit) disable(n unit.Name) unit.Linking {
	k.t.Helper()
	l, err := k.Manager.Disable(k.ctx, []unit.Name{n})
	require.NoError(k.t, err)
	slices.SortFunc(l.Removed, func(a, b string) int { return len(a) - len(b) })
	return l
}

func linksAndBack(k *kit) {
	k.write("ct-w.service", wanted+"Alias=ct-alias.service\nAlso=ct-also.service ct-masked.service\n")
	k.write("ct-also.service", sleeper+"[Install]\nRequiredBy=multi-user.target\n")
	k.link("/dev/null", "ct-masked.service")
	k.reload()
	l := k.enable("ct-w.service")
	require.Equal(k.t, []unit.LinkMade{
		{Path: k.at("ct-alias.service"), To: k.at("ct-w.service")},
		{Path: k.at("multi-user.target.wants/ct-w.service"), To: k.at("ct-w.service")},
		{Path: k.at("multi-user.target.requires/ct-also.service"), To: k.at("ct-also.service")},
	}, l.Made)
	require.Empty(k.t, l.Removed)
	require.False(k.t, l.NoInstall)
	require.Contains(k.t, l.Notes, k.at("ct-masked.service")+": masked")
	target, err := os.Readlink(k.at("ct-alias.service"))
	require.NoError(k.t, err)
	require.Equal(k.t, k.at("ct-w.service"), target)
	require.Empty(k.t, k.enable("ct-w.service").Made, "it is so already")
	k.reload()
	require.Equal(k.t, "enabled", k.details("ct-w.service").Enablement)
	require.Equal(k.t, unit.Name("ct-w.service"), k.look("ct-alias.service").ID)

	l = k.disable("ct-w.service")
	require.Equal(k.t, []string{k.at("ct-alias.service"), k.at("multi-user.target.wants/ct-w.service"), k.at("multi-user.target.requires/ct-also.service")}, l.Removed)
	require.Empty(k.t, l.Made)
	require.NoFileExists(k.t, k.at("ct-alias.service"))
	require.FileExists(k.t, k.at("ct-w.service"))
	require.Empty(k.t, k.disable("ct-w.service").Removed)
	k.reload()
	require.Equal(k.t, "disabled", k.details("ct-w.service").Enablement)
}

func linksNothing(k *kit) {
	k.write("ct-s.service", sleeper)
	k.write("ct-i.service", sleeper+"[Install]\nAlso=ct-w.service\n")
	k.write("ct-w.service", wanted)
	k.reload()
	require.Equal(k.t, unit.Linking{NoInstall: true}, k.enable("ct-s.service"))
	require.Equal(k.t, unit.Linking{}, k.disable("ct-s.service"))
	l := k.enable("ct-i.service")
	require.False(k.t, l.NoInstall)
	require.Equal(k.t, []unit.LinkMade{{Path: k.at("multi-user.target.wants/ct-w.service"), To: k.at("ct-w.service")}}, l.Made)
}

func linksInstance(k *kit) {
	k.write("ct-t@.service", wanted)
	k.reload()
	l, err := k.Manager.Enable(k.ctx, []unit.Name{"ct-t@.service"})
	if k.version() < 251 {
		require.NoError(k.t, err, "older managers make nothing of it, and say nothing")
		require.Empty(k.t, l.Made)
	} else {
		require.Error(k.t, err)
	}
	l = k.enable("ct-t@one.service")
	require.Equal(k.t, []unit.LinkMade{{Path: k.at("multi-user.target.wants/ct-t@one.service"), To: k.at("ct-t@.service")}}, l.Made)
	k.reload()
	require.Equal(k.t, "enabled", k.details("ct-t@one.service").Enablement)
	require.Equal(k.t, "disabled", k.details("ct-t@two.service").Enablement)
	require.Equal(k.t, []string{k.at("multi-user.target.wants/ct-t@one.service")}, k.disable("ct-t@.service").Removed, "all instances")
}

func linksRefused(k *kit) {
	k.link("/dev/null", "ct-m.service")
	k.write("ct-w.service", wanted)
	k.link("ct-w.service", "ct-nick.service")
	k.reload()
	for n, class := range map[unit.Name]fault.Class{
		"ct-none.service": fault.NotFound, "ct-m.service": fault.Refused, "ct-nick.service": fault.Refused,
		"": fault.Invalid, "nonsense": fault.Invalid, "--now.service": fault.Invalid, "/etc/ct-w.service": fault.Invalid, "ct-*.service": fault.Invalid,
	} {
		_, err := k.Manager.Enable(k.ctx, []unit.Name{n})
		require.Equal(k.t, class, fault.ClassOf(err), "enable %q: %v", n, err)
	}
	for n, class := range map[unit.Name]fault.Class{"ct-none.service": fault.NotFound, "/etc/ct-w.service": fault.Invalid} {
		_, err := k.Manager.Disable(k.ctx, []unit.Name{n})
		require.Equal(k.t, class, fault.ClassOf(err), "disable %q: %v", n, err)
	}
	require.Empty(k.t, k.disable("ct-m.service").Removed, "a mask is no link to it")
	require.FileExists(k.t, k.at("ct-nick.service"))
}

func unlinksOthers(k *kit) {
	k.write("ct-s.service", sleeper)
	k.refer("ct-s.service")
	k.link(k.at("ct-s.service"), "ct-nick.service")
	k.reload()
	require.Equal(k.t, []string{k.at("ct-nick.service"), k.at("multi-user.target.wants/ct-s.service")}, k.disable("ct-s.service").Removed)
}
