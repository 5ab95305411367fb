package account

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/unit"
)

// Run looks after the account until ctx ends, and returns nil then; what it turned
// on stays so. user is the account's manager, of which k is the Guard. It may run
// only once.
func (k *Keeper) Run(ctx context.Context, user tenant) error {
	defer k.o.System.Notify(k.wake)
	var files <-chan struct{}
	if w := k.o.Watcher; w != nil {
		w.Set([]string{k.o.Logins.folder()})
		files = w.Wake()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-files:
			k.o.Watcher.Drain()
		case <-timer.C:
		}
		k.turn(ctx, user)
		timer.Reset(k.sleep())
	}
}

// sleep is how long nothing needs a look.
func (k *Keeper) sleep() time.Duration {
	o := k.Obstacle()
	switch {
	case o != nil && o.Reason == report.NoAccount:
		return time.Hour
	case o != nil && !k.startAt.IsZero() && time.Until(k.startAt) > 0:
		return min(k.o.Tick, time.Until(k.startAt))
	case o != nil, k.again:
		return k.o.Tick
	case k.pending:
		return undoTick
	}
	return time.Hour
}

// turn looks, acts, and publishes what it found.
func (k *Keeper) turn(life context.Context, user tenant) {
	ctx, cancel := context.WithTimeout(life, patience)
	defer cancel()
	k.again = false
	f, wanted := k.begin()
	o := k.login(&f)
	if o == nil || o.Reason == report.AccountChanged {
		k.mu.Lock()
		k.state.Identity = *f.found
		k.mu.Unlock()
	}
	if o == nil {
		o = k.serve(ctx, user, &f, wanted)
	}
	if life.Err() != nil {
		return // what was asked last was not answered, and nobody asks any more
	}
	k.publish(f, o)
}

// begin takes over what others said.
func (k *Keeper) begin() (facts, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.freed {
		k.known, k.freed = nil, false
	}
	linger := k.linger
	if k.o.Former && linger == On {
		linger = Auto // what is on is so for the account that there is now
	}
	return facts{name: k.o.Name, former: k.o.Former, linger: linger, known: k.known, conn: k.conn}, k.wanted
}

// login looks the login up.
func (k *Keeper) login(f *facts) *report.Obstacle {
	if f.name == "" {
		return judgeLogin(k.o.Node, *f)
	}
	id, err := k.o.Logins.Lookup(f.name)
	switch {
	case err == nil:
		if f.former {
			id.Home = k.o.Known.Home // where it was written
		}
		f.found = &id
	case !fault.Is(err, fault.NotFound):
		f.lookErr = err
	case f.known != nil:
		if f.owner, err = k.o.Logins.Of(f.known.UID); err != nil {
			f.lookErr = err
		}
	}
	return judgeLogin(k.o.Node, *f)
}

// serve does for a login that is fine what its manager needs, and says what is in
// the way.
func (k *Keeper) serve(ctx context.Context, user tenant, f *facts, wanted bool) *report.Obstacle {
	k.ask(ctx, f)
	if f.askErr != nil {
		return judgeManager(k.o.Node, *f)
	}
	k.follow(f.service)
	if o := judgeHome(*f); o != nil {
		return o
	}
	if wanted {
		if err := k.remember(*f, f.known != nil && f.known.LingerOurs); err != nil {
			return obstacle(report.Waiting, report.DiskError, "", "whose units are written cannot be noted: %s", err)
		}
	}
	k.settle(ctx, user, f, wanted)
	if o := judgeManager(k.o.Node, *f); o != nil {
		return o
	}
	k.startAt, k.delay = time.Time{}, 0
	return nil
}

// ask asks PID 1 about the account's manager and the mounts of its home, and the
// kernel about the home.
func (k *Keeper) ask(ctx context.Context, f *facts) {
	service := serviceOf(f.found.UID)
	mounts, automounts := mountsOf(f.found.Home)
	names := append(append([]unit.Name{service}, mounts...), automounts...)
	k.o.System.Notify(k.wake, names...)
	status, err := k.o.System.Observe(ctx, names)
	if err != nil {
		f.askErr = err
		return
	}
	seen := make(map[unit.Name]unit.Status, len(status))
	for _, s := range status {
		seen[s.Asked] = s
	}
	f.service = seen[service]
	if f.unmounted = unmounted(seen, mounts, automounts); f.unmounted != "" {
		return // looking there could wait, or see what is hidden later
	}
	quick, cancel := context.WithTimeout(ctx, patience/5)
	defer cancel()
	f.home = k.prober.look(quick, f.found.Home)
}

// follow notes which life of the manager it is, and has it dialed when that began.
func (k *Keeper) follow(s unit.Status) {
	was := k.life
	if k.life = s; !s.Active.Up() || s.MainPID == 0 {
		return
	}
	if was.Active != s.Active || was.MainPID != s.MainPID || was.Invocation != s.Invocation {
		hand(k.redial)
	}
	if s.Invocation != "" {
		k.mu.Lock()
		k.state.Life = k.o.Boot + "/" + s.Invocation
		k.mu.Unlock()
	}
}

// publish makes what a look found the state, and says what is new in it.
func (k *Keeper) publish(f facts, o *report.Obstacle) {
	k.mu.Lock()
	s := &k.state
	if f.found == nil || o != nil && o.Reason == report.AccountRoot {
		s.Identity = Identity{}
	}
	s.Obstacle, s.Ready, s.Gone, s.Before = o, o == nil, gone(f, o), nil
	if o != nil && o.Reason == report.AccountChanged && !k.freed {
		s.Before = f.known
	}
	s.Lingers, s.Ours = f.lingers, k.known != nil && k.known.LingerOurs
	was, now := k.said, *s
	k.said = now
	k.mu.Unlock()
	if !same(was.Obstacle, o) {
		k.report(o)
	}
	if now.Gone != "" && was.Gone != now.Gone {
		k.o.Tell(fmt.Sprintf("what was written for account %q is left where it is: %s", k.o.Name, now.Gone))
	}
	if !reflect.DeepEqual(was, now) {
		hand(k.changed)
	}
}

func (k *Keeper) report(o *report.Obstacle) {
	if o == nil {
		k.o.Logger.Info("account is ready", "account", k.o.Name)
		return
	}
	k.o.Logger.Debug("account is not ready", "account", k.o.Name, "reason", o.Reason, "text", o.Text)
}

func same(a, b *report.Obstacle) bool { return a == b || a != nil && b != nil && *a == *b }

func hand(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
