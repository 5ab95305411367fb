package account

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/test/lab"
)

// fakeEnv makes the test binary a program of the account's that stands on the
// manager's socket; its value says what it does there.
const fakeEnv = "STEAD_FAKE_MANAGER"

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeEnv); how != "" {
		fake(how)
		return
	}
	os.Exit(m.Run())
}

// fake listens where the manager does.
func fake(how string) {
	at := systemd.UserAddress(uint32(os.Getuid())) //nolint:gosec // a uid
	if _, err := os.Lstat(at + ".real"); err != nil {
		if err := os.Rename(at, at+".real"); err != nil {
			panic(err)
		}
	}
	_ = os.Remove(at)
	switch how {
	case "a link to the system's":
		must(os.Symlink(systemd.SystemAddress, at))
	case "a pipe":
		must(syscall.Mkfifo(at, 0o600))
	case "nothing":
	default:
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
		must(err)
		l.SetUnlinkOnClose(false)
		if how == "nobody listens" {
			must(l.Close())
			return
		}
		for {
			c, err := l.Accept()
			must(err)
			if how == "a babbler" {
				go babble(c)
			}
		}
	}
}

// babble says all that it can.
func babble(c net.Conn) {
	for {
		if _, err := io.WriteString(c, strings.Repeat("OK ", 1<<16)); err != nil {
			return
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// notes is a ledger.
type notes struct {
	mu     sync.Mutex
	record *plan.Account
}

func (n *notes) Account(a *plan.Account) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record = a
	return nil
}

// node is a real machine, and a Keeper of its login opal.
type node struct {
	t      *testing.T
	uid    int
	home   string
	system *systemd.Manager
	user   *systemd.Manager
	logind *systemd.Logins
	k      *Keeper
	ledger notes
}

func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, "%q: %s", args, out)
	return strings.TrimSpace(string(out))
}

func background(t *testing.T, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

func newNode(t *testing.T) *node {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	n := &node{t: t}
	var err error
	n.system, err = systemd.New(systemd.Options{Logger: log})
	require.NoError(t, err)
	n.logind, err = systemd.NewLogins(systemd.ReaderOptions{Logger: log})
	require.NoError(t, err)
	n.k, err = New(Options{Name: "opal", Node: "ws1", System: n.system, Logind: n.logind, Ledger: &n.ledger, Boot: "boot", Logger: log, Tick: 200 * time.Millisecond})
	require.NoError(t, err)
	n.user, err = systemd.New(systemd.Options{Scope: unit.User, Guard: n.k, Dialed: n.k.Dialed, Redial: n.k.Redial(), Logger: log, CallTimeout: time.Second})
	require.NoError(t, err)
	background(t, n.system.Run)
	background(t, n.logind.Run)
	background(t, n.user.Run)
	background(t, func(ctx context.Context) error { return n.k.Run(ctx, n.user) })
	n.k.Wanted(true)
	return n
}

func (n *node) service() string { return string(serviceOf(n.uid)) }

func (n *node) manager() int {
	n.t.Helper()
	pid, err := strconv.Atoi(run(n.t, "systemctl", "show", "--value", "-p", "MainPID", n.service()))
	require.NoError(n.t, err)
	return pid
}

func (n *node) until(what string, ok func() bool) {
	n.t.Helper()
	require.Eventually(n.t, ok, 30*time.Second, 5*time.Millisecond, what)
}

func (n *node) ready() {
	n.t.Helper()
	n.until("ready", func() bool {
		_, err := n.user.Version(n.t.Context())
		return n.k.Obstacle() == nil && err == nil
	})
}

func (n *node) barred(r report.Reason, says string) {
	n.t.Helper()
	var o *report.Obstacle
	defer func() { n.t.Log(o) }()
	n.until(string(r)+": "+says, func() bool {
		o = n.k.Obstacle()
		return o != nil && o.Reason == r && strings.Contains(o.Text, says)
	})
}

// opal runs a program as the account, below its manager's unit, so that nothing but
// the process itself tells it from the manager.
func (n *node) opal(how string) {
	n.t.Helper()
	unit := "fake" + strconv.FormatInt(time.Now().UnixNano(), 36)
	text := fmt.Sprintf("[Service]\nType=exec\nEnvironment=%q\nExecStart=/usr/local/bin/fake\n", fakeEnv+"="+how)
	file := filepath.Join(n.home, ".config/systemd/user", unit+".service")
	require.NoError(n.t, os.WriteFile(file, []byte(text), 0o644))
	run(n.t, "systemctl", "--user", "-M", "opal@", "daemon-reload")
	run(n.t, "systemctl", "--user", "-M", "opal@", "start", unit+".service")
}

// drop makes the host give up its connection, since the manager does not answer for a
// while.
func (n *node) drop() {
	n.t.Helper()
	pid := n.manager()
	require.NoError(n.t, syscall.Kill(pid, syscall.SIGSTOP))
	_, err := n.user.Version(n.t.Context())
	require.Error(n.t, err)
	require.NoError(n.t, syscall.Kill(pid, syscall.SIGCONT))
}

// put puts something else where the manager's socket is.
func (n *node) put(how string) {
	n.t.Helper()
	n.opal(how)
	at := systemd.UserAddress(uint32(n.uid)) //nolint:gosec // a uid
	n.until("it is put there", func() bool {
		_, err := os.Lstat(at + ".real")
		if _, there := os.Lstat(at); how != "nothing" {
			return err == nil && there == nil
		}
		return err == nil
	})
	time.Sleep(50 * time.Millisecond)
	n.drop()
}

// back puts the manager's socket back.
func (n *node) back() {
	n.t.Helper()
	at := systemd.UserAddress(uint32(n.uid)) //nolint:gosec // a uid
	require.NoError(n.t, os.Rename(at+".real", at))
}

func (n *node) dropIn(text string) {
	n.t.Helper()
	const dir = "/etc/systemd/system/user@.service.d"
	require.NoError(n.t, os.MkdirAll(dir, 0o755))
	file := filepath.Join(dir, "zz.conf")
	if text == "" {
		require.NoError(n.t, os.Remove(file))
	} else {
		require.NoError(n.t, os.WriteFile(file, []byte(text), 0o644))
	}
	run(n.t, "systemctl", "daemon-reload")
}

func (n *node) replaceLogin(from, to string) {
	n.t.Helper()
	data, err := os.ReadFile("/etc/passwd")
	require.NoError(n.t, err)
	data = bytes.ReplaceAll(data, []byte(from), []byte(to))
	require.NoError(n.t, os.WriteFile("/etc/passwd.new", data, 0o644))
	require.NoError(n.t, os.Rename("/etc/passwd.new", "/etc/passwd"))
}

type cause struct {
	is    report.Reason
	says  string
	comes func(n *node)
	goes  func(n *node)
}

// The list, in the order in which it is gone through: each is made on a machine whose
// account was ready, and ends with one that is.
var causes = []struct {
	name string
	cause
}{
	{"account unknown", cause{report.AccountUnknown, `no login "opal"`,
		func(n *node) {
			n.ledger.record = nil
			n.replaceLogin("\nopal:", "\nlapo:")
			n.k.Freed()
			n.k.Wanted(true)
		},
		func(n *node) { n.replaceLogin("\nlapo:", "\nopal:") }}},
	{"uid reused", cause{report.UIDReused, `is that of "lapo" now`,
		func(n *node) { n.replaceLogin("\nopal:", "\nlapo:"); n.k.Wanted(true) },
		func(n *node) { n.replaceLogin("\nlapo:", "\nopal:") }}},
	{"no home", cause{report.AccountHomeless, "there is no folder",
		func(n *node) { require.NoError(n.t, os.Rename(n.home, n.home+".away")); n.k.Wanted(true) },
		func(n *node) { require.NoError(n.t, os.Rename(n.home+".away", n.home)) }}},
	{"F035 home not mounted", cause{report.HomeUnmounted, "home-opal.mount",
		func(n *node) {
			text := fmt.Sprintf("[Mount]\nWhat=tmpfs\nType=tmpfs\nWhere=%s\nOptions=uid=%d,mode=0700\n", n.home, n.uid)
			require.NoError(n.t, os.WriteFile("/etc/systemd/system/home-opal.mount", []byte(text), 0o644))
			require.NoError(n.t, os.MkdirAll("/etc/systemd/system/multi-user.target.wants", 0o755))
			require.NoError(n.t, os.Symlink("../home-opal.mount", "/etc/systemd/system/multi-user.target.wants/home-opal.mount"))
			run(n.t, "systemctl", "daemon-reload")
		},
		func(n *node) { run(n.t, "systemctl", "start", "home-opal.mount") }}},
	{"home of another", cause{report.HomeUnmounted, "belongs to uid 0",
		func(n *node) {
			require.NoError(n.t, os.Remove("/etc/systemd/system/multi-user.target.wants/home-opal.mount"))
			require.NoError(n.t, os.Remove("/etc/systemd/system/home-opal.mount"))
			run(n.t, "systemctl", "stop", "home-opal.mount")
			run(n.t, "systemctl", "daemon-reload")
			run(n.t, "chown", "0:0", n.home)
			n.k.Wanted(true)
		},
		func(n *node) { run(n.t, "chown", "opal:opal", n.home) }}},
	{"F004 lingering off", cause{report.LingerOff, "lingering is off",
		func(n *node) { n.k.SetLinger(Off); run(n.t, "loginctl", "disable-linger", "opal") },
		func(n *node) { n.k.SetLinger(Auto) }}},
	{"manager down", cause{report.ManagerDown, "exit-code, status 1",
		func(n *node) {
			n.dropIn("[Service]\nExecStart=\nExecStart=/bin/false\n")
			run(n.t, "systemctl", "stop", n.service())
		},
		func(n *node) { n.dropIn("") }}},
	{"manager starting", cause{report.ManagerStarting, "activating",
		func(n *node) {
			n.dropIn("[Service]\nExecStartPre=sleep 2\n")
			run(n.t, "systemctl", "stop", n.service())
		},
		func(n *node) { n.dropIn("") }}},
	{"no socket", cause{report.ManagerStarting, "does not listen yet",
		func(n *node) { n.put("nothing") }, (*node).back}},
	{"connection refused", cause{report.ManagerRefused, "refused",
		func(n *node) { n.put("nobody listens") }, (*node).back}},
	{"impostor: a process below the manager's unit", cause{report.Impostor, "listens, and the manager is process",
		func(n *node) { n.put("a listener") }, (*node).back}},
	{"impostor: one that says all that it can", cause{report.Impostor, "listens, and the manager is process",
		func(n *node) { n.put("a babbler") }, (*node).back}},
	{"impostor: a link to the system's manager", cause{report.Impostor, "a link stands on the way",
		func(n *node) { n.put("a link to the system's") }, (*node).back}},
	{"impostor: a pipe", cause{report.Impostor, "it is no socket",
		func(n *node) { n.put("a pipe") }, (*node).back}},
	{"F106 manager hung", cause{report.ManagerHung, "does not answer",
		func(n *node) {
			require.NoError(n.t, syscall.Kill(n.manager(), syscall.SIGSTOP))
			_, err := n.user.Version(n.t.Context())
			require.Error(n.t, err)
		},
		func(n *node) { require.NoError(n.t, syscall.Kill(n.manager(), syscall.SIGCONT)) }}},
}

// TestEachReasonOnARealMachine makes each of them, and its cause go: the account is
// ready again by itself, and the system's manager was never waited for.
func TestEachReasonOnARealMachine(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	n.barred(report.AccountUnknown, "opal") // as a machine that has none yet
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/usr/local/bin/fake", self, 0o755))
	run(t, "useradd", "--create-home", "opal")
	id, err := Logins{}.Lookup("opal")
	require.NoError(t, err)
	n.uid, n.home = id.UID, id.Home
	n.ready()
	require.True(t, n.ledger.record.LingerOurs, "F004: lingering was turned on, and F011: the manager waited for")
	run(t, "runuser", "-u", "opal", "--", "mkdir", "-p", filepath.Join(n.home, ".config/systemd/user"))
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			n.t = t
			c.comes(n)
			n.barred(c.is, c.says)
			at := time.Now()
			_, err := n.system.Version(t.Context())
			require.NoError(t, err)
			require.Less(t, time.Since(at), 5*time.Second, "the system scope goes on")
			c.goes(n)
			n.ready()
		})
	}
	n.t = t
	t.Run("restarted, killed, executed anew, degraded", n.lives)
	t.Run("lingering is undone", n.undone)
}

// lives are what is no obstacle, or none for long.
func (n *node) lives(t *testing.T) {
	n.t = t
	anew := func(what string, end func()) {
		life := n.k.Life()
		end()
		n.until(what, func() bool { return n.k.Life() != life && n.k.Obstacle() == nil })
		n.ready()
	}
	anew("F097: stopped by hand", func() { run(t, "systemctl", "stop", n.service()) })
	anew("killed", func() { require.NoError(t, syscall.Kill(n.manager(), syscall.SIGKILL)) })
	anew("restarted", func() { run(t, "systemctl", "restart", n.service()) })
	life, pid := n.k.Life(), n.manager()
	run(t, "systemctl", "--user", "-M", "opal@", "daemon-reexec")
	n.ready()
	require.Equal(t, life, n.k.Life(), "executed anew, it is the same one")
	require.Equal(t, pid, n.manager())
	file := filepath.Join(n.home, ".config/systemd/user/bad.service")
	require.NoError(t, os.WriteFile(file, []byte("[Service]\nType=oneshot\nExecStart=/bin/false\n"), 0o644))
	run(t, "systemctl", "--user", "-M", "opal@", "daemon-reload")
	_ = exec.Command("systemctl", "--user", "-M", "opal@", "start", "bad.service").Run()
	out, _ := exec.Command("systemctl", "--user", "-M", "opal@", "is-system-running").Output()
	require.Equal(t, "degraded", strings.TrimSpace(string(out)), "F031")
	run(t, "systemctl", "--user", "-M", "opal@", "daemon-reexec") // and it is looked at from the beginning
	n.ready()
}

func (n *node) undone(t *testing.T) {
	n.t = t
	require.True(t, n.k.State().Ours)
	n.k.Wanted(false)
	n.until("lingering is off", func() bool { _, err := os.Stat("/var/lib/systemd/linger/opal"); return err != nil })
	n.until("the manager ended", func() bool {
		return run(t, "systemctl", "show", "--value", "-p", "ActiveState", n.service()) == "inactive"
	})
	n.until("nobody's", func() bool { n.ledger.mu.Lock(); defer n.ledger.mu.Unlock(); return n.ledger.record == nil })
}
