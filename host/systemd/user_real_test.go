package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
	"stead/test/lab"
)

// opal is an account that nobody is logged in to.
type opal struct {
	uid    uint32
	home   string
	system *Manager // states who its manager is
}

func newOpal(t *testing.T) *opal {
	t.Helper()
	if _, err := user.Lookup("opal"); err != nil {
		run(t, "useradd", "--create-home", "opal")
		run(t, "loginctl", "enable-linger", "opal")
	}
	u, err := user.Lookup("opal")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(t, err)
	o := &opal{uint32(uid), u.HomeDir, connect(t, Options{})}
	o.until(t, "its manager runs", func() bool { return o.status(t).Active == unit.Active })
	return o
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, "%q: %s", args, out)
	return string(out)
}

func (o *opal) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 5*time.Millisecond, what)
}

func (o *opal) service() unit.Name { return unit.Name(fmt.Sprintf("user@%d.service", o.uid)) }

func (o *opal) status(t *testing.T) unit.Status {
	t.Helper()
	s, err := o.system.Observe(t.Context(), []unit.Name{o.service()})
	require.NoError(t, err)
	return s[0]
}

// UID implements Guard.
func (o *opal) UID() (uint32, error) { return o.uid, nil }

// Peer implements Guard.
func (o *opal) Peer(ctx context.Context, pid, uid uint32) error {
	s, err := o.system.Observe(ctx, []unit.Name{o.service()})
	switch {
	case err != nil:
		return err
	case s[0].MainPID != pid || uid != o.uid:
		return fault.New(fault.Denied, "", "", fmt.Errorf("process %d of uid %d listens, not %d", pid, uid, s[0].MainPID))
	}
	return nil
}

// TestContractOfAUserManager holds a Manager in front of the real manager of an
// account that nobody is logged in to to the contract, as root and without
// anything of the account's environment.
func TestContractOfAUserManager(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	for _, v := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		require.Empty(t, os.Getenv(v), "F001")
	}
	systemdtest.Contract(t, func(t *testing.T) systemdtest.Env {
		o := newOpal(t)
		dir := o.home + "/.config/systemd/user"
		spare := o.home + "/spare" + fmt.Sprint(time.Now().UnixNano())
		run(t, "runuser", "-u", "opal", "--", "mkdir", "-p", dir, spare)
		m := func() *Manager { return connect(t, Options{Scope: unit.User, Guard: o}) }
		r, err := NewReader(ReaderOptions{Guard: o, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		require.NoError(t, err)
		keep(t, r.Run)
		return systemdtest.Env{Manager: m(), Reader: r, Other: other{m()}, Dir: dir, Spare: spare, Target: "default.target"}
	})
}

// keep lets something run until the test ends.
func keep(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// F014: root connects to the session bus of another user, and is turned away.
// stead: does not use that bus; it connects to the private socket of the account's
// manager, which lets root in as uid 0, and to nobody else on it.
//
// F017: the first call on a new connection to a private socket is swallowed.
// stead: pings until it is answered, before any real call.
func TestF014F017RootReachesTheManagerOfAnAccountByItsPrivateSocket(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	o := newOpal(t)
	m, err := New(Options{Scope: unit.User, Guard: o, Logger: discard()})
	require.NoError(t, err)
	for i := range 40 {
		l, err := m.dial(t.Context())
		require.NoError(t, err, i)
		require.NoError(t, l.one(t.Context(), get(busPath, managerIfc, "Version")).err)
		l.drop(errLost)
	}
	path, err := connect(t, Options{Scope: unit.User, Guard: o}).UnitPath(t.Context())
	require.NoError(t, err)
	require.Contains(t, path, o.home+"/.config/systemd/user")
}
