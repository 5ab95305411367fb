package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// Guard knows whose user manager it is that is dialed. The folder of its socket
// belongs to the account, and so anything may lie there and anybody listen.
//
// It keeps out other processes; it does not make the manager itself trustworthy.
// Its account may trace it, and may let it listen for a service of its own, so
// what it says is bounded, and believed of that account's units alone.
type Guard interface {
	// UID is the account's at this moment; the error says why there is none.
	UID() (uint32, error)
	// Peer returns an error when the process that listens, or listened, is not the
	// account's manager. It is asked before a byte is sent.
	Peer(ctx context.Context, pid, uid uint32) error
}

// userRuntime is where systemd-logind(8) makes a folder for each uid.
const userRuntime = "/run/user"

// UserAddress is the private socket of the user manager of uid.
func UserAddress(uid uint32) string { return fmt.Sprintf("%s/%d/%s", userRuntime, uid, privateSocket) }

const privateSocket = "systemd/private"

// door is the way to the private socket of a user manager.
type door struct {
	root    string // userRuntime; another for tests
	guard   Guard
	opening atomic.Bool // an open has not returned
}

// connect returns a connection to the account's manager. Every error has a class
// that says what stands there: NotFound nothing, Denied something else than the
// manager, Refused one that turns root away, Timeout one that does not answer.
func (d *door) connect(ctx context.Context) (net.Conn, error) {
	uid, err := d.guard.UID()
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("%s/%d/%s", d.root, uid, privateSocket)
	f, err := d.open(ctx, uid)
	if err != nil {
		return nil, standing("open", at, err)
	}
	defer f.Close()
	var dialer net.Dialer
	// The way over the descriptor leads to what was opened, whatever the account
	// puts there meanwhile.
	nc, err := dialer.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(f.Fd())))
	if err != nil {
		return nil, standing("connect", at, err)
	}
	if err := d.check(ctx, nc); err != nil {
		_ = nc.Close()
		return nil, standing("connect", at, err)
	}
	return nc, nil
}

// check asks the guard about who listens at the other end of nc.
func (d *door) check(ctx context.Context, nc net.Conn) error {
	raw, err := nc.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return d.guard.Peer(ctx, uint32(cred.Pid), cred.Uid) //nolint:gosec // a pid is positive
}

// open opens the socket as a path, which runs nothing. A file system of the
// account's own making can let that wait for ever: it is given up when ctx ends,
// and not tried again before it has returned.
func (d *door) open(ctx context.Context, uid uint32) (*os.File, error) {
	if !d.opening.CompareAndSwap(false, true) {
		return nil, os.ErrDeadlineExceeded
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := d.resolve(uid)
		d.opening.Store(false)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done():
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// resolve follows no link and, below the account's folder, enters no other file
// system.
func (d *door) resolve(uid uint32) (*os.File, error) {
	root, err := unix.Open(d.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	const stay = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS
	dir, err := unix.Openat2(root, strconv.FormatUint(uint64(uid), 10),
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: stay})
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, privateSocket, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: stay | unix.RESOLVE_NO_XDEV})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), privateSocket)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		_ = f.Close()
		return nil, fault.New(fault.Denied, "", "", errors.New("it is no socket"))
	case st.Uid != uid:
		_ = f.Close()
		return nil, fault.New(fault.Denied, "", "", fmt.Errorf("it belongs to uid %d", st.Uid))
	}
	return f, nil
}

// standing gives an error of the way to a user manager the class that says what
// stands there.
func standing(op, at string, err error) error {
	class := fault.Refused
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		class = f.Class
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		class = fault.NotFound
	case errors.Is(err, unix.ELOOP):
		class, err = fault.Denied, errors.New("a link stands on the way")
	case errors.Is(err, unix.EXDEV):
		class, err = fault.Denied, errors.New("another file system is mounted on the way")
	case errors.Is(err, unix.EPROTOTYPE), errors.Is(err, errTalks):
		class = fault.Denied
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.EAGAIN),
		errors.Is(err, errHung), errors.Is(err, errSilent):
		class = fault.Timeout
	case errors.Is(err, context.Canceled):
		class = fault.Canceled
	case errors.Is(err, errLost), errors.Is(err, errUnsent):
		class = fault.Unavailable
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, unix.EPIPE):
		err = errors.New("it hangs up")
	}
	return fault.New(class, op, at, err)
}
