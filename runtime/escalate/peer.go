package escalate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"stead/host/unit"
)

// process is a process by what the kernel says of it.
type process struct {
	pid int32
	uid uint32
}

// is reports whether p is the main process of a unit, as the manager states it.
func (p process) is(main unit.Process) bool {
	return main.PID != 0 && main.UID != unit.NoUID && int64(p.pid) == int64(main.PID) && p.uid == main.UID
}

func (p process) String() string { return fmt.Sprintf("process %d of uid %d", p.pid, p.uid) }

// connector is the process that connected, and has every message say which
// process sent it.
func connector(nc *net.UnixConn) (process, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return process{}, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1); failed == nil {
			cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return process{}, err
	}
	return process{cred.Pid, cred.Uid}, nil
}

// strangerError says that a message was not sent by the process that connected.
type strangerError struct{ sender process }

func (e *strangerError) Error() string { return e.sender.String() + " sent a message" }

// errLong is the error for a line beyond the bound.
var errLong = errors.New("a line is too long")

// lines reads lines that one process sent.
type lines struct {
	nc   *net.UnixConn
	from process
	buf  []byte // what was read
	next int    // where in it the next line begins
	size int    // of what was read
	oob  []byte
}

func newLines(nc *net.UnixConn, from process) *lines {
	// There is room for who sent a message and for nothing else: file descriptors
	// that come along are not installed.
	return &lines{nc: nc, from: from, buf: make([]byte, maxAsked), oob: make([]byte, unix.CmsgSpace(unix.SizeofUcred))}
}

// line returns the next line, which holds until the next call. The kernel never
// joins what two processes sent into one read (unix(7), SO_PASSCRED).
func (l *lines) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.next:l.size], '\n'); i >= 0 {
			line := l.buf[l.next : l.next+i]
			l.next += i + 1
			return line, nil
		}
		if l.next > 0 {
			l.size = copy(l.buf, l.buf[l.next:l.size])
			l.next = 0
		}
		if l.size == len(l.buf) {
			return nil, errLong
		}
		n, oobn, _, _, err := l.nc.ReadMsgUnix(l.buf[l.size:], l.oob)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.EOF
		}
		if sender, err := senderOf(l.oob[:oobn]); err != nil {
			return nil, err
		} else if sender != l.from {
			return nil, &strangerError{sender}
		}
		l.size += n
	}
}

func senderOf(oob []byte) (process, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return process{}, os.NewSyscallError("parse control message", err)
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			return process{cred.Pid, cred.Uid}, nil
		}
	}
	return process{}, errors.New("a message does not say who sent it")
}
