package systemd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// tenants is a folder like /run/user with one of the test's own uid, and its Guard.
type tenants struct {
	root string
	uid  uint32
	peer error
}

func (g *tenants) UID() (uint32, error) { return g.uid, nil }

func (g *tenants) Peer(context.Context, uint32, uint32) error { return g.peer }

func newTenants(t *testing.T) *tenants {
	g := &tenants{root: t.TempDir(), uid: uint32(os.Getuid())} //nolint:gosec // a uid
	require.NoError(t, os.MkdirAll(filepath.Dir(g.at()), 0o700))
	return g
}

func (g *tenants) at() string { return fmt.Sprintf("%s/%d/%s", g.root, g.uid, privateSocket) }

// manager returns a Manager of the tenant that is not running.
func (g *tenants) manager(t *testing.T, dialed func(error)) *Manager {
	m, err := New(Options{Scope: unit.User, Guard: g, Dialed: dialed, Logger: discard(), CallTimeout: 300 * time.Millisecond, ConnectWait: 200 * time.Millisecond})
	require.NoError(t, err)
	m.door.root = g.root
	return m
}

// served puts a scripted manager on the tenant's socket.
func (g *tenants) served(t *testing.T) *peer {
	p := &peer{t: t, socket: g.at(), handle: answerAll}
	p.listen()
	t.Cleanup(func() {
		p.shut()
		p.wg.Wait()
	})
	return p
}

// What lies on the way to a user manager is the account's.
func TestWhatLiesOnTheWayIsToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		put   func(t *testing.T, g *tenants)
		class fault.Class
	}{
		"nothing":   {func(*testing.T, *tenants) {}, fault.NotFound},
		"no folder": {func(t *testing.T, g *tenants) { require.NoError(t, os.RemoveAll(filepath.Dir(g.at()))) }, fault.NotFound},
		"a file for a folder": {func(t *testing.T, g *tenants) {
			require.NoError(t, os.RemoveAll(filepath.Dir(g.at())))
			require.NoError(t, os.WriteFile(filepath.Dir(g.at()), nil, 0o600))
		}, fault.NotFound},
		"a file":              {func(t *testing.T, g *tenants) { require.NoError(t, os.WriteFile(g.at(), nil, 0o600)) }, fault.Denied},
		"a pipe":              {func(t *testing.T, g *tenants) { require.NoError(t, syscall.Mkfifo(g.at(), 0o600)) }, fault.Denied},
		"a link to a manager": {func(t *testing.T, g *tenants) { require.NoError(t, os.Symlink(newPeer(t).socket, g.at())) }, fault.Denied},
		"a link to one beside it": {func(t *testing.T, g *tenants) {
			g.served(t)
			require.NoError(t, os.Rename(g.at(), g.at()+".real"))
			require.NoError(t, os.Symlink("private.real", g.at()))
		}, fault.Denied},
		"a link that leads nowhere": {func(t *testing.T, g *tenants) { require.NoError(t, os.Symlink("private", g.at())) }, fault.Denied},
		"a link for a folder": {func(t *testing.T, g *tenants) {
			dir := filepath.Dir(g.at())
			require.NoError(t, os.Rename(dir, dir+".real"))
			require.NoError(t, os.Symlink(dir+".real", dir))
		}, fault.Denied},
		"a datagram socket": {func(t *testing.T, g *tenants) {
			l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: g.at(), Net: "unixgram"})
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}, fault.Denied},
		"a socket of another's": {func(t *testing.T, g *tenants) {
			g.served(t)
			require.NoError(t, os.Chown(g.at(), 12345, -1))
		}, fault.Denied},
		"a socket that nobody listens on": {func(t *testing.T, g *tenants) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: g.at(), Net: "unix"})
			require.NoError(t, err)
			l.SetUnlinkOnClose(false)
			require.NoError(t, l.Close())
		}, fault.Refused},
		"another process": {func(t *testing.T, g *tenants) {
			g.served(t)
			g.peer = fault.New(fault.Denied, "", "", errors.New("it is another"))
		}, fault.Denied},
		"one that hangs up":     {func(t *testing.T, g *tenants) { g.talks(t, func(c net.Conn) {}) }, fault.Refused},
		"one that says no":      {func(t *testing.T, g *tenants) { g.talks(t, says("REJECTED\r\nREJECTED\r\nREJECTED\r\n")) }, fault.Refused},
		"one that ends no line": {func(t *testing.T, g *tenants) { g.talks(t, says(strings.Repeat("x", 1<<20))) }, fault.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTenants(t)
			c.put(t, g)
			_, err := g.manager(t, nil).dial(t.Context())
			require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
		})
	}
}

// talks lets f have each connection to the tenant's socket.
func (g *tenants) talks(t *testing.T, f func(net.Conn)) {
	l, err := net.Listen("unix", g.at())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

func TestOneThatNeverAnswersIsGivenUp(t *testing.T) {
	g := newTenants(t)
	g.talks(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	at := time.Now()
	_, err := g.manager(t, nil).dial(t.Context())
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.Less(t, time.Since(at), 3*pingTotal)
}

func TestAFolderThatNeverAnswersIsGivenUpAndNotAskedTwice(t *testing.T) {
	g := newTenants(t)
	d := g.manager(t, nil).door
	d.opening.Store(true) // as while the kernel waits for a file system
	_, err := d.connect(t.Context())
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
}

// keptUser runs a Manager of the tenant until the test ends.
func (g *tenants) keptUser(t *testing.T) (*Manager, chan error) {
	told := make(chan error, 1000)
	m := g.manager(t, func(err error) { told <- err })
	keep(t, m.Run)
	connected(t, m)
	require.NoError(t, <-told)
	return m, told
}

func TestACallThatIsNotAnsweredIsToldAsHung(t *testing.T) {
	g := newTenants(t)
	p := g.served(t)
	m, told := g.keptUser(t)
	p.set(nil)
	_, err := m.Version(t.Context())
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Equal(t, fault.Timeout, fault.ClassOf(<-told))
}

// An answer that is of another form than systemd's, or larger, never reaches what
// decodes it, and counts as none.
func TestWhatNoManagerSaysIsNotTakenIn(t *testing.T) {
	huge := strings.Repeat("x", mostUserProperty)
	deep := dbus.MakeVariant("x")
	for range 20 {
		deep = dbus.MakeVariant(deep)
	}
	for name, body := range map[string]any{
		"a long text":          dbus.MakeVariant(huge),
		"variants in variants": deep,
		"many variants":        dbus.MakeVariant(make([]dbus.Variant, 0)),
		"a dictionary":         dbus.MakeVariant(map[string]dbus.Variant{"x": dbus.MakeVariant("x")}),
		"another answer":       []string{"x"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTenants(t)
			p := g.served(t)
			m, _ := g.keptUser(t)
			p.set(only(func(s *session, c *dbus.Message) { s.reply(c, body) }))
			_, err := m.Version(t.Context())
			require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
		})
	}
}

func TestAMessageBeyondTheBoundEndsTheConnection(t *testing.T) {
	g := newTenants(t)
	p := g.served(t)
	_, told := g.keptUser(t)
	s := p.session()
	head := make([]byte, fixedHeader)
	head[0], head[1], head[3] = 'l', kindReply, 1
	binary.LittleEndian.PutUint32(head[4:], mostUserMessage+1)
	_, _ = s.nc.Write(head)
	require.ErrorContains(t, <-told, "more than is taken in")
}

// A manager that answers one call in a while, and never all, does not hold up a look
// for ever.
func TestAnswersThatTrickleEnd(t *testing.T) {
	g := newTenants(t)
	p := g.served(t)
	m, _ := g.keptUser(t)
	p.set(func(s *session, c *dbus.Message) {
		time.Sleep(20 * time.Millisecond)
		answerAll(s, c)
	})
	l, err := m.using(t.Context(), "look")
	require.NoError(t, err)
	require.Equal(t, userTotal, l.total)
	l.total = time.Second
	calls := make([]call, 1000)
	for i := range calls {
		calls[i] = pingCall()
	}
	at := time.Now()
	replies := l.do(t.Context(), calls)
	require.Error(t, replies[999].err)
	require.Less(t, time.Since(at), 10*time.Second)
}

// A flood of signals, names and job ends is held in a bounded room, and read no
// faster than a manager may talk.
func TestAFloodIsHeldInABoundedRoom(t *testing.T) {
	g := newTenants(t)
	p := g.served(t)
	m, _ := g.keptUser(t)
	s := p.session()
	var b bytes.Buffer
	for i := range 3000 {
		n := unit.Name(fmt.Sprintf("%s-%d.service", strings.Repeat("n", 200), i))
		for _, msg := range []*dbus.Message{
			signalOf(pathOfUnit(n), "org.freedesktop.DBus.Properties", "PropertiesChanged", unitIfc, state(strings.Repeat("a", 4000), uint64(i)), []string{}),
			signalOf(busPath, managerIfc, "JobRemoved", uint32(i), dbus.ObjectPath("/org/freedesktop/systemd1/job/1"), string(n), "done"),                //nolint:gosec // few
			signalOf(busPath, managerIfc, "JobRemoved", uint32(i), dbus.ObjectPath("/org/freedesktop/systemd1/job/1"), strings.Repeat("x", 300), "done"), //nolint:gosec // few
			signalOf(busPath, managerIfc, "Unheard", strings.Repeat("x", 10000)),
			{Type: dbus.TypeMethodCall, Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldPath: dbus.MakeVariant(busPath), dbus.FieldMember: dbus.MakeVariant("Call")}},
		} {
			require.NoError(t, msg.EncodeTo(&b, binary.LittleEndian))
		}
	}
	before := heap()
	at, sent := time.Now(), 0
	require.NoError(t, s.nc.SetWriteDeadline(at.Add(4*time.Second)))
	for {
		n, err := s.nc.Write(b.Bytes())
		if sent += n; err != nil {
			break
		}
	}
	require.Less(t, sent, userBurst+8*userRate+8<<20, "it is read no faster")
	require.LessOrEqual(t, len(m.Drain().Jobs), mostJobEnds)
	require.Less(t, heap()-before, int64(64<<20))
}

func signalOf(path dbus.ObjectPath, iface, member string, body ...any) *dbus.Message {
	return &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc) //nolint:gosec // a machine has less
}

// Who follows a few units hears of them, and of what concerns all.
func TestNotifyTellsOfTheUnitsThatItNames(t *testing.T) {
	p, m := quietPeer(t)
	ch := make(chan struct{}, 1)
	m.Notify(ch, "a.service")
	p.session().changed("b.service", unitIfc, state("active", 1))
	p.sync(m)
	require.Empty(t, ch)
	p.session().changed("a.service", unitIfc, state("active", 2))
	p.sync(m)
	require.Len(t, ch, 1)
	<-ch
	m.changes.everything()
	require.Len(t, ch, 1)
	<-ch
	m.Notify(ch)
	m.changes.everything()
	require.Empty(t, ch)
}
