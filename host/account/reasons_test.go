package account

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// reason is something that stands between the host and the account's manager.
type reason struct {
	is      report.Reason
	outcome report.Outcome
	says    string
	comes   func(w *world) // to a world that was fine
	goes    func(w *world)
}

// standing is one that the account begins with.
type standing struct {
	reason
	options Options
}

const opalLine = "opal:x:1001:1001::/srv/opal:/bin/sh"

var healing = map[string]reason{
	"account unknown": {report.AccountUnknown, report.Refused, `node "ws1" has no login "opal"`,
		func(w *world) { w.logins("ruby:x:1002:1002::/srv/ruby:/bin/sh") },
		func(w *world) { w.logins(opalLine) }},
	"passwd cannot be read": {report.AccountUnknown, report.Waiting, "no such file",
		func(w *world) { require.NoError(w.t, os.Remove(w.passwd+"/passwd")); hand(w.files) },
		func(w *world) { w.logins(opalLine) }},
	"account is root": {report.AccountRoot, report.Refused, "is root",
		func(w *world) { w.logins("opal:x:0:0::/root:/bin/sh") },
		func(w *world) { w.logins(opalLine) }},
	"account without a home": {report.AccountHomeless, report.Refused, "no home folder",
		func(w *world) { w.logins("opal:x:1001:1001:::/bin/sh") },
		func(w *world) { w.logins(opalLine) }},
	"account whose home is nowhere": {report.AccountHomeless, report.Refused, "there is no folder /srv/opal",
		func(w *world) { w.change(func() { delete(w.homes, "/srv/opal") }) },
		func(w *world) { w.change(func() { w.homes["/srv/opal"] = home{folder: true, owner: 1001} }) }},
	"account whose home is a file": {report.AccountHomeless, report.Refused, "no folder",
		func(w *world) { w.change(func() { w.homes["/srv/opal"] = home{owner: 1001} }) },
		func(w *world) { w.change(func() { w.homes["/srv/opal"] = home{folder: true, owner: 1001} }) }},
	"F035 home not mounted": {report.HomeUnmounted, report.Waiting, "srv.mount",
		func(w *world) { w.change(func() { w.mount("srv.mount", unit.Inactive) }) },
		func(w *world) { w.change(func() { w.mount("srv.mount", unit.Active) }) }},
	"F035 home is another's, as the folder below a mount": {report.HomeUnmounted, report.Waiting, "belongs to uid 0",
		func(w *world) { w.change(func() { w.homes["/srv/opal"] = home{folder: true} }) },
		func(w *world) { w.change(func() { w.homes["/srv/opal"] = home{folder: true, owner: 1001} }) }},
	"home does not answer": {report.HomeUnmounted, report.Waiting, "does not answer",
		func(w *world) { w.change(func() { w.hanging = make(chan struct{}) }) },
		func(w *world) { w.change(func() { close(w.hanging); w.hanging = nil }) }},
	"PID 1 does not answer": {report.Unreachable, report.Waiting, "gone",
		func(w *world) { w.change(func() { w.silent = errors.New("gone") }) },
		func(w *world) { w.change(func() { w.silent = nil }) }},
	"manager does not come up": {report.ManagerDown, report.Failed, "exit-code, status 1",
		func(w *world) { w.change(func() { w.broken = true; w.ends() }) },
		func(w *world) { w.change(func() { w.broken = false }) }},
	"manager is masked": {report.ManagerDown, report.Failed, "masked",
		func(w *world) {
			w.change(func() { w.units[opals] = unit.Status{Load: unit.Masked, Active: unit.Inactive} })
		},
		func(w *world) { w.change(w.ends) }},
	"manager is on its way up": {report.ManagerStarting, report.Waiting, "activating",
		func(w *world) { w.change(func() { w.slow = true; w.ends() }) },
		func(w *world) { w.change(func() { w.slow = false; w.come() }) }},
	"manager has no socket yet": {report.ManagerStarting, report.Waiting, "does not listen yet",
		func(w *world) {
			w.change(func() { w.socket = fault.New(fault.NotFound, "", "", errors.New("none")); w.come() })
		},
		func(w *world) { w.change(func() { w.socket = nil }) }},
	"F106 manager hangs": {report.ManagerHung, report.Failed, "does not answer",
		func(w *world) {
			w.change(func() { w.socket = fault.New(fault.Timeout, "", "", errors.New("silent")); w.come() })
		},
		func(w *world) { w.change(func() { w.socket = nil }) }},
	"manager refuses": {report.ManagerRefused, report.Failed, "turns the host away",
		func(w *world) {
			w.change(func() { w.socket = fault.New(fault.Refused, "", "", errors.New("refused")); w.come() })
		},
		func(w *world) { w.change(func() { w.socket = nil }) }},
	"another listens": {report.Impostor, report.Failed, "process 666 of uid 1001 listens",
		func(w *world) { w.change(func() { w.peer = 666; w.come() }) },
		func(w *world) { w.change(func() { w.peer = 0 }) }},
	"another than a manager stands there": {report.Impostor, report.Failed, "it is no socket",
		func(w *world) {
			w.change(func() { w.socket = fault.New(fault.Denied, "", "", errors.New("it is no socket")); w.come() })
		},
		func(w *world) { w.change(func() { w.socket = nil }) }},
	"F004 lingering off": {report.LingerOff, report.Waiting, "nobody is logged in",
		func(w *world) { w.k.SetLinger(Off); w.change(func() { w.linger, w.session = false, 0; w.ends() }) },
		func(w *world) { w.change(func() { w.session = 1; w.come() }) }},
	"uid reused": {report.UIDReused, report.Refused, `is that of "ruby" now`,
		func(w *world) { w.logins("ruby:x:1001:1001::/srv/ruby:/bin/sh") },
		func(w *world) { w.logins(opalLine) }},
	"ledger is full": {report.DiskError, report.Waiting, "full",
		func(w *world) {
			w.change(func() { w.full = errors.New("full"); w.homes["/srv/other"] = home{folder: true, owner: 1002} })
			w.logins("opal:x:1002:1002::/srv/opal:/bin/sh")
			w.change(func() { w.homes["/srv/opal"] = home{folder: true, owner: 1002} })
		},
		func(w *world) {
			w.change(func() { w.full = nil; w.homes["/srv/opal"] = home{folder: true, owner: 1001} })
			w.logins(opalLine)
		}},
	"account has another home": {report.AccountChanged, report.Waiting, "/srv/opal",
		func(w *world) { w.logins("opal:x:1001:1001::/srv/other:/bin/sh") },
		func(w *world) { w.logins(opalLine) }},
}

// TestEachReasonComesAndGoes is the list of what may stand between the host and the
// account's manager: each has a name of its own, and heals when its cause goes.
func TestEachReasonComesAndGoes(t *testing.T) {
	for name, r := range healing {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.keep(Options{Name: "opal", Node: "ws1"}).Wanted(true)
				w.ready()
				for range 2 {
					r.comes(w)
					o := w.barred(r.is)
					require.Equal(t, r.outcome, o.Outcome)
					require.Contains(t, o.Text, r.says)
					r.goes(w)
					soon()
					soon()
					w.ready()
				}
			})
		})
	}
}

// TestReasonsOfASetting are those that only another setting ends.
func TestReasonsOfASetting(t *testing.T) {
	for name, s := range map[string]standing{
		"no account": {reason{is: report.NoAccount, outcome: report.Refused, says: `node "ws1" has no operator account: scope user is refused`},
			Options{Node: "ws1"}},
		"root": {reason{is: report.AccountRoot, outcome: report.Refused, says: `the operator account of node "ws1" is root`},
			Options{Node: "ws1", Name: "root"}},
		"account changed": {reason{is: report.AccountChanged, outcome: report.Waiting, says: `account "ruby" (uid 1002, /srv/ruby) is given back first`},
			Options{Name: "opal", Known: &plan.Account{Name: "ruby", UID: 1002, Home: "/srv/ruby"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := w.keep(s.options)
				k.Wanted(true)
				o := w.barred(s.is)
				require.Equal(t, s.outcome, o.Outcome)
				require.Contains(t, o.Text, s.says)
				require.Empty(t, w.turned, "nothing was touched")
				require.Zero(t, w.starts)
				require.Equal(t, s.options.Known, k.State().Before)
			})
		})
	}
}

func TestTheHintNamesTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.keep(Options{Node: "web1"})
		require.Equal(t, "stead node account web1 LOGIN", w.barred(report.NoAccount).Hint)
	})
}

// F031: a manager that calls itself degraded is active, and nothing else is asked.
// F069: what is wrong with one account is said of it alone; the one beside it goes on.
func TestF069OneAccountsTroubleIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t), newWorld(t)
		w.keep(Options{Name: "opal"}).Wanted(true)
		other.keep(Options{Name: "opal"}).Wanted(true)
		w.change(func() { w.silent = errors.New("gone") })
		w.barred(report.Unreachable)
		other.ready()
	})
}

// A look at an account is bounded by the clock, also where PID 1, logind and the
// home's file system together do not answer.
func TestALookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hanging = make(chan struct{})
		defer close(w.hanging)
		k := w.keep(Options{Name: "opal"})
		at := time.Now()
		k.Wanted(true)
		w.barred(report.HomeUnmounted)
		require.Less(t, time.Since(at), 2*patience)
		k.SetLinger(Off)
		w.barred(report.HomeUnmounted)
	})
}
