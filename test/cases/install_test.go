package cases

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/seats"
)

const (
	wants = etc + "/multi-user.target.wants/"
	// sleeper is a service that runs for long.
	sleeper = "[Service]\nExecStart=/bin/sleep 100000\n"
	// wanted is one that can be enabled.
	wanted = sleeper + "[Install]\nWantedBy=multi-user.target\n"
)

// F005: the [Install] section has an Alias= alone, and enable is a change each time.
// stead: computes the links of the real unit and looks for them on the disk; the link
// of the alias is there, so there is nothing to do.
func TestF005AnAliasAloneIsEnabledOnce(t *testing.T) {
	d := sit(t)
	s := d.service("", "enabled: true\n", sleeper+"[Install]\nAlias=f005-nick.service\n")
	d.apply(s)
	d.converged()
	require.Equal(t, etc+"/f005.service", d.link(etc+"/f005-nick.service"))
	require.Len(t, steps(d.report("f005"), "link", "f005-nick.service"), 1)
	require.Equal(t, "enabled", d.status("f005-nick.service").Enablement)
	d.unchanged(s)
}

// F006: the operator names an alias in place of the unit.
// stead: asks systemd whose name it is, acts on that unit, and says which it is; new
// content and masks want the unit's own name.
func TestF006AnAliasStandsForItsUnit(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f006-real.service": sleeper + "[Install]\nWantedBy=multi-user.target\nAlias=f006.service\n"})
	d.apply(d.service("", "ensure: running\n", ""))
	d.says("f006", report.Failed, report.Missing, "no unit f006.service")
	d.run("ln", "-s", etc+"/f006-real.service", etc+"/f006.service")
	d.run("systemctl", "daemon-reload")
	d.apply(d.service("", "ensure: running\nenabled: true\n", ""))
	d.converged()
	require.Equal(t, "f006-real.service", string(d.report("f006").State.ID))
	require.Equal(t, "active", d.prop("f006-real.service", "ActiveState"))
	require.Equal(t, etc+"/f006-real.service", d.link(wants+"f006-real.service"))
	st := d.status("f006.service")
	require.Equal(t, "f006-real.service", st.ID)
	require.Equal(t, "f006", st.DeclaredBy.Name)
	d.apply(d.service("", "ensure: running\n", wanted))
	r := d.says("f006", report.Refused, report.IsAlias, "alias of f006-real.service")
	require.Equal(t, "unit: f006-real.service", r.Hint)
	require.Equal(t, "active", d.prop("f006-real.service", "ActiveState"))
}

// F008: a unit without [Install] is declared enabled, or not enabled.
// stead: refuses enabled: true with the reason and applies ensure all the same;
// enabled: false is so already. Neither is ever a change.
func TestF008AStaticUnitCannotBeEnabled(t *testing.T) {
	d := sit(t)
	on, off := d.service("on", "ensure: running\nenabled: true\n", sleeper), d.service("off", "enabled: false\n", sleeper)
	d.apply(on, off)
	d.says("f008-on", report.Refused, report.NoInstall, "enabled: true on f008-on.service: it is static", "nothing to enable")
	require.Equal(t, "active", d.prop("f008-on.service", "ActiveState"))
	d.converged("f008-off")
	require.Equal(t, "static", d.report("f008-off").State.Enabled)
	before := d.report("f008-on").Steps
	d.unchanged(off)
	on.fields += "timeout: 3m\n"
	d.apply(on)
	d.says("f008-on", report.Refused, report.NoInstall)
	require.Equal(t, before, d.report("f008-on").Steps)
}

// F012: a unit of which only the partner in Also= can be enabled reads indirect, before
// and after.
// stead: computes the links of the partner too, and compares those; nothing is read off
// the word or the exit status.
func TestF012IndirectIsNoAnswer(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f012.socket": "[Socket]\nListenStream=/run/f012.sock\n[Install]\nWantedBy=sockets.target\n"})
	s := d.service("", "enabled: true\n", sleeper+"[Install]\nAlso=f012.socket\n")
	d.apply(s)
	d.converged()
	link := etc + "/sockets.target.wants/f012.socket"
	require.Equal(t, etc+"/f012.socket", d.link(link))
	d.unchanged(s)
	d.run("rm", link)
	d.until("the partner's link is back", func() bool { return d.link(link) != "" })
	s.fields = "enabled: false\n"
	d.apply(s)
	d.converged()
	require.Empty(t, d.link(link))
	d.unchanged(s)
}

// F013: the [Install] section of an enabled unit changes, and systemctl says enabled
// before and after.
// stead: computes all links that the new section asks for and holds them against the
// disk; those of the old one go before the new file comes.
func TestF013LinksFollowAnInstallSectionThatChanges(t *testing.T) {
	d := sit(t)
	const unit = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy="
	d.apply(d.service("", "enabled: true\n", unit+"multi-user.target f013-a.target\n"))
	d.converged()
	require.Equal(t, etc+"/f013.service", d.link(wants+"f013.service"))
	require.Equal(t, etc+"/f013.service", d.link(etc+"/f013-a.target.wants/f013.service"))
	// With one of two links it is still called enabled.
	d.run("rm", wants+"f013.service")
	d.until("the link is back", func() bool { return d.link(wants+"f013.service") == etc+"/f013.service" })

	d.apply(d.service("", "enabled: true\n", unit+"f013-b.target\n"))
	d.converged()
	require.Equal(t, etc+"/f013.service", d.link(etc+"/f013-b.target.wants/f013.service"))
	require.Empty(t, d.link(wants+"f013.service"))
	require.Empty(t, d.link(etc+"/f013-a.target.wants/f013.service"))
}

// F018: a unit that a generator made is declared enabled.
// stead: refuses enabled: true, saying that it is generated and that its enablement
// lives in what made it; ensure is applied all the same.
func TestF018AGeneratedUnitIsEnabledByItsSource(t *testing.T) {
	d := sit(t)
	const generator = "/etc/systemd/system-generators/f018"
	require.NoError(t, d.node.WriteFile(generator, []byte("#!/bin/sh\nprintf '"+strings.ReplaceAll(wanted, "\n", `\n`)+"' > \"$1/f018.service\"\n"), 0o755))
	t.Cleanup(func() { require.NoError(t, d.node.Remove(generator)) })
	d.run("systemctl", "daemon-reload")
	d.apply(d.service("", "ensure: running\nenabled: true\n", ""))
	d.says("f018", report.Refused, report.NoInstall, "enabled: true on f018.service: it is generated", "what made it")
	require.Equal(t, "active", d.prop("f018.service", "ActiveState"))
	require.Empty(t, d.link(wants+"f018.service"))
}

// F020: an instance of a template is handled as the template.
// stead: takes the file from the template and acts on the instance; a bare template may
// be declared with content and enablement, and never with activity.
func TestF020AnInstanceIsNotItsTemplate(t *testing.T) {
	d := sit(t)
	text := d.refused(d.service("", "unit: f020@.service\nensure: running\n", wanted))
	require.Contains(t, text, `"f020@.service" is a bare template`)
	require.Contains(t, text, "f020@one.service")
	d.apply(d.service("", "unit: f020@.service\n", wanted),
		d.service("one", "unit: f020@one.service\nensure: running\nenabled: true\n", ""))
	d.converged()
	require.Equal(t, "active", d.prop("f020@one.service", "ActiveState"))
	require.Equal(t, etc+"/f020@.service", d.link(wants+"f020@one.service"))
	require.Equal(t, etc+"/f020@.service", d.prop("f020@one.service", "FragmentPath"))
	out := d.stead("", "start", "f020@", "-n", hostname)
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "it is a template, and only its instances can be started")
}

// F056: an instance that was enabled and never started is in no list.
// stead: asks for the state of the name that was asked for, not in a list.
func TestF056AnInstanceThatNeverRanHasAState(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f056@.service": wanted})
	t.Cleanup(func() { require.NoError(t, d.node.Remove(wants+"f056@one.service")) })
	made := answer[seats.EnableReply](d, "enable", "f056@one")
	require.Len(t, made.Made, 1)
	st := d.status("f056@one.service")
	require.Equal(t, "loaded inactive enabled", st.Load+" "+st.Active+" "+st.Enablement)
	d.apply(d.service("", "unit: f056@two.service\nenabled: true\n", ""))
	d.converged()
	listed := answer[seats.UnitsReply](d, "units", "f056@*", "-a", "--system").Units
	at := slices.IndexFunc(listed, func(u seats.UnitLine) bool { return u.Name == "f056@two.service" })
	require.GreaterOrEqual(t, at, 0, "what is declared is listed, also where systemd does not list it")
	require.Equal(t, "inactive enabled f056", listed[at].Active+" "+listed[at].Enablement+" "+listed[at].DeclaredBy.Name)
}
