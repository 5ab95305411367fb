package become

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"syscall"

	"stead/host/fault"
)

// Login is an account, as passwd(5) and group(5) have it.
type Login struct {
	Name   string
	UID    int // not 0
	GID    int
	Groups []int // further ones
	Home   string
}

// String is what Parse reads. It is in the arguments of a process and nothing
// secret.
func (l Login) String() string {
	groups := make([]string, len(l.Groups))
	for i, g := range l.Groups {
		groups[i] = strconv.Itoa(g)
	}
	return fmt.Sprintf("%s:%d:%d:%s:%s", l.Name, l.UID, l.GID, strings.Join(groups, ","), l.Home)
}

// Parse reads a Login. It refuses root.
func Parse(text string) (Login, error) {
	bad := func(why string) (Login, error) {
		return Login{}, fault.New(fault.Invalid, "become an account", text, errors.New(why))
	}
	f := strings.SplitN(text, ":", 5)
	if len(f) != 5 {
		return bad("NAME:UID:GID:GROUPS:HOME is wanted")
	}
	ids := f[1:3]
	if f[3] != "" {
		ids = append(ids[:2:2], strings.Split(f[3], ",")...)
	}
	var numbers []int
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil || n == 1<<32-1 {
			return bad("an id is no number")
		}
		numbers = append(numbers, int(n))
	}
	l := Login{Name: f[0], UID: numbers[0], GID: numbers[1], Groups: numbers[2:], Home: f[4]}
	switch {
	case l.UID == 0:
		return bad("it is there to be somebody else than root")
	case l.Name == "" || !path.IsAbs(l.Home):
		return bad("a name and a home are wanted")
	}
	return l, nil
}

// Command is a process of this program's own file, with nothing of the
// environment, that ends with ctx and with the one that starts it. Its arguments are args and
// --as with l, and it is root until it calls Become or Run.
func (l Login) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(args[:len(args):len(args)], "--as="+l.String())...)
	// No HOME: nothing of the account's is read before it is the account.
	cmd.Env, cmd.Dir = []string{pathEnv, "LANG=C.UTF-8"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Running is a Command that calls Run with the program, which follows --as and --.
func (l Login) Running(ctx context.Context, args []string, program ...string) *exec.Cmd {
	cmd := l.Command(ctx, args...)
	cmd.Args = append(append(cmd.Args, "--"), program...)
	return cmd
}

const pathEnv = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
