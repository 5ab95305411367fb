package systemd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// socket gives godbus a buffered reader and bounded writes. A write that does
// not get through in time leaves half a message behind, so it ends the socket.
//
// It shows each message that comes to take first, and what that keeps to itself
// godbus never sees. While units start, most messages are signals of changed properties
// of which a few are of interest; godbus decodes all of each by reflection, which
// takes fifty times as long and as much of the machine as the units need.
type socket struct {
	net.Conn
	in      *bufio.Reader
	timeout time.Duration
	most    uint32                      // bytes of a message's body
	take    func(message []byte) []byte // what godbus is to see of it, nil for nothing; in order with all that it sees

	throttle *throttle             // nil where all is read as it comes
	greeting greeting              // what is read before that
	odd      atomic.Pointer[error] // what came that is no message of a manager, and ended it; nil for nothing
	framed   atomic.Bool           // authentication is over; from there on all is messages
	buf      []byte                // of one message
	rest     []byte                // what of it godbus has not read
}

const (
	fixedHeader = 16
	mostFields  = 1 << 20   // bytes of a message's header fields
	mostMessage = 128 << 20 // the limit of the D-Bus Specification
	keepBuffer  = 1 << 20   // a larger one is not kept for the next message
)

func newSocket(nc net.Conn, timeout time.Duration, most uint32, take func([]byte) []byte) *socket {
	in := bufio.NewReaderSize(nc, 64<<10)
	return &socket{Conn: nc, in: in, timeout: timeout, most: most, take: take, greeting: greeting{in, mostGreeting}}
}

// bound makes s take in no more than a user manager says, until gone.
func (s *socket) bound(gone <-chan struct{}) {
	s.most = mostUserMessage
	s.throttle = &throttle{left: userBurst, gone: gone}
}

// Read implements io.Reader. It is called by one goroutine at a time.
func (s *socket) Read(p []byte) (int, error) {
	if !s.framed.Load() {
		return s.greeting.Read(p)
	}
	for len(s.rest) == 0 {
		m, err := s.next()
		if errors.Is(err, errOdd) {
			s.odd.Store(&err) // godbus keeps it to itself
		}
		if err != nil {
			return 0, err
		}
		if s.throttle != nil {
			s.throttle.take(len(m))
		}
		s.rest = s.take(m)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads one whole message. It holds until the next call.
func (s *socket) next() ([]byte, error) {
	if cap(s.buf) < fixedHeader || cap(s.buf) > keepBuffer {
		s.buf = make([]byte, 4<<10)
	}
	head := s.buf[:fixedHeader]
	if _, err := io.ReadFull(s.in, head); err != nil {
		return nil, err
	}
	order, err := orderOf(head)
	if err != nil {
		return nil, err
	}
	body, fields := order.Uint32(head[4:]), order.Uint32(head[12:])
	if fields > mostFields || body > s.most {
		return nil, fmt.Errorf("%w: a message of %d and %d bytes, more than is taken in", errOdd, fields, body)
	}
	size := fixedHeader + (int(fields)+7)&^7 + int(body)
	if cap(s.buf) < size {
		s.buf = append(make([]byte, 0, size), head...)
	}
	m := s.buf[:size]
	_, err = io.ReadFull(s.in, m[fixedHeader:])
	return m, err
}

func (s *socket) Write(p []byte) (int, error) {
	if !s.framed.Load() && bytes.HasPrefix(p, []byte("BEGIN")) {
		s.framed.Store(true) // godbus begins to read messages after this write
	}
	if err := s.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(p)
	if err != nil {
		_ = s.Conn.Close()
	}
	return n, err
}

// errOdd ends a connection over which something else than messages comes.
var errOdd = errors.New("what it says is no message of a manager")

// ended is why the connection ended, lost where nothing is known.
func (s *socket) ended(lost error) error {
	if odd := s.odd.Load(); odd != nil {
		return *odd
	}
	return lost
}

// byteOrder is the one of a message.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func orderOf(message []byte) (byteOrder, error) {
	switch message[0] {
	case 'l':
		return binary.LittleEndian, nil
	case 'B':
		return binary.BigEndian, nil
	}
	return nil, errOdd
}

// cursor reads a message (D-Bus Specification, "Marshaling"). Once bad it stays
// so, and reads zeros.
type cursor struct {
	b     []byte
	at    int
	order binary.ByteOrder
	bad   bool
}

// take returns the next n bytes after a boundary.
func (c *cursor) take(n, boundary int) []byte {
	c.at = (c.at + boundary - 1) &^ (boundary - 1)
	if c.bad || n < 0 || c.at > len(c.b) || n > len(c.b)-c.at {
		c.bad = true
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

func (c *cursor) u8() byte {
	if b := c.take(1, 1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4, 4); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8, 8); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// text reads a string or an object path.
func (c *cursor) text() []byte { return c.ended(int(c.u32())) }

func (c *cursor) signature() []byte { return c.ended(int(c.u8())) }

// ended reads n bytes and the zero behind them.
func (c *cursor) ended(n int) []byte {
	b := c.take(n, 1)
	c.u8()
	return b
}

// deepest is how far types may be nested, as the specification has it.
const deepest = 64

// skip passes over one value of the first type in sig and returns what comes
// behind that type.
func (c *cursor) skip(sig []byte, depth int) []byte {
	if len(sig) == 0 || depth > deepest {
		c.bad = true
	}
	if c.bad {
		return nil
	}
	rest := sig[1:]
	switch sig[0] {
	case 'y':
		c.take(1, 1)
	case 'n', 'q':
		c.take(2, 2)
	case 'b', 'i', 'u', 'h':
		c.take(4, 4)
	case 'x', 't', 'd':
		c.take(8, 8)
	case 's', 'o':
		c.text()
	case 'g':
		c.signature()
	case 'v':
		c.skip(c.signature(), depth+1)
	case 'a':
		return c.skipArray(rest)
	case '(', '{':
		c.take(0, 8)
		for !c.bad && len(rest) > 0 && rest[0] != ')' && rest[0] != '}' {
			rest = c.skip(rest, depth+1)
		}
		if len(rest) == 0 {
			c.bad = true
			return nil
		}
		return rest[1:]
	default:
		c.bad = true
	}
	return rest
}

// skipArray passes over an array whose element type begins sig.
func (c *cursor) skipArray(sig []byte) []byte {
	n := int(c.u32())
	if len(sig) == 0 {
		c.bad = true
		return nil
	}
	switch sig[0] {
	case 'x', 't', 'd', '(', '{':
		c.take(0, 8)
	}
	c.take(n, 1)
	return single(sig)
}

// single returns what comes behind the first type in sig.
func single(sig []byte) []byte {
	open := 0
	for i, t := range sig {
		switch t {
		case '(', '{':
			open++
		case ')', '}':
			open--
		}
		if open == 0 && t != 'a' {
			return sig[i+1:]
		}
	}
	return nil
}
