package account

import (
	"cmp"
	"fmt"
	"path"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// Linger is a node's setting of whether its account lingers.
type Linger string

// The settings.
const (
	Auto Linger = "auto" // where a user unit must run; undone when none does
	On   Linger = "on"
	Off  Linger = "off"
)

// facts are what a look has found.
type facts struct {
	name   string
	former bool
	linger Linger
	known  *plan.Account // whose units the ledger has, nil for nobody's

	found   *Identity // nil: there is no such login
	lookErr error     // of passwd
	owner   string    // the login that has known's uid now, "" for none
	home    home

	askErr    error
	service   unit.Status // user@UID.service
	unmounted unit.Name   // the mount unit that the home waits for, "" for none

	lingers  bool
	sessions int
	loginErr error // of logind

	conn conn
}

// conn is what became of the last try to connect to the account's manager.
type conn struct {
	tried bool
	err   error
	pid   uint32 // of the manager that was found on the socket
}

func obstacle(o report.Outcome, r report.Reason, hint, format string, args ...any) *report.Obstacle {
	return &report.Obstacle{Outcome: o, Reason: r, Text: fmt.Sprintf(format, args...), Hint: hint}
}

// judgeLogin says what is wrong with the login itself.
func judgeLogin(node string, f facts) *report.Obstacle {
	at := cmp.Or(node, "this node")
	set := fmt.Sprintf("stead node account %s LOGIN", cmp.Or(node, "NODE"))
	switch {
	case f.name == "":
		return obstacle(report.Refused, report.NoAccount, set, "node %q has no operator account: scope user is refused", at)
	case f.name == "root" || f.found != nil && f.found.UID == 0:
		return obstacle(report.Refused, report.AccountRoot, set,
			"the operator account of node %q is root, whose manager is the system's: scope user is refused", at)
	case f.lookErr != nil:
		return obstacle(report.Waiting, report.AccountUnknown, "", "%s", f.lookErr)
	case f.found == nil && f.known != nil && f.known.Name == f.name && f.owner != "":
		return obstacle(report.Refused, report.UIDReused, "set the node's account anew: "+set,
			"login %q is gone, and its uid %d is that of %q now: nothing of that login's is touched", f.name, f.known.UID, f.owner)
	case f.found == nil:
		return obstacle(report.Refused, report.AccountUnknown, fmt.Sprintf("make the login, or name another one: %s", set),
			"node %q has no login %q", at, f.name)
	case f.found.Home == "" || !path.IsAbs(f.found.Home):
		return obstacle(report.Refused, report.AccountHomeless, "", "login %q has no home folder, but %q", f.name, f.found.Home)
	case f.changed():
		return obstacle(report.Waiting, report.AccountChanged, "",
			"what was written for account %q (uid %d, %s) is given back first", f.known.Name, f.known.UID, f.known.Home)
	}
	return nil
}

// changed reports whether the ledger has units of another account than the one
// that is looked after. The same login with the same home under another uid is the
// same one.
func (f facts) changed() bool {
	return f.known != nil && (f.known.Name != f.name || f.found != nil && f.known.Home != f.found.Home)
}

// judgeHome says what is wrong with the home folder.
func judgeHome(f facts) *report.Obstacle {
	dir, h := f.found.Home, f.home
	mounted := func(format string, args ...any) *report.Obstacle {
		return obstacle(report.Waiting, report.HomeUnmounted, "", format, args...)
	}
	switch {
	case f.unmounted != "":
		return obstacle(report.Waiting, report.HomeUnmounted, "systemctl status "+string(f.unmounted), "home %s is not mounted: %s is %s", dir, f.unmounted, "not active")
	case h.silent:
		return mounted("home %s: its file system does not answer", dir)
	case h.missing:
		return obstacle(report.Refused, report.AccountHomeless, "", "login %q has no home: there is no folder %s", f.name, dir)
	case h.err != nil:
		return mounted("home %s: %s", dir, h.err)
	case !h.folder:
		return obstacle(report.Refused, report.AccountHomeless, "", "login %q has no home: %s is no folder", f.name, dir)
	case h.owner != f.found.UID:
		return mounted("home %s belongs to uid %d and not to %q: it is not mounted, or another's", dir, h.owner, f.name)
	}
	return nil
}

// judgeManager says what is wrong with the account's manager.
func judgeManager(node string, f facts) *report.Obstacle {
	s, name := f.service, serviceOf(f.found.UID)
	look := fmt.Sprintf("systemctl status %s", name)
	switch {
	case f.askErr != nil:
		return obstacle(report.Waiting, report.Unreachable, "", "%s is not known of: %s", name, f.askErr)
	case s.Active.Up() && s.MainPID != 0:
		return judgeConn(f, look)
	case s.Load != unit.Loaded:
		return obstacle(report.Failed, report.ManagerDown, look, "%s is %s: %s", name, s.Load, cmp.Or(s.Trouble.LoadError, "it cannot be loaded"))
	case f.linger == Off && !f.lingers && f.sessions == 0 && f.loginErr == nil && s.Active.Down():
		return obstacle(report.Waiting, report.LingerOff, fmt.Sprintf("log in as %s, or: stead node linger %s auto", f.name, cmp.Or(node, "NODE")),
			"nobody is logged in as %q, and lingering is off: its manager does not run", f.name)
	case s.Active == unit.FailedState:
		return obstacle(report.Failed, report.ManagerDown, fmt.Sprintf("journalctl -u %s", name), "%s failed: %s", name, ending(s.Trouble))
	case f.loginErr != nil && s.Active.Down():
		return obstacle(report.Failed, report.ManagerDown, look, "%s does not run, and %q cannot be let linger: %s", name, f.name, f.loginErr)
	case s.Active == unit.Inactive && s.Job.ID == 0:
		return obstacle(report.Waiting, report.ManagerDown, look, "%s does not run", name)
	}
	return obstacle(report.Waiting, report.ManagerStarting, look, "%s is %s", name, s.Active)
}

func ending(t unit.Trouble) string {
	if t.ExitStatus != 0 {
		return fmt.Sprintf("%s, status %d", cmp.Or(t.Result, "unknown"), t.ExitStatus)
	}
	return cmp.Or(t.Result, "unknown")
}

// judgeConn says what is wrong with the way to a manager that runs.
func judgeConn(f facts, look string) *report.Obstacle {
	name := serviceOf(f.found.UID)
	switch err := f.conn.err; {
	case err == nil && f.conn.tried && f.conn.pid == f.service.MainPID:
		return nil
	case err == nil, fault.Is(err, fault.NotFound), fault.Is(err, fault.Unavailable), fault.Is(err, fault.Canceled):
		return obstacle(report.Waiting, report.ManagerStarting, look, "%s runs, and does not listen yet", name)
	case fault.Is(err, fault.Timeout):
		return obstacle(report.Failed, report.ManagerHung, look, "the manager of %q does not answer: %s", f.name, err)
	case fault.Is(err, fault.Denied):
		return obstacle(report.Failed, report.Impostor, look, "another than the manager of %q stands on its socket: %s", f.name, err)
	default:
		return obstacle(report.Failed, report.ManagerRefused, look, "the manager of %q turns the host away: %s", f.name, err)
	}
}

// gone says why nothing of a former account can be given back any more, "" when it
// can.
func gone(f facts, o *report.Obstacle) string {
	if !f.former || o == nil {
		return ""
	}
	switch o.Reason {
	case report.AccountUnknown:
		if f.lookErr != nil {
			return ""
		}
		return o.Text
	case report.UIDReused, report.AccountHomeless, report.AccountRoot:
		return o.Text
	}
	return ""
}

// needed reports whether the account's manager is to run without a session.
func (f facts) needed(wanted bool) bool { return f.linger == On || f.linger == Auto && wanted }

func serviceOf(uid int) unit.Name { return unit.ManagerOf(uint32(uid)) } //nolint:gosec // it was one in passwd
