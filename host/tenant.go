package host

import (
	"context"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/account"
	"stead/host/become"
	"stead/host/delegate"
	"stead/host/disk"
	"stead/host/journal"
	"stead/host/ledger"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/host/verify"
)

// Keeping looks after an operator account, as account.Keeper does.
type Keeping interface {
	State() account.State
	Changed() <-chan struct{}
	Wanted(yes bool)
	SetLinger(l account.Linger)
	Freed()
}

// Home is where the units of an account are written and read, as delegate.Delegate
// does it.
type Home interface {
	Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error)
	LookAfter(ctx context.Context, qs []plan.Query, changes []plan.Change) ([]plan.Disk, error)
	Snapshot(path string) (plan.Entry, []byte, error)
	Peek(path string) (plan.Entry, []byte, error)
	Apply(ctx context.Context, cs []plan.Change) plan.Applied
	Missing(paths []string) []string
	RemoveDirs(paths []string) []string
	KeptAs(path string, e plan.Entry) string
	Watcher
	// Open says where the account's manager looks for units, and its version.
	Open(unitPath []string, version int)
	// Trouble says why nothing can be read or written for some time, "" when it can.
	Trouble() string
}

// Tenant is an operator account, the present one or one before, and all through
// which its units are kept. Left out of Machine it is made of this machine's.
type Tenant struct {
	Keeper  Keeping
	Manager Manager // the account's
	// Home makes the way to its files; ConfigDir is where units are written.
	Home    func(id account.Identity) (home Home, configDir string, err error)
	Adviser func(id account.Identity) Adviser
	// Run keeps what the others need, but for Manager and the homes, until ctx ends.
	Run func(ctx context.Context) error
}

// TenantOptions say whose tenant it is.
type TenantOptions struct {
	Name   string // the login; "" for none
	Node   string
	Linger account.Linger
	Known  *plan.Account // whose units the ledger has, nil for nobody's
	Former bool          // it is to be given back
	Ledger *ledger.Ledger
	Tell   func(text string)
	Logger *slog.Logger
}

// tenants makes the tenants of this machine.
func (m *Machine) tenants() func(TenantOptions) (*Tenant, error) {
	if m.Tenants != nil {
		return m.Tenants
	}
	system, is := m.Manager.(*systemd.Manager)
	if !is {
		return nobody(m.Boot)
	}
	return func(o TenantOptions) (*Tenant, error) { return tenant(system, m.Boot, o) }
}

func tenant(system *systemd.Manager, boot string, o TenantOptions) (*Tenant, error) {
	logins, err := systemd.NewLogins(systemd.ReaderOptions{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	files, err := disk.NewWatcher(disk.WatcherOptions{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	keeper, err := account.New(account.Options{Name: o.Name, Node: o.Node, Linger: o.Linger, Known: o.Known, Former: o.Former,
		System: system, Logind: logins, Ledger: o.Ledger, Boot: boot, Logger: o.Logger, Watcher: files, Tell: o.Tell})
	if err != nil {
		return nil, err
	}
	manager, err := systemd.New(systemd.Options{Scope: unit.User, Guard: keeper, Dialed: keeper.Dialed, Redial: keeper.Redial(), Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	var verifying atomic.Bool
	return &Tenant{
		Keeper: keeper, Manager: manager,
		Home: func(id account.Identity) (Home, string, error) {
			d, err := delegate.New(delegate.Options{Login: login(id), Arguments: delegateArguments, Logger: o.Logger})
			if err != nil {
				return nil, "", err
			}
			return d, d.ConfigDir(), nil
		},
		Adviser: func(id account.Identity) Adviser {
			return userAdviser{journal.Reader{Scope: unit.User, UID: uint32(id.UID)}, id, &verifying} //nolint:gosec // it was one in passwd
		},
		Run: func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return files.Run(ctx) })
			group.Go(func() error { return logins.Run(ctx) })
			group.Go(func() error { return keeper.Run(ctx, manager) })
			return group.Wait()
		},
	}, nil
}

// userAdviser joins the two readers of what systemd wrote about an account's units.
type userAdviser struct {
	journal.Reader
	id   account.Identity
	busy *atomic.Bool // a verifier of the account's has not ended
}

// Verify implements Adviser. A verifier that a file system of the account's holds,
// so that it cannot even be killed, is left behind, and there is no advice before
// that has ended.
func (a userAdviser) Verify(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string {
	if !a.busy.CompareAndSwap(false, true) {
		return nil
	}
	back := make(chan map[unit.Name][]string, 1)
	go func() {
		defer a.busy.Store(false)
		back <- verify.RunAs(ctx, files, func(ctx context.Context, program ...string) *exec.Cmd {
			return login(a.id).Running(ctx, delegateArguments, program...)
		})
	}()
	select {
	case warnings := <-back:
		return warnings
	case <-ctx.Done():
	}
	return nil
}

// login is an account as far as its processes go.
func login(id account.Identity) become.Login {
	return become.Login{Name: id.Name, UID: id.UID, GID: id.GID, Groups: id.Groups, Home: id.Home}
}

// delegateArguments make this program a process of an account.
var delegateArguments = []string{"host", "delegate"}

// nobody makes tenants of a machine that has no accounts.
func nobody(boot string) func(TenantOptions) (*Tenant, error) {
	return func(o TenantOptions) (*Tenant, error) {
		k := vacancy{changed: make(chan struct{}), state: account.State{Life: boot, Obstacle: &report.Obstacle{
			Outcome: report.Refused, Reason: report.NoAccount, Text: "this machine has no accounts: scope user is refused"}}}
		return &Tenant{Keeper: k, Run: func(ctx context.Context) error { <-ctx.Done(); return nil }}, nil
	}
}

// vacancy keeps no account.
type vacancy struct {
	state   account.State
	changed chan struct{}
}

func (v vacancy) State() account.State     { return v.state }
func (v vacancy) Changed() <-chan struct{} { return v.changed }
func (vacancy) Wanted(bool)                {}
func (vacancy) SetLinger(account.Linger)   {}
func (vacancy) Freed()                     {}

// meeting bounds the first questions to an account's manager.
const meeting = 15 * time.Second
