package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
)

// lean is a connection whose signals, but for those that jobs ended, are thrown
// away unread: a floor must not lose its time, and the machine's, to decoding
// what it does not ask for.
type lean struct {
	net.Conn
	in     *bufio.Reader
	framed bool // what comes is messages
	rest   []byte
}

func (l *lean) Write(p []byte) (int, error) {
	l.framed = l.framed || bytes.HasPrefix(p, []byte("BEGIN"))
	return l.Conn.Write(p)
}

func (l *lean) Read(p []byte) (int, error) {
	if !l.framed {
		return l.in.Read(p)
	}
	for len(l.rest) == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a message, little-endian as this machine's manager sends it.
func (l *lean) next() error {
	var head [16]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return err
	}
	fields := (int(binary.LittleEndian.Uint32(head[12:])) + 7) &^ 7
	m := make([]byte, 16+fields+int(binary.LittleEndian.Uint32(head[4:])))
	copy(m, head[:])
	if _, err := io.ReadFull(l.in, m[16:]); err != nil {
		return err
	}
	const signal = 4
	if m[1] != signal || bytes.Contains(m[:16+fields], []byte("JobRemoved")) {
		l.rest = m
	}
	return nil
}
