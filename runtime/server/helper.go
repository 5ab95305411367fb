package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sync/errgroup"

	"stead/host/account"
	"stead/host/fault"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/mesh/notify"
	"stead/runtime/escalate"
)

// Help is the root helper: it serves the socket that it was started with until
// ctx ends, and returns nil then. Acts that were begun are finished.
func Help(ctx context.Context, log *slog.Logger) error {
	listener, err := inherited()
	if err != nil {
		return err
	}
	manager, err := systemd.New(systemd.Options{Scope: unit.System, Logger: log})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	helper, err := escalate.New(escalate.Options{
		Listener: listener, Manager: manager, Calls: escalate.CallsPath, Logger: log, Users: usersOf(log), Login: uidOf,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	lower, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	floor, lower := errgroup.WithContext(lower)
	floor.Go(func() error { return manager.Run(lower) })
	group, upper := errgroup.WithContext(ctx)
	group.Go(func() error { return helper.Run(upper) })
	group.Go(func() error { return notify.Watchdog(upper, asking{manager}.Alive) })
	notify.Ready()
	err = group.Wait()
	notify.Stopping()
	stop()
	return errors.Join(ignore(err), ignore(floor.Wait()))
}

// Bounds of the connections to the manager of an account.
const (
	userCallTimeout   = 5 * time.Second
	userConnectWait   = 1500 * time.Millisecond // who asks about both scopes waits two seconds
	userReloadTimeout = 50 * time.Second        // a call has a minute
)

// usersOf makes those connections.
func usersOf(log *slog.Logger) func(*escalate.Guard, func(error)) (escalate.Users, error) {
	return func(g *escalate.Guard, dialed func(error)) (escalate.Users, error) {
		m, err := systemd.New(systemd.Options{
			Scope: unit.User, Guard: g, Dialed: dialed, CallTimeout: userCallTimeout, ReloadTimeout: userReloadTimeout, ConnectWait: userConnectWait, Logger: log,
		})
		if err != nil {
			return escalate.Users{}, err
		}
		r, err := systemd.NewReader(systemd.ReaderOptions{Guard: g, CallTimeout: userCallTimeout, ConnectWait: userConnectWait, Logger: log})
		return escalate.Users{Manager: m, Reader: r}, err
	}
}

// uidOf is the uid of a login.
func uidOf(name string) (uint32, error) {
	id, err := account.Logins{}.Lookup(name)
	return uint32(id.UID), err //nolint:gosec // it was one in passwd
}

// asking is alive while the process has any use of its connection to PID 1: a
// helper that waits for one is not mended by another one.
type asking struct{ m *systemd.Manager }

// Alive implements alive.
func (a asking) Alive(ctx context.Context) error {
	if !a.m.Connected() {
		return nil
	}
	_, err := a.m.Version(ctx)
	return err
}

// inherited is the socket that systemd started this process with.
func inherited() (*net.UnixListener, error) {
	const cure = "it is started by its socket: systemctl start stead-escalate.socket"
	all, err := activation.Listeners()
	if err != nil {
		return nil, fault.New(fault.Failed, "take over the socket", "", err)
	}
	if len(all) == 1 {
		if l, ok := all[0].(*net.UnixListener); ok {
			l.SetUnlinkOnClose(false) // it is systemd's
			return l, nil
		}
	}
	return nil, fault.New(fault.Invalid, "take over the socket", "", fmt.Errorf("one listening unix socket is wanted, and %d were given", len(all))).WithHint(cure)
}
