package systemd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// peer is the manager's end of a private socket, as far as a test scripts it.
type peer struct {
	t      *testing.T
	socket string
	ln     net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	handle  func(*session, *dbus.Message) // nil answers nothing
	deaf    int                           // how many calls at the start of a connection are swallowed
	dials   int
	current *session
}

// session is one connection to the peer.
type session struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
	mu sync.Mutex
}

func newPeer(t *testing.T) *peer {
	p := &peer{t: t, socket: filepath.Join(t.TempDir(), "private")}
	p.handle = answerAll
	p.listen()
	t.Cleanup(func() {
		p.shut()
		p.wg.Wait()
	})
	return p
}

func (p *peer) listen() {
	ln, err := net.Listen("unix", p.socket)
	require.NoError(p.t, err)
	p.mu.Lock()
	p.ln = ln
	p.mu.Unlock()
	p.wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(nc) })
		}
	})
}

// shut closes the socket and the connection.
func (p *peer) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.ln.Close()
	if p.current != nil {
		_ = p.current.nc.Close()
	}
}

func (p *peer) set(handle func(*session, *dbus.Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = handle
}

// swallow lets every connection from now on begin with calls that get no answer.
func (p *peer) swallow(calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = calls
}

func (p *peer) session() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *peer) dialed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

func (p *peer) serve(nc net.Conn) {
	defer nc.Close()
	s := &session{t: p.t, nc: nc, in: bufio.NewReader(nc)}
	p.mu.Lock()
	p.current = s
	p.dials++
	deaf := p.deaf
	p.mu.Unlock()
	if s.auth() != nil {
		return
	}
	for {
		m, err := dbus.DecodeMessage(s.in)
		if err != nil {
			return
		}
		if deaf > 0 {
			deaf--
			continue
		}
		p.mu.Lock()
		handle := p.handle
		p.mu.Unlock()
		if handle != nil {
			handle(s, m)
		}
	}
}

func (s *session) auth() error {
	if _, err := s.in.ReadByte(); err != nil {
		return err
	}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return err
		}
		switch strings.TrimSpace(line) {
		case "AUTH":
			_, err = io.WriteString(s.nc, "REJECTED EXTERNAL\r\n")
		case "AUTH EXTERNAL":
			_, err = io.WriteString(s.nc, "DATA\r\n")
		case "DATA":
			_, err = io.WriteString(s.nc, "OK 0123456789abcdef0123456789abcdef\r\n")
		case "BEGIN":
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) send(m *dbus.Message) {
	var b bytes.Buffer
	require.NoError(s.t, m.EncodeTo(&b, binary.LittleEndian))
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.nc.Write(b.Bytes())
}

func (s *session) reply(to *dbus.Message, body ...any) {
	h := map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(to.Serial())}
	if len(body) > 0 {
		h[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	s.send(&dbus.Message{Type: dbus.TypeMethodReply, Headers: h, Body: body})
}

func (s *session) fail(to *dbus.Message, name, text string) {
	s.send(&dbus.Message{Type: dbus.TypeError, Body: []any{text}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()),
		dbus.FieldErrorName:   dbus.MakeVariant(name),
		dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf("")),
	}})
}

func (s *session) signal(path dbus.ObjectPath, iface, member string, body ...any) {
	s.send(&dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}})
}

func (s *session) jobRemoved(id uint32, n unit.Name, result string) {
	s.signal(busPath, managerIfc, "JobRemoved", id, dbus.ObjectPath(fmt.Sprint("/org/freedesktop/systemd1/job/", id)), string(n), result)
}

func (s *session) changed(n unit.Name, iface string, values map[string]dbus.Variant) {
	s.signal(pathOfUnit(n), "org.freedesktop.DBus.Properties", "PropertiesChanged", iface, values, []string{})
}

func member(m *dbus.Message) string {
	s, _ := m.Headers[dbus.FieldMember].Value().(string)
	return s
}

// answerAll answers pings, jobs, reloads, lists of inactive units that nothing
// is known of, and refuses the rest.
func answerAll(s *session, m *dbus.Message) {
	switch member(m) {
	case "Ping", "Reload", "ResetFailedUnit":
		s.reply(m)
	case "StartUnit":
		s.reply(m, dbus.ObjectPath("/org/freedesktop/systemd1/job/7"))
	case "ListUnitsByNames":
		type sent struct {
			Name, Description, Load, Active, Sub, Following string
			Path                                            dbus.ObjectPath
			JobID                                           uint32
			JobType                                         string
			JobPath                                         dbus.ObjectPath
		}
		rows := []sent{}
		names, _ := m.Body[0].([]string)
		for _, n := range names {
			rows = append(rows, sent{Name: n, Load: "loaded", Active: "inactive", Sub: "dead", Path: pathOfUnit(unit.Name(n)), JobPath: "/"})
		}
		s.reply(m, rows)
	default:
		s.fail(m, "org.freedesktop.DBus.Error.UnknownObject", "no such thing")
	}
}

// only answers pings, and gives all other calls to handle.
func only(handle func(*session, *dbus.Message)) func(*session, *dbus.Message) {
	return func(s *session, m *dbus.Message) {
		if member(m) == "Ping" {
			s.reply(m)
			return
		}
		if handle != nil {
			handle(s, m)
		}
	}
}

// manager returns a Manager in front of p that runs until the test ends, with
// short timeouts.
func (p *peer) manager() *Manager {
	m, err := New(Options{
		Address: p.socket, Logger: discard(),
		CallTimeout: 300 * time.Millisecond, ReloadTimeout: time.Second, ConnectWait: 200 * time.Millisecond,
	})
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		require.NoError(p.t, <-done)
	})
	return m
}

func connected(t *testing.T, m *Manager) {
	t.Helper()
	require.Eventually(t, m.Connected, 10*time.Second, time.Millisecond)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
