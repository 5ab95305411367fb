package cases

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

const wants = etc + "/multi-user.target.wants/"

// F013: the [Install] section of an enabled unit changes, and an exit status says
// enabled before and after.
// stead: computes all links that the new section asks for and holds them against
// the disk; those of the old one go before the new file comes.
func TestF013LinksFollowAnInstallSectionThatChanges(t *testing.T) {
	d := sit(t)
	const unit = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy="
	d.apply(d.service("", "enabled: true\n", unit+"multi-user.target f013-a.target\n"))
	d.converged()
	require.Equal(t, etc+"/f013.service", d.link(wants+"f013.service"))
	require.Equal(t, etc+"/f013.service", d.link(etc+"/f013-a.target.wants/f013.service"))

	d.apply(d.service("", "enabled: true\n", unit+"f013-b.target\n"))
	d.converged()
	require.Equal(t, etc+"/f013.service", d.link(etc+"/f013-b.target.wants/f013.service"))
	require.Empty(t, d.link(wants+"f013.service"))
	require.Empty(t, d.link(etc+"/f013-a.target.wants/f013.service"))

	// A link of two that somebody removed comes back: enabled alone says nothing.
	d.apply(d.service("", "enabled: true\n", unit+"multi-user.target f013-a.target\n"))
	d.converged()
	d.run("rm", wants+"f013.service")
	d.until("the link is back", func() bool { return d.link(wants+"f013.service") == etc+"/f013.service" })
	d.withdraw()
	require.Empty(t, d.link(wants+"f013.service"))
}

// F002: the process of a simple service dies right after a start that went well.
// stead: looks again after the unit settled, and reports failed, with systemd's
// result, the exit status and the last lines of the log.
func TestF002ADeathAfterTheStartIsReported(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\n", "[Service]\nExecStart=/bin/sh -c 'echo the last words; exit 7'\n"),
		d.service("file", "ensure: running\n", "[Service]\nExecStart=/nonexistent/f002\n"),
		d.service("user", "ensure: running\n", "[Service]\nUser=f002-nobody\nExecStart=/bin/sleep 1000\n"))
	d.says("f002", report.Failed, report.Exited, "status 7")
	d.quotes("f002", "the last words")
	d.says("f002-file", report.Failed, report.Exited)
	d.says("f002-user", report.Failed, report.Exited)
}
