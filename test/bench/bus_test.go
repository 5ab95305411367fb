package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	busName    = "org.freedesktop.systemd1"
	managerIfc = busName + ".Manager"
	unitIfc    = busName + ".Unit"
	managerAt  = dbus.ObjectPath("/org/freedesktop/systemd1")
)

// bus is a bare connection to the manager's private socket: the library, and
// nothing around it.
type bus struct{ *dbus.Conn }

const socketPath = "/run/systemd/private"

// dial returns a connection that hears of everything.
func dial(ctx context.Context) (bus, error) {
	c, err := dbus.Dial("unix:path=" + socketPath)
	if err != nil {
		return bus{}, err
	}
	return greet(ctx, c)
}

// dialLean returns a connection that hears of nothing but the ends of jobs.
func dialLean(ctx context.Context) (bus, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "unix", socketPath)
	if err != nil {
		return bus{}, err
	}
	c, err := dbus.NewConn(&lean{Conn: nc, in: bufio.NewReaderSize(nc, 64<<10)})
	if err != nil {
		return bus{}, err
	}
	return greet(ctx, c)
}

// greet returns when the connection has answered; the first call after
// authentication may be swallowed, so pings go out until one comes back.
func greet(ctx context.Context, c *dbus.Conn) (bus, error) {
	if err := c.Auth([]dbus.Auth{dbus.AuthExternal("0")}); err != nil {
		return bus{}, err
	}
	done := make(chan *dbus.Call, 256)
	for range 250 {
		c.Object(busName, managerAt).Go("org.freedesktop.DBus.Peer.Ping", 0, done)
		select {
		case answer := <-done:
			return bus{c}, answer.Err
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return bus{}, ctx.Err()
		}
	}
	return bus{}, errors.New("the manager does not answer")
}

// request is one call of a pipeline.
type request struct {
	at     dbus.ObjectPath
	method string
	args   []any
}

func manager(method string, args ...any) request {
	return request{managerAt, managerIfc + "." + method, args}
}

func property(at dbus.ObjectPath, iface, name string) request {
	return request{at, "org.freedesktop.DBus.Properties.Get", []any{iface, name}}
}

// pipeline sends all calls from this goroutine, without waiting for one answer
// before the next call, and returns the answers in order.
func (b bus) pipeline(ctx context.Context, rs []request) ([]*dbus.Call, error) {
	done := make(chan *dbus.Call, len(rs))
	calls := make([]*dbus.Call, len(rs))
	for i, r := range rs {
		calls[i] = b.Object(busName, r.at).GoWithContext(ctx, r.method, 0, done, r.args...)
	}
	for range rs {
		if c := <-done; c.Err != nil {
			return nil, fmt.Errorf("%s: %w", c.Method, c.Err)
		}
	}
	return calls, nil
}

// listed is a unit as ListUnitsByNames gives it.
type listed struct {
	Name, Description, Load, Active, Sub, Following string
	Path                                            dbus.ObjectPath
	JobID                                           uint32
	JobType                                         string
	JobPath                                         dbus.ObjectPath
}

func (b bus) list(ctx context.Context, names []string) ([]listed, error) {
	answers, err := b.pipeline(ctx, []request{manager("ListUnitsByNames", names)})
	if err != nil {
		return nil, err
	}
	var rows []listed
	return rows, answers[0].Store(&rows)
}

// stamps reads a CLOCK_MONOTONIC stamp of each unit.
func (b bus) stamps(ctx context.Context, names []string, stamp string) ([]time.Duration, error) {
	rows, err := b.list(ctx, names)
	if err != nil {
		return nil, err
	}
	rs := make([]request, len(rows))
	for i, r := range rows {
		rs[i] = property(r.Path, unitIfc, stamp)
	}
	answers, err := b.pipeline(ctx, rs)
	if err != nil {
		return nil, err
	}
	out := make([]time.Duration, len(answers))
	for i, a := range answers {
		var us uint64
		if err := a.Store(&us); err != nil {
			return nil, err
		}
		out[i] = time.Duration(us) * time.Microsecond
	}
	return out, nil
}
