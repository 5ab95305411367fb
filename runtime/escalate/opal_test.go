package escalate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

// opal is an account with a fake manager.
type opal struct {
	t    *testing.T
	rig  *rig
	file string // that the host writes
	keep time.Duration

	mu     sync.Mutex
	logins map[string]uint32
	m      *pid1
	dir    string
	met    int // connections made
	open   int // connections kept
	down   error
	reader questions // in place of the manager's
	links  *unit.Linking
}

// withOpal gives a rig an account whose manager runs, in its first life.
func (r *rig) withOpal() *opal {
	r.t.Helper()
	o := &opal{t: r.t, rig: r, file: filepath.Join(r.dir, "account.json"), dir: r.t.TempDir(), logins: map[string]uint32{"opal": 1000, "ruby": 1001, "root": 0, "toor": 0}}
	r.opal = o
	fake := systemdtest.NewFake(systemdtest.Options{Dirs: []string{o.dir}})
	o.m = &pid1{Fake: fake, ties: map[unit.Name]unit.Ties{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fake.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); require.NoError(r.t, <-done); fake.Close() })
	o.note(`{"name":"opal","uid":1000}`)
	o.lives("one")
	return o
}

func (o *opal) note(text string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(o.file, []byte(text), 0o600))
}

// lives begins a life of the account's manager; "" ends it.
func (o *opal) lives(life string) {
	o.rig.m.mu.Lock()
	defer o.rig.m.mu.Unlock()
	if life == "" {
		o.rig.m.services = nil
		return
	}
	o.rig.m.services = map[unit.Name]unit.Process{"user@1000.service": {PID: 77, UID: 1000, Invocation: life}}
}

func (o *opal) login(name string) (uint32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid, is := o.logins[name]
	if !is {
		return 0, fault.New(fault.NotFound, "look up account", name, errors.New("there is no such login"))
	}
	return uid, nil
}

func (o *opal) set(logins map[string]uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logins = maps.Clone(logins)
}

// unit writes a unit file of the account's.
func (o *opal) unit(name, text string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644))
	_, err := o.m.Other().Reload(context.Background())
	require.NoError(o.t, err)
}

func (o *opal) users(_ *Guard, dialed func(error)) (Users, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met++
	var reader questions = o.m.Fake
	dialed(o.down)
	if o.reader != nil {
		reader = o.reader
	}
	return Users{Manager: kept{o.m, o}, Reader: keptReader{reader}}, nil
}

func (o *opal) connections() (met, open int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.met, o.open
}

// kept is a connection to the account's manager.
type kept struct {
	*pid1
	o *opal
}

func (k kept) Run(ctx context.Context) error {
	k.o.mu.Lock()
	k.o.open++
	k.o.mu.Unlock()
	<-ctx.Done()
	k.o.mu.Lock()
	k.o.open--
	k.o.mu.Unlock()
	return nil
}

func (k kept) Enable(ctx context.Context, names []unit.Name) (unit.Linking, error) {
	if k.o.links != nil {
		return *k.o.links, nil
	}
	return k.Fake.Enable(ctx, names)
}

// unreached is the error of calls while there is no connection.
func (k kept) unreached() error {
	k.o.mu.Lock()
	defer k.o.mu.Unlock()
	if k.o.down == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "use", "/run/user", k.o.down)
}

func (k kept) Ties(ctx context.Context, names []unit.Name) ([]unit.Ties, error) {
	if err := k.unreached(); err != nil {
		return nil, err
	}
	return k.pid1.Ties(ctx, names)
}

type keptReader struct{ questions }

func (keptReader) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// loud answers with more than is taken in, or not before it is let.
type loud struct {
	questions
	units int
	text  string
	hold  chan struct{}
}

func (l loud) Units(ctx context.Context, _ unit.Filter) ([]unit.Listed, error) {
	if l.hold != nil {
		select {
		case <-l.hold:
		case <-ctx.Done():
			return nil, fault.New(fault.Timeout, "list units", "", ctx.Err())
		}
	}
	var all []unit.Listed
	for i := range l.units {
		all = append(all, unit.Listed{Name: unit.Name(fmt.Sprintf("u%05d.service", i)), Description: l.text, Load: unit.Loaded, Active: unit.Active, Sub: "running"})
	}
	return all, nil
}

// Enablement says of each unit what it is called.
func (l loud) Enablement(_ context.Context, names []unit.Name) ([]string, error) {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return all, nil
}

func (l loud) Details(_ context.Context, n unit.Name) (unit.Details, error) {
	d := unit.Details{ID: n, Description: l.text, LoadError: l.text, Sub: l.text, Documents: []string{l.text}, Fragment: l.text}
	for range l.units {
		d.Names, d.DropIns, d.Unmet = append(d.Names, n), append(d.DropIns, l.text), append(d.Unmet, unit.Condition{Text: l.text})
	}
	return d, nil
}
