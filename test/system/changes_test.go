package system

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestEachChangeOfADeclarationDoesWhatItTakes changes one thing of each of many
// declarations in one apply, and counts what that costs.
func TestEachChangeOfADeclarationDoesWhatItTakes(t *testing.T) {
	const both = "ensure: running\nenabled: true\n"
	once := func(n string) string {
		return "[Service]\nType=oneshot\nEnvironment=N=" + n + "\nExecStart=/bin/sh -c 'echo $N >> /var/once'\n"
	}
	timer := func(when string) string {
		return "[Timer]\nOnCalendar=" + when + "\nUnit=idle.service\n[Install]\nWantedBy=timers.target\n"
	}
	const nice = "dropins: {10-nice.conf: \"[Service]\\nNice=5\\n\"}\n"
	m := running(t, map[string]string{
		"same":     up("same", sleeper(0)),
		"content":  up("content", sleeper(0)),
		"dropin":   up("dropin", sleeper(0)),
		"dropped":  text{"dropped", both + nice, sleeper(0)}.String(),
		"disabled": up("disabled", sleeper(0)),
		"enabled":  text{"enabled", "ensure: running\nenabled: false\n", sleeper(0)}.String(),
		"stopped":  up("stopped", sleeper(0)),
		"started":  text{"started", "ensure: stopped\nenabled: true\n", sleeper(0)}.String(),
		"target":   up("target", sleeper(0)),
		"once":     text{"once", "ensure: running\n", once("1")}.String(),
		"timer":    text{"timer", "unit: timer.timer\n" + both, timer("*-01-01")}.String(),
		"idle":     text{"idle", "ensure: stopped\n", sleeper(0)}.String(),
		"template": text{"template", "unit: t@.service\n", sleeper(0)}.String(),
		"instance": text{"instance", "unit: t@one.service\nensure: running\n", ""}.String(),
	})
	b := m.listen(t, nil)
	m.converged(m.replace(map[string]string{
		"same":     m.files["same"],
		"content":  up("content", sleeper(1)),
		"dropin":   text{"dropin", both + nice, sleeper(0)}.String(),
		"dropped":  up("dropped", sleeper(0)),
		"disabled": text{"disabled", "ensure: running\nenabled: false\n", sleeper(0)}.String(),
		"enabled":  up("enabled", sleeper(0)),
		"stopped":  text{"stopped", "ensure: stopped\nenabled: true\n", sleeper(0)}.String(),
		"started":  up("started", sleeper(0)),
		"target":   up("target", strings.Replace(sleeper(0), "multi-user", "graphical", 1)),
		"once":     text{"once", "ensure: running\n", once("2")}.String(),
		"timer":    text{"timer", "unit: timer.timer\n" + both, timer("*-02-02")}.String(),
		"idle":     m.files["idle"],
		"template": text{"template", "unit: t@.service\n", sleeper(1)}.String(),
		"instance": m.files["instance"],
	}))
	reloads, jobs := b.count()
	require.Equal(t, 1, reloads)
	require.Equal(t, map[string]int{"content.service": 1, "dropin.service": 1, "dropped.service": 1, "stopped.service": 1,
		"started.service": 1, "target.service": 1, "once.service": 1, "t@one.service": 1}, jobs)
	require.Equal(t, "1\n2\n", m.read("/var/once"))
	require.Equal(t, "5", m.prop("dropin.service", "Nice"))
	require.Equal(t, "0", m.prop("dropped.service", "Nice"))
	m.Run(t, "test", "!", "-e", etc+"/dropped.service.d")
	wants := path.Join(etc, "multi-user.target.wants")
	require.Empty(t, m.link(wants+"/disabled.service"))
	require.NotEmpty(t, m.link(wants+"/enabled.service"))
	require.Empty(t, m.link(wants+"/target.service"))
	require.NotEmpty(t, m.link(etc+"/graphical.target.wants/target.service"))
	require.Contains(t, m.prop("timer.timer", "TimersCalendar"), "02-02")
	require.Contains(t, m.read("/proc/"+m.prop("t@one.service", "MainPID")+"/cmdline"), "100001", "an instance runs its template's new text")
}

// TestWhatWasDoneWhileNoHostRanIsUndone changes things that leave no trace in
// times or in what the manager says.
func TestWhatWasDoneWhileNoHostRanIsUndone(t *testing.T) {
	names := []string{"stopped", "edited", "sly", "deleted", "unlinked", "masked"}
	files := map[string]string{}
	for _, name := range names {
		files[name] = up(name, sleeper(0))
	}
	m := running(t, files)
	m.Run(t, "systemctl", "stop", service)
	m.Run(t, "systemctl", "stop", "stopped.service")
	m.Run(t, "sh", "-ec", `cd `+etc+`
		echo '# mine' >> edited.service
		touch -r sly.service /run/time; sed -i s/100000/999999/ sly.service; touch -r /run/time sly.service
		rm deleted.service multi-user.target.wants/unlinked.service
		ln -sf /dev/null masked.service`)
	m.Run(t, "systemctl", "daemon-reload")
	m.Run(t, "systemctl", "restart", "sly.service")
	from := time.Now()
	m.startHost()
	m.converged(from, "stopped", "edited", "sly", "deleted", "unlinked")
	m.outcome("masked", report.Refused, report.IsMasked)
	for _, name := range []string{"stopped", "edited", "sly", "deleted", "unlinked"} {
		require.Equal(t, sleeper(0), m.read(path.Join(etc, name+".service")), name)
		require.Equal(t, path.Join(etc, name+".service"), m.link(path.Join(etc, "multi-user.target.wants", name+".service")))
		require.Contains(t, m.read("/proc/"+m.prop(name+".service", "MainPID")+"/cmdline"), "100000", name)
	}
}
