package become

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// Bounds of a program that Run runs.
const (
	mostMemory  = 512 << 20 // bytes of address space
	mostSeconds = 60        // of a processor
)

// Become makes of this process, which is root, the account: uid, gid and groups
// are its own and nothing else is left. It cannot be traced and writes no core, not
// by the account either, since it runs no other program later. It can be ended and
// stopped by the account, and its limits can be changed.
func (l Login) Become() error {
	const op = "become an account"
	if l.UID <= 0 || l.GID < 0 {
		return fault.New(fault.Refused, op, l.Name, errors.New("it is there to be somebody else than root"))
	}
	level()
	for _, act := range []struct {
		what string
		do   func() error
	}{
		{"no new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"groups", func() error { return syscall.Setgroups(l.Groups) }},
		{"gid", func() error { return syscall.Setresgid(l.GID, l.GID, l.GID) }},
		{"uid", func() error { return syscall.Setresuid(l.UID, l.UID, l.UID) }},
		{"dumpable", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		// The kernel forgets it with the uid.
		{"end with the parent", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }},
		{"root is left", left},
	} {
		if err := act.do(); err != nil {
			return fault.New(fault.Failed, op, l.Name, fmt.Errorf("%s: %w", act.what, err))
		}
	}
	return nil
}

// level takes from this process that it is spared when memory is short, as root's
// that started it may be. Who is not spared has nothing to lose.
func level() {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 && text[0] == '-' {
		_ = os.WriteFile(file, []byte("0"), 0) // who keeps it is no danger to others
	}
}

// left is an error when something of root is not.
func left() error {
	if syscall.Setuid(0) == nil || os.Getuid() == 0 || os.Geteuid() == 0 {
		return errors.New("it is not")
	}
	return nil
}

// Run becomes the account and runs a program in the place of this one, as if the
// account had started it, but within narrow bounds. Words of the form NAME=VALUE
// before the program are added to its environment. It returns only when that does
// not succeed.
func (l Login) Run(program ...string) error {
	const op = "run as an account"
	env := []string{pathEnv, "LC_ALL=C.UTF-8", "HOME=" + l.Home, "USER=" + l.Name, "LOGNAME=" + l.Name,
		"XDG_RUNTIME_DIR=/run/user/" + strconv.Itoa(l.UID)}
	for len(program) > 1 && strings.Contains(program[0], "=") {
		env, program = append(env, program[0]), program[1:]
	}
	runtime.LockOSThread() // the parent's end is told to this thread
	defer runtime.UnlockOSThread()
	file, err := exec.LookPath(program[0])
	if err != nil {
		return fault.New(fault.NotFound, op, program[0], err)
	}
	if err := l.Become(); err != nil {
		return err
	}
	for _, limit := range []struct {
		what int
		most uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_CPU, mostSeconds}, {unix.RLIMIT_NPROC, 0}, {unix.RLIMIT_AS, mostMemory}} {
		if err := unix.Setrlimit(limit.what, &unix.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return fault.New(fault.Failed, op, program[0], fmt.Errorf("limit %d: %w", limit.what, err))
		}
	}
	return fault.New(fault.Failed, op, program[0], syscall.Exec(file, program, env))
}
