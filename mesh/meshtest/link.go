package meshtest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Link is a way to a server through a port of its own on the loopback.
type Link struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	to    string                // address of the server; "" while there is none
	open  map[net.Conn]struct{} // both ends
	hole  bool                  // everything is swallowed
	freed chan struct{}         // closed when hole ends
	deaf  bool                  // what the server says is swallowed
	heard chan struct{}         // closed when deaf ends
	count int
}

func newLink(t testing.TB) *Link {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Link{listener: listener, open: map[net.Conn]struct{}{}, freed: make(chan struct{}), heard: make(chan struct{})}
	close(l.freed)
	close(l.heard)
	l.wait.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		l.Swallow(false)
		l.Deafen(false)
		l.Kill()
		l.wait.Wait()
	})
	return l
}

// Address is where the link listens: HOST:PORT.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Dialed is how many connections came in so far.
func (l *Link) Dialed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Kill ends every connection. New ones are let through.
func (l *Link) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}

// Swallow makes the link take everything and pass on nothing, in both
// directions, as a network does that drops packets; connections stay open. False
// lets through again what was held up.
func (l *Link) Swallow(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && !l.hole:
		l.freed = make(chan struct{})
	case !on && l.hole:
		close(l.freed)
	}
	l.hole = on
}

// Deafen is Swallow of what comes from the server alone: it hears everything, and
// nobody hears it.
func (l *Link) Deafen(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && !l.deaf:
		l.heard = make(chan struct{})
	case !on && l.deaf:
		close(l.heard)
	}
	l.deaf = on
}

// aim makes the link lead to an address, or nowhere.
func (l *Link) aim(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

func (l *Link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.count++
		to := l.to
		l.mu.Unlock()
		var dialer net.Dialer
		far, err := dialer.Dial("tcp", to) // nowhere: no address, an error
		if err != nil {
			_ = c.Close()
			continue
		}
		l.mu.Lock()
		l.open[c], l.open[far] = struct{}{}, struct{}{}
		l.mu.Unlock()
		l.wait.Go(func() { l.pass(c, far, false) })
		l.wait.Go(func() { l.pass(far, c, true) })
	}
}

// pass moves bytes from one end to the other until either is closed. Answers are
// what the server says.
func (l *Link) pass(from, to net.Conn, answers bool) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, from)
		delete(l.open, to)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.held(answers)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			l.held(answers)
		}
		if err != nil {
			return
		}
	}
}

// held waits while the link swallows.
func (l *Link) held(answers bool) {
	l.mu.Lock()
	freed, heard := l.freed, l.heard
	l.mu.Unlock()
	<-freed
	if answers {
		<-heard
	}
}
