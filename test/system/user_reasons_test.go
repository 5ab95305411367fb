package system

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// household is a mesh of one node, with what is declared for it: keeper.service of
// the node's account, and a system service for each reason.
type household struct {
	*rig
	*login // opal, which is the node's account at the beginning and the end of each reason
}

// cause makes a reason true, and takes it away.
type cause struct {
	outcome     report.Outcome // "" where it is no obstacle
	reason      report.Reason
	words       string
	comes, goes func(h household)
}

const userDropIn = etc + "/user@.service.d/zz.conf"

// manager rewrites how managers of accounts are started.
func (h household) manager(lines string) {
	h.Helper()
	if lines == "" {
		h.do("rm", userDropIn)
	} else {
		require.NoError(h, h.WriteFile(userDropIn, []byte("[Service]\n"+lines), 0o644))
	}
	h.do("systemctl", "daemon-reload")
}

func (h household) do(args ...string) { h.Helper(); h.login.Run(h.T, args...) }

// pid is the id, outside the node, of the manager of opal.
func (h household) pid() int { return h.pidOf(h.login.manager()) }

// socket is where the manager of opal listens.
func (h household) socket() string { return fmt.Sprintf("/run/user/%d/systemd/private", h.uid) }

// usurp has a program of opal's own, below its manager, stand for so many seconds on
// the socket of that, which is kept beside it, and begins the host anew.
func (h household) usurp(seconds string) {
	h.Helper()
	h.as("systemd-run", "--user", "--quiet", "--collect", "--unit=usurper", "sh", "-c",
		"mv $1 $1.real; timeout $2 systemd-socket-activate --listen=$1 sleep infinity; touch $1.left", "sh", h.socket(), seconds)
	h.exists(h.socket())
	if seconds != "infinity" {
		h.exists(h.socket() + ".left")
	}
	h.do("systemctl", "restart", service)
}

func (h household) exists(socket string) {
	h.Helper()
	h.ctl.until(socket+" is there", func() bool {
		out, err := h.Exec(h.Context(), "sh", "-c", "test -e $1.real -a -e $2", "sh", h.socket(), socket)
		return err == nil && out.Code == 0
	})
}

// restore puts the manager's own socket back.
func (h household) restore() { h.Helper(); h.do("mv", h.socket()+".real", h.socket()) }

var nothing = func(household) {}

// obstacles are what can stand between the host and an account's manager: each comes
// to a node on which all is converged, and when its cause goes all is so again by
// itself.
var obstacles = []struct {
	name string
	cause
}{
	{"F001 there is no account on the node", cause{report.Refused, report.NoAccount, `node "ws1" has no operator account: scope user is refused`,
		func(h household) { h.done("node", "account", "ws1", "-") },
		func(h household) { h.done("node", "account", "ws1", "opal") }}},
	{"F001 the account is unknown", cause{report.Refused, report.AccountUnknown, `node "ws1" has no login "pearl"`,
		func(h household) { h.done("node", "account", "ws1", "pearl") },
		func(h household) { require.NotEqual(h, h.uid, h.ctl.login("pearl").uid) }}},
	{"the account is another one, and the one before is given back first", cause{report.Waiting, report.AccountChanged, `what was written for account "pearl"`,
		func(h household) { h.done("node", "account", "ws1", "opal") },
		nothing}},
	{"the account is root", cause{report.Refused, report.AccountRoot, "is root, whose manager is the system's",
		func(h household) {
			h.do("useradd", "--non-unique", "--uid=0", "--create-home", "--home-dir=/srv/toor", "toor")
			h.done("node", "account", "ws1", "toor")
		},
		func(h household) { h.done("node", "account", "ws1", "opal") }}},
	{"the account has no home", cause{report.Refused, report.AccountHomeless, "there is no folder /srv/garnet",
		func(h household) {
			h.do("useradd", "--no-create-home", "--home-dir=/srv/garnet", "garnet")
			h.done("node", "account", "ws1", "garnet")
		},
		func(h household) {
			h.do("cp", "-a", "/etc/skel", "/srv/garnet")
			h.do("chown", "-R", "garnet:garnet", "/srv/garnet")
			h.ctl.outcome("keeper", report.Converged, "")
			h.done("node", "account", "ws1", "opal")
		}}},
	{"F035 the home is not mounted", cause{report.Waiting, report.HomeUnmounted, "srv-opal.mount is not active",
		func(h household) {
			require.NoError(h, h.WriteFile(etc+"/srv-opal.mount", fmt.Appendf(nil,
				"[Mount]\nWhat=tmpfs\nType=tmpfs\nWhere=/srv/opal\nOptions=uid=%d,gid=%[1]d,mode=0700\n", h.uid), 0o644))
			h.do("systemctl", "add-wants", "multi-user.target", "srv-opal.mount")
		},
		func(h household) { h.do("systemctl", "start", "srv-opal.mount") }}},
	{"F004 nobody is logged in, and lingering is off", cause{report.Waiting, report.LingerOff, "lingering is off",
		func(h household) {
			h.done("node", "linger", "ws1", "off")
			h.do("loginctl", "disable-linger", "opal")
		},
		func(h household) { h.done("node", "linger", "ws1", "auto") }}},
	{"the manager does not come up", cause{report.Failed, report.ManagerDown, "exit-code, status 1",
		func(h household) {
			h.manager("ExecStart=\nExecStart=/bin/false\n")
			h.do("systemctl", "stop", h.login.manager())
		},
		func(h household) { h.manager("") }}},
	{"the manager is not ready", cause{report.Waiting, report.ManagerStarting, "is activating",
		func(h household) {
			h.manager("ExecStartPre=/bin/sleep 1.5\n")
			h.do("systemctl", "stop", h.login.manager())
		},
		func(h household) { h.manager("") }}},
	// F097: user@UID.service is stopped by hand, and login manager and tool take the account
	// for lingering.
	// stead: asks for the manager itself, starts it, and the units of the account with it.
	{"F097 the manager is stopped by hand", cause{"", "", "",
		func(h household) { h.do("systemctl", "stop", h.login.manager()) }, nothing}},
	{"the manager is restarted", cause{"", "", "",
		func(h household) { h.do("systemctl", "restart", h.login.manager()) }, nothing}},
	{"the manager is killed", cause{"", "", "",
		func(h household) { require.NoError(h, shotAt(h.pid())) }, nothing}},
	// F031: a user manager is degraded by an unrelated unit, and the tool skips the account.
	// stead: degraded is running: nothing is held up by it, and it is no reason for anything.
	{"F031 the manager is degraded", cause{"", "", "",
		func(h household) {
			h.as("sh", "-c", "systemd-run --user --wait false || test $(systemctl --user is-system-running) = degraded")
			h.systemctl("stop", "keeper.service")
		}, nothing}},
	{"another than the manager is on its socket", cause{report.Failed, report.Impostor, "another than the manager",
		func(h household) { h.usurp("infinity") },
		func(h household) { h.restore(); h.systemctl("stop", "usurper.service") }}},
	{"the connection is refused", cause{report.Failed, report.ManagerRefused, "connection refused",
		func(h household) { h.as("rm", "-f", h.socket()+".left"); h.usurp("0.5") },
		household.restore}},
	// F106: a user manager that hangs holds up the tool.
	// stead: each call has a deadline; the account's units are reported failed, since the
	// manager does not answer, and the system scope goes on.
	{"F106 the manager hangs", cause{report.Failed, report.ManagerHung, "does not answer",
		func(h household) {
			require.NoError(h, stop(h.pid()))
			h.do("systemctl", "restart", service)
		},
		func(h household) { require.NoError(h, wake(h.pid())) }}},
	{"the uid is another login's now", cause{report.Refused, report.UIDReused, `is that of "lapo" now`,
		func(h household) { h.rename("opal", "lapo") },
		func(h household) { h.rename("lapo", "opal") }}},
}

// kept is whether the host says that all is right, and a manager of the node's
// account has the process of keeper.service.
func (h household) kept() bool {
	r := h.ctl.report("keeper")
	if r == nil || r.Outcome != report.Converged {
		return false
	}
	in := strings.TrimSpace(h.read(fmt.Sprintf("/proc/%d/cgroup", r.State.MainPID)))
	return strings.Contains(in, "/user@") && strings.HasSuffix(in, ".service/app.slice/keeper.service")
}

// rename gives a login another name, and the rest of it to that.
func (h household) rename(from, to string) {
	h.Helper()
	h.do("sed", "-i", "s/^"+from+":/"+to+":/", "/etc/passwd")
}

// TestEachReasonComesAndGoes goes through the list. The system scope is kept the
// while: one of its units is stopped, and started again at once.
func TestEachReasonComesAndGoes(t *testing.T) {
	h := newHousehold(t)
	for i, o := range obstacles {
		system := fmt.Sprintf("s%d.service", i)
		t.Run(o.name, func(t *testing.T) {
			// A failure of a step ends this reason alone.
			h.rig.T, h.ctl.t = t, t
			begun := time.Now()
			o.comes(h)
			if o.outcome != "" {
				r := h.ctl.says("keeper", o.outcome, o.reason, o.words)
				t.Logf("%s %s after %s: %s; hint: %s", r.Outcome, r.Reason, time.Since(begun).Round(time.Millisecond), r.Text, r.Hint)
			}
			stopped := time.Now()
			h.do("systemctl", "stop", system)
			h.ctl.until("the system scope is kept", func() bool { return h.prop(system, "ActiveState") == "active" })
			t.Logf("the system scope put a unit right after %s", time.Since(stopped).Round(time.Millisecond))
			require.Less(t, time.Since(stopped), 5*time.Second)
			gone := time.Now()
			o.goes(h)
			h.ctl.until("it heals", h.kept)
			t.Logf("healed after %s", time.Since(gone).Round(time.Millisecond))
		})
	}
	h.rig.T, h.ctl.t = t, t
	h.refused(1, []string{"node", "account", "ws1", "root"}, "ws1.account: root is the manager of the system itself")
}

func newHousehold(t *testing.T) household {
	t.Helper()
	t.Parallel()
	reserve(t, 1)
	m := bring(t, "ws1")
	m.Run(t, "stead", "up")
	h := household{&rig{T: t, ctl: m, nodes: map[string]*machine{"ws1": m}}, m.login("opal")}
	h.do("mkdir", declared, etc+"/user@.service.d")
	h.done("node", "account", "ws1", "opal")
	docs := []string{text{"keeper", "all: true\nscope: user\nensure: running\nenabled: true\n",
		strings.Replace(daemon(0), "[Install]", "ExecStop=/bin/sleep 1\n[Install]", 1)}.String()}
	for i := range obstacles {
		docs = append(docs, addressed(fmt.Sprintf("s%d", i), "all: true", sleeper(i)))
	}
	h.apply(map[string]string{"all": documents(docs...)})
	return h
}
