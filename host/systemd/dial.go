package systemd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	pingFirst = 20 * time.Millisecond // until the second ping; doubles from there
	pingTotal = 5 * time.Second       // without an answer to any ping, after which the connection is given up
)

// dial connects to the manager's private socket and returns a link that has
// answered once. Nothing else may be sent before: the first call right after
// authentication is swallowed in most tries (seen on systemd 247, 252 and 257),
// so a harmless one is sent, and again, until any of them is answered.
func (m *Manager) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTotal)
	defer cancel()
	if m.door == nil {
		return m.open(ctx, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", m.opts.Address)
		})
	}
	l, err := m.open(ctx, m.door.connect)
	if err != nil {
		return nil, standing("dial", "the user manager", err)
	}
	return l, nil
}

// open is dial over the way that connect goes.
func (m *Manager) open(ctx context.Context, connect func(context.Context) (net.Conn, error)) (*link, error) {
	nc, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{nc: nc, timeout: m.opts.CallTimeout, patience: m.opts.ReloadTimeout, onCall: m.opts.OnCall}
	l.signals = newReceiver(m)
	s := newSocket(nc, m.opts.CallTimeout, mostMessage, l.signals.pass)
	if m.door != nil {
		l.gone, l.total = make(chan struct{}), userTotal
		s.bound(l.gone)
	}
	l.bus, err = dbus.NewConn(s, dbus.WithSignalHandler(l.signals), dbus.WithOutgoingInterceptor(l.signals.answered.out),
		dbus.WithIncomingInterceptor(l.signals.answered.in))
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	l.ended = s.ended
	if err := l.greet(ctx, 0, l.ping); err != nil {
		err = s.ended(err)
		l.drop(err)
		return nil, err
	}
	return l, nil
}

// greet authenticates as uid and says hello.
func (l *link) greet(ctx context.Context, uid int, hello func(context.Context) error) error {
	deadline, _ := ctx.Deadline()
	if err := l.nc.SetReadDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.nc.Close() })
	err := l.bus.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(uid))})
	if !stop() {
		return fmt.Errorf("authenticate: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if err := l.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return hello(ctx)
}

func (l *link) ping(ctx context.Context) error {
	const most = 16
	done := make(chan *dbus.Call, most)
	again := time.NewTimer(0)
	defer again.Stop()
	for n := 0; ; {
		select {
		case c := <-done:
			if err := fromBus(c.Err, ctx); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			return nil
		case <-again.C:
			if n < most {
				l.send(ctx, pingCall(), done)
				n++
			}
			again.Reset(pingFirst << min(n-1, 5))
		case <-ctx.Done():
			return fmt.Errorf("ping: %w", errSilent)
		}
	}
}
