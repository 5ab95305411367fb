package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/fault"
)

// SystemBusAddress is the socket of the system bus.
const SystemBusAddress = "/run/dbus/system_bus_socket"

// Bounds of a Reader.
const (
	// mostAnswer is the largest answer in bytes, which is also what the bus
	// itself lets pass (max_message_size of dbus-daemon(1)).
	mostAnswer = 32 << 20
	// busWindow bounds the calls of one connection that wait for an answer. The
	// bus refuses more than 128 (max_replies_per_connection of dbus-daemon(1)), and
	// counts those of callers that went away.
	busWindow = 64
	retryWait = 20 * time.Millisecond
)

// ReaderOptions of a Reader. The zero value of a duration takes its default.
type ReaderOptions struct {
	Address     string        // path of the bus socket; "" is SystemBusAddress
	Guard       Guard         // whose manager is asked, over its private socket and not over a bus, which takes root; nil for the system's
	Logger      *slog.Logger  // required
	CallTimeout time.Duration // without any answer, after which the manager counts as hung
	ConnectWait time.Duration // how long a call waits for the bus, and for the manager to be on it
	// Presets are the folders of preset files, the one that wins first; nil are
	// those of the manager.
	Presets []string
	// OnCall is told of each method call that is sent, as in Options.
	OnCall func(method string)
}

// Reader asks the system manager over the system bus how units stand, or, with a
// Guard and as root, the manager of an account. It needs no rights on the bus,
// changes nothing, keeps nothing but its connection, and listens to no
// signal: each answer is what the manager says at that moment.
//
// It needs an account that the bus can look up. The bus of systemd 250 and newer
// cannot look up one that DynamicUser= made: dbus-daemon then closes the
// connection without a word (seen on systemd 252 and 257). An account of the same
// name from sysusers.d(5), which DynamicUser= then takes, is let in, and on 252
// so is a dynamic one with a record in /run/userdb (nss-systemd(8)).
//
// Its methods may be called from any goroutine. A call that only lost its
// connection, or met a manager that had left the bus, is tried again for as long
// as ConnectWait.
type Reader struct {
	opts ReaderOptions
	to   string // the name on the bus that is asked; "" for the manager's
	door *door  // nil where the bus is asked
	conn *keeper
}

// NewReader checks o and returns a Reader that is not connected; Run connects
// it.
func NewReader(o ReaderOptions) (*Reader, error) {
	if o.Address == "" {
		o.Address = SystemBusAddress
	}
	switch {
	case o.Logger == nil:
		return nil, fault.New(fault.Invalid, "new reader", o.Address, errors.New("no logger"))
	case o.Guard != nil && o.Address != SystemBusAddress:
		return nil, fault.New(fault.Invalid, "new reader", o.Address, errors.New("a guard knows the address"))
	case o.CallTimeout < 0 || o.ConnectWait < 0:
		return nil, fault.New(fault.Invalid, "new reader", o.Address, errors.New("a negative duration"))
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.ConnectWait == 0 {
		o.ConnectWait = DefaultConnectWait
	}
	r := &Reader{opts: o}
	r.conn = &keeper{
		what: "the system bus", address: o.Address, wait: o.ConnectWait, log: o.Logger,
		dial: r.dial, owner: quiet{}, connected: make(chan struct{}),
	}
	presets := presetFolders[:]
	if o.Guard != nil {
		presets = userPresetFolders[:]
		r.door = &door{root: userRuntime, guard: o.Guard}
		r.conn.what, r.conn.address, r.conn.dial = "the user manager", userRuntime, r.dialUser
	}
	if o.Presets == nil {
		r.opts.Presets = presets
	}
	return r, nil
}

// quiet is the owner of a connection that keeps nothing of it.
type quiet struct{}

func (quiet) opening(*link) {}
func (quiet) opened()       {}
func (quiet) closing(*link) {}
func (quiet) closed()       {}

// Run keeps the connection until ctx ends, and then returns nil. It redials for
// ever, as Manager.Run does. It may run only once at a time.
func (r *Reader) Run(ctx context.Context) error {
	r.conn.run(ctx)
	return nil
}

// Connected reports whether there is a connection to the bus at this moment.
func (r *Reader) Connected() bool { return r.conn.up() }

// dial connects to the bus and returns a link that was given a name there.
func (r *Reader) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTotal)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", r.opts.Address)
	if err != nil {
		return nil, err
	}
	l := &link{
		nc: nc, timeout: r.opts.CallTimeout, onCall: r.opts.OnCall, to: r.to,
		// the bus would start a manager that is away for a moment
		flags: dbus.FlagNoAutoStart, slots: make(chan struct{}, busWindow),
	}
	s := newSocket(nc, r.opts.CallTimeout, mostAnswer, (&sealer{}).pass)
	if l.bus, err = dbus.NewConn(s); err != nil {
		_ = nc.Close()
		return nil, err
	}
	if err := l.greet(ctx, os.Geteuid(), l.hello); err != nil {
		l.drop(err)
		return nil, err
	}
	return l, nil
}

// dialUser connects to the user manager's private socket and returns a link that
// has answered once, as Manager.dial does.
func (r *Reader) dialUser(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTotal)
	defer cancel()
	nc, err := r.door.connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{nc: nc, timeout: r.opts.CallTimeout, total: userTotal, onCall: r.opts.OnCall, slots: make(chan struct{}, busWindow), gone: make(chan struct{})}
	s := newSocket(nc, r.opts.CallTimeout, mostAnswer, (&sealer{wary: true}).pass)
	s.bound(l.gone)
	if l.bus, err = dbus.NewConn(s); err != nil {
		_ = nc.Close()
		return nil, err
	}
	if err := l.greet(ctx, 0, l.ping); err != nil {
		l.drop(err)
		return nil, standing("dial", "the user manager", err)
	}
	return l, nil
}

// hello asks the bus for a name, without which it passes nothing on.
func (l *link) hello(ctx context.Context) error {
	done := make(chan *dbus.Call, 1)
	l.bus.BusObject().GoWithContext(ctx, "org.freedesktop.DBus.Hello", 0, done)
	err := fromBus((<-done).Err, ctx)
	switch {
	case errors.Is(err, errLost), errors.Is(err, errUnsent):
		return fmt.Errorf("the bus hung up on uid %d; dbus-daemon does so when it cannot look the account up, as that of DynamicUser=", os.Geteuid())
	case err != nil:
		return fmt.Errorf("hello: %w", err)
	}
	return nil
}

// ask sends calls, and again when the connection or the manager was lost
// meanwhile. Its error is what ended all of them; what the manager says of each
// is in the replies.
func (r *Reader) ask(ctx context.Context, op, object string, calls []call) ([]reply, error) {
	until := time.Now().Add(r.opts.ConnectWait)
	for {
		l, err := r.conn.using(ctx, op)
		if err != nil {
			return nil, err
		}
		replies := l.do(ctx, calls)
		lost := firstLost(replies)
		switch {
		case lost == nil:
			return replies, nil
		case !again(lost) || time.Now().After(until):
			return nil, looking(op, object, lost)
		}
		sleep(ctx, retryWait)
	}
}

// firstLost returns why a call has no answer of the manager, nil when all have.
func firstLost(replies []reply) error {
	for _, r := range replies {
		var a *answer
		if r.err != nil && (!errors.As(r.err, &a) || away(a)) {
			return r.err
		}
	}
	return nil
}

// away reports whether it is the bus that answers, because the manager is not on
// it, as while it executes itself anew.
func away(a *answer) bool {
	switch a.name {
	case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Disconnected",
		"org.freedesktop.DBus.Error.LimitsExceeded":
		return true
	}
	return false
}

func again(err error) bool {
	var a *answer
	return errors.Is(err, errLost) || errors.Is(err, errUnsent) || errors.As(err, &a)
}
