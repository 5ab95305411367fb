package account

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// F011: the account is ready when its manager answers, and not when lingering was
// turned on.
func TestF011LingeringIsTurnedOnAndTheManagerWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keep(Options{Name: "opal"})
		w.barred(report.ManagerDown)
		require.Empty(t, w.turned, "nothing runs there")
		k.Wanted(true)
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []bool{true}, w.turned)
		require.Equal(t, report.ManagerStarting, k.Obstacle().Reason, "it is not up yet")
		require.Equal(t, &plan.Account{Name: "opal", UID: 1001, Home: "/srv/opal", LingerOurs: true}, w.record)
		w.ready()
		require.Zero(t, w.starts, "logind started it")
		require.Len(t, w.told, 1)
		require.Equal(t, "boot/run1", k.Life())
	})
}

// F097, F114: the manager is looked at, not the flag. Where the account lingers and
// its manager does not run it is started, also when logind starts nothing.
func TestF097F114AManagerThatLingersAndDoesNotRunIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		k := w.keep(Options{Name: "opal"})
		k.Wanted(true)
		w.ready()
		require.Equal(t, 1, w.starts, "at the host's start")
		require.Empty(t, w.turned)
		require.False(t, w.record.LingerOurs)
		w.change(w.ends) // stopped by hand
		w.ready()
		require.Equal(t, 2, w.starts)
		require.Equal(t, "boot/run2", k.Life(), "what was loaded and what ran ended with it")
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deaf = true
		w.keep(Options{Name: "opal"}).Wanted(true)
		w.ready()
		require.Equal(t, []bool{true}, w.turned)
		require.Equal(t, 1, w.starts)
	})
}

func TestAManagerThatFailsIsStartedAgainWithGrowingDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger, w.broken = true, true
		w.keep(Options{Name: "opal"}).Wanted(true)
		time.Sleep(10 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Less(t, w.starts, 20)
		require.Greater(t, w.starts, 8)
	})
}

func TestLingeringIsUndoneWhereNothingIsLostByIt(t *testing.T) {
	mine := unit.Status{Asked: "backup.service", Fragment: "/srv/opal/.config/systemd/user/backup.service"}
	timer := unit.Status{Asked: "backup.timer", Fragment: "/srv/opal/.config/systemd/user/backup.timer"}
	vendor := unit.Status{Asked: "gpg-agent.socket", Fragment: "/usr/lib/systemd/user/gpg-agent.socket"}
	for name, c := range map[string]struct {
		before func(w *world)
		undone bool
		after  func(w *world) // makes it undone
	}{
		"nothing else runs":             {func(*world) {}, true, nil},
		"what every login has runs":     {func(w *world) { w.others = []unit.Status{vendor} }, true, nil},
		"the manager was stopped":       {func(w *world) { w.ends() }, true, nil},
		"somebody turned it off":        {func(w *world) { w.linger = false }, true, nil},
		"somebody is logged in":         {func(w *world) { w.session = 1 }, false, func(w *world) { w.session = 0 }},
		"a unit of the account's runs":  {func(w *world) { w.others = []unit.Status{mine} }, false, func(w *world) { w.others = nil }},
		"a timer of the account's runs": {func(w *world) { w.others = []unit.Status{timer} }, false, func(w *world) { w.others = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := w.keep(Options{Name: "opal"})
				k.Wanted(true)
				w.ready()
				w.mu.Lock()
				c.before(w)
				w.mu.Unlock()
				k.Wanted(false)
				soon()
				if !c.undone {
					require.Equal(t, []bool{true}, w.turned, "it would end what runs there")
					require.True(t, w.record.LingerOurs)
					w.mu.Lock()
					c.after(w)
					w.mu.Unlock()
					time.Sleep(undoTick)
					soon()
				}
				require.False(t, w.linger)
				require.Nil(t, w.record, "nothing of stead's is left there")
			})
		})
	}
}

func TestLingeringThatSomebodyElseTurnedOnStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		k := w.keep(Options{Name: "opal"})
		k.Wanted(true)
		w.ready()
		k.Wanted(false)
		soon()
		require.Empty(t, w.turned)
		require.Nil(t, w.record)
	})
}

func TestTheSettingOfLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keep(Options{Name: "opal", Linger: On})
		w.ready()
		require.Equal(t, []bool{true}, w.turned, "without any unit")
		k.SetLinger(Off)
		soon()
		require.Equal(t, []bool{true, false}, w.turned, "its own doing")
		w.change(func() { w.session = 1; w.come() })
		k.Wanted(true)
		w.ready()
		require.False(t, w.linger, "off never turns it on")
		w.change(func() { w.linger, w.session = true, 0 }) // somebody else did
		k.Wanted(false)
		soon()
		require.True(t, w.linger)
	})
}

func TestAHostThatDiedGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		w.record = &plan.Account{Name: "opal", UID: 1001, Home: "/srv/opal", LingerOurs: true}
		w.keep(Options{Name: "opal", Known: w.record})
		w.change(w.come)
		soon()
		require.Equal(t, []bool{false}, w.turned, "no unit is declared, and it was stead's doing")
		require.Nil(t, w.record)
	})
}

func TestNothingIsReadyBeforeItIsNotedWhoseUnitsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		w.full = errTest
		w.change(w.come)
		w.keep(Options{Name: "opal"}).Wanted(true)
		w.barred(report.DiskError)
		require.Empty(t, w.turned)
		w.change(func() { w.full = nil })
		w.ready()
		require.Equal(t, "opal", w.record.Name)
	})
}

func TestAFormerAccountIsServedUntilNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		w.record = &plan.Account{Name: "opal", UID: 1001, Home: "/srv/opal", LingerOurs: true}
		k := w.keep(Options{Name: "opal", Known: w.record, Former: true, Linger: On})
		k.Wanted(true)
		w.ready()
		require.Equal(t, "/srv/opal", k.State().Identity.Home)
		k.Wanted(false)
		soon()
		require.Nil(t, w.record)
		require.False(t, w.linger, "it is on for the account that there is now")
		require.Empty(t, k.State().Gone)
	})
}

func TestAFormerAccountThatIsGoneIsLeft(t *testing.T) {
	for name, lines := range map[string]string{
		"no such login":        "ruby:x:1002:1002::/srv/ruby:/bin/sh",
		"its uid is another's": "ruby:x:1001:1001::/srv/ruby:/bin/sh",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.logins(lines)
				known := &plan.Account{Name: "opal", UID: 1001, Home: "/srv/opal", LingerOurs: true}
				k := w.keep(Options{Name: "opal", Known: known, Former: true})
				k.Wanted(true)
				soon()
				require.NotEmpty(t, k.State().Gone)
				require.Empty(t, w.turned)
				require.Zero(t, w.starts)
				require.Len(t, w.told, 1)
			})
		})
	}
}

func TestTheNewAccountWaitsForTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keep(Options{Name: "opal", Known: &plan.Account{Name: "ruby", UID: 1002, Home: "/srv/ruby"}})
		k.Wanted(true)
		w.barred(report.AccountChanged)
		require.NotNil(t, k.State().Before)
		f, _ := k.begin() // as a look that is under way
		k.Freed()
		require.Nil(t, k.State().Before, "it would be given back once more")
		k.publish(f, &report.Obstacle{Outcome: report.Waiting, Reason: report.AccountChanged})
		require.Nil(t, k.State().Before)
		w.ready()
		require.Equal(t, "opal", w.record.Name)
	})
}

// A login that was given another uid and kept its name and home is the same one.
func TestALoginWithANewUIDIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.linger = true
		w.logins("opal:x:1002:1002::/srv/opal:/bin/sh", "ruby:x:1001:1001::/srv/ruby:/bin/sh")
		w.homes["/srv/opal"] = home{folder: true, owner: 1002}
		w.units["user@1002.service"] = unit.Status{Load: unit.Loaded, Active: unit.Active, MainPID: 9, Invocation: "x"}
		k := w.keep(Options{Name: "opal", Known: &plan.Account{Name: "opal", UID: 1001, Home: "/srv/opal"}})
		k.Wanted(true)
		soon()
		require.Equal(t, uint32(1002), w.record.UID)
		uid, err := k.UID()
		require.NoError(t, err)
		require.Equal(t, uint32(1002), uid)
	})
}
