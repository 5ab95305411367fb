package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stead/host/plan"
	"stead/host/unit"
)

// settle makes lingering and the manager what the setting and the units want.
func (k *Keeper) settle(ctx context.Context, user tenant, f *facts, wanted bool) {
	k.pending = false
	uid := uint32(f.found.UID) //nolint:gosec // it was one in passwd
	ours := k.known != nil && k.known.LingerOurs
	if f.lingers, f.sessions, f.loginErr = k.o.Logind.Login(ctx, f.name, uid); f.loginErr != nil {
		k.again = wanted || ours
	}
	switch {
	case f.loginErr != nil:
	case f.needed(wanted) && !f.lingers:
		k.turnOn(ctx, f, uid)
	case !f.needed(wanted) && !wanted && ours:
		k.turnOff(ctx, user, f, uid)
	case !wanted && !ours && k.known != nil:
		k.forget()
	}
	if wanted || f.needed(wanted) {
		k.start(ctx, f)
	}
}

// turnOn lets the account linger. That stead did so is noted first: a host that dies
// in between undoes too much rather than too little, and that only when nobody uses
// it.
func (k *Keeper) turnOn(ctx context.Context, f *facts, uid uint32) {
	if err := k.remember(*f, true); err != nil {
		f.loginErr = err
		k.again = true
		return
	}
	if err := k.o.Logind.Linger(ctx, uid, true); err != nil {
		f.loginErr = err
		k.again = true
		return
	}
	f.lingers = true
	if k.startAt = time.Now().Add(startWait); f.service.Active == unit.Inactive {
		f.service.Active = unit.Activating // which logind asks for
	}
	k.tell("lingering of account %q was turned on: its user units run without a login", f.name)
}

// turnOff undoes what turnOn did, where nothing is lost by it.
func (k *Keeper) turnOff(ctx context.Context, user tenant, f *facts, uid uint32) {
	if f.lingers {
		free, err := k.free(ctx, user, f)
		if err != nil || !free || f.sessions > 0 {
			k.pending = true
			return
		}
		if err := k.o.Logind.Linger(ctx, uid, false); err != nil {
			k.again = true
			return
		}
		f.lingers = false
		k.tell("lingering of account %q was turned off again: nothing needs it", f.name)
	}
	k.forget()
}

// forget removes the ledger's record: nothing of stead's is left there.
func (k *Keeper) forget() {
	if err := k.o.Ledger.Account(nil); err != nil {
		k.again = true
		return
	}
	k.known = nil
}

// remember notes whose units are written, and whether stead turned lingering on.
func (k *Keeper) remember(f facts, ours bool) error {
	a := plan.Account{Name: f.name, UID: uint32(f.found.UID), Home: f.found.Home, LingerOurs: ours} //nolint:gosec // as above
	if k.known != nil && *k.known == a {
		return nil
	}
	if err := k.o.Ledger.Account(&a); err != nil {
		return err
	}
	k.known = &a
	return nil
}

// start starts the account's manager where it ought to run and does not: what
// lingers is not always started, not after it was stopped by hand, and not by every
// logind at boot. It is tried again with growing delay.
func (k *Keeper) start(ctx context.Context, f *facts) {
	s := f.service
	if !s.Active.Down() || s.Job.ID != 0 || s.Load != unit.Loaded {
		return
	}
	if f.linger == Off && !f.lingers && f.sessions == 0 {
		return
	}
	if time.Now().Before(k.startAt) {
		return
	}
	k.delay = min(max(2*k.delay, tick), startMost)
	k.startAt = time.Now().Add(k.delay)
	for _, q := range k.o.System.Enqueue(ctx, []unit.JobRequest{{Name: serviceOf(f.found.UID), Type: unit.StartJob}}) {
		if q.Err != nil {
			k.o.Logger.Warn("the user manager cannot be started", "account", f.name, "err", q.Err, "retry", k.delay)
			continue
		}
		k.o.Logger.Info("the user manager is started", "account", f.name)
		if f.service.Active == unit.Inactive {
			f.service.Active = unit.Activating // until PID 1 says how it went
		}
	}
}

// free reports whether nothing but systemd's own runs in the account's manager.
func (k *Keeper) free(ctx context.Context, user tenant, f *facts) (bool, error) {
	if !f.service.Active.Up() {
		return f.service.Active.Down(), nil
	}
	if user == nil {
		return false, errors.New("nobody can be asked")
	}
	names, err := user.Running(ctx)
	if err != nil {
		return false, err
	}
	var ask []unit.Name
	for _, n := range names {
		switch kind(n) {
		case somebodys:
			return false, nil
		case perhaps:
			ask = append(ask, n)
		}
	}
	status, err := user.Observe(ctx, ask)
	if err != nil {
		return false, err
	}
	for _, s := range status {
		if !vendors(s.Fragment) {
			return false, nil
		}
	}
	return true, nil
}

// owner is whose a unit is that runs in a user manager.
type owner int

const (
	systemds  owner = iota // part of every user manager
	perhaps                // the vendor's, if its file is: every login has it
	somebodys              // ends with the manager, and somebody started it
)

// kind says whose a unit is, as far as its name tells.
func kind(n unit.Name) owner {
	switch n {
	case "init.scope", "dbus.service", "dbus-broker.service", "dbus.socket":
		return systemds
	}
	if strings.HasPrefix(string(n), "systemd-") {
		return systemds
	}
	switch n.Type() {
	case "target", "slice", "device", "mount", "swap":
		return systemds
	case "socket", "path", "timer":
		return perhaps
	}
	return somebodys
}

// vendors reports whether a unit file is one that the machine gives every login.
func vendors(file string) bool {
	for _, dir := range []string{"/usr/", "/lib/", "/etc/systemd/user/"} {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}

// tell says to the operator what was done.
func (k *Keeper) tell(format string, args ...any) { k.o.Tell(fmt.Sprintf(format, args...)) }
