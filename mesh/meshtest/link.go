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
	count int
}

func newLink(t *testing.T) *Link {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Link{listener: listener, open: map[net.Conn]struct{}{}, freed: make(chan struct{})}
	close(l.freed)
	l.wait.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		l.Swallow(false)
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
		l.wait.Go(func() { l.pass(c, far) })
		l.wait.Go(func() { l.pass(far, c) })
	}
}

// pass moves bytes from one end to the other until either is closed.
func (l *Link) pass(from, to net.Conn) {
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
			l.held()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			l.held()
		}
		if err != nil {
			return
		}
	}
}

// held waits while the link swallows.
func (l *Link) held() {
	l.mu.Lock()
	freed := l.freed
	l.mu.Unlock()
	<-freed
}
