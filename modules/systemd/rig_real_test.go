package systemd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	journald "stead/host/journal"
	manager "stead/host/systemd"
	"stead/host/unit"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/test/lab"
)

const (
	// binary is where the test binary lies in the node, so that the unit files of the
	// root helper are tried as they are.
	binary = "/usr/local/bin/stead"
	// servedEnv tells the test binary that it is the runtime, which has no rights.
	servedEnv = "STEAD_SEAT_SERVED"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "escalate" {
		if err := runHelper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// runHelper is the root helper as its service starts it.
func runHelper() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	m, err := manager.New(manager.Options{Logger: log})
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	s, err := escalate.New(escalate.Options{
		Listener: l.(*net.UnixListener), Manager: m, Calls: escalate.CallsPath, Logger: log, Login: uidOf,
		Users: func(g *escalate.Guard, dialed func(error)) (escalate.Users, error) {
			um, err := manager.New(manager.Options{Scope: unit.User, Guard: g, Dialed: dialed, Logger: log})
			if err != nil {
				return escalate.Users{}, err
			}
			ur, err := manager.NewReader(manager.ReaderOptions{Guard: g, Logger: log})
			return escalate.Users{Manager: um, Reader: ur}, err
		},
	})
	if err != nil {
		return err
	}
	go func() { _ = m.Run(context.WithoutCancel(ctx)) }()
	nc, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "READY=1"); err != nil {
		return err
	}
	return s.Run(ctx)
}

func uidOf(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fault.New(fault.NotFound, "look up", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err
}

// served lets a test run itself as the runtime of a lab node: as the main process
// of stead-runtime.service, in an account without rights, beside the root helper.
// Prepare makes the node ready, as root. It returns false outside, where the test
// has to return.
func served(t *testing.T, prepare func(run func(args ...string) string)) bool {
	if !lab.Inside(t, lab.Options{}) {
		return false
	}
	if os.Getenv(servedEnv) != "" {
		require.NotZero(t, os.Geteuid())
		return true
	}
	text, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(binary), 0o755))
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	put(t, "/etc/systemd/system/stead-escalate.socket", escalate.SocketUnit())
	put(t, "/etc/systemd/system/stead-escalate.service", escalate.ServiceUnit())
	// dbus-daemon hangs up on accounts that it cannot look up, as those of DynamicUser=
	// where the machine lacks libnss-systemd.
	put(t, "/run/stead-account.conf", "u stead - \"stead\"\n")
	run := here(t)
	run("systemd-sysusers", "/run/stead-account.conf")
	run("systemctl", "daemon-reload")
	run("systemctl", "start", "stead-escalate.socket")
	prepare(run)
	args := []string{"systemd-run", "--quiet", "--pipe", "--wait", "--unit=stead-runtime.service", "-p", "User=stead", "-p", "DynamicUser=yes",
		"-p", "SupplementaryGroups=systemd-journal", "-p", "NoNewPrivileges=yes", "-p", "CapabilityBoundingSet=", "--setenv=" + servedEnv + "=1"}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "STEAD_") || strings.HasPrefix(e, "PATH=") {
			args = append(args, "--setenv="+e)
		}
	}
	out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], binary, "-test.run=^"+t.Name()+"$", "-test.v")...).CombinedOutput()
	t.Log(string(out))
	if err != nil {
		t.Log(run("journalctl", "--no-pager", "-u", "stead-escalate"))
	}
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "it ran there")
	return false
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// here runs commands on this machine that must succeed.
func here(t *testing.T) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Stdout, c.Stderr = &stdout, &stderr
		require.NoError(t, c.Run(), "%.100q: %s%s", args, stdout.String(), stderr.String())
		return stdout.String()
	}
}

// realRig is a module over this machine's systemd, journal and root helper.
func realRig(t *testing.T, declared ...wire.DeclaredUnit) rig {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := manager.NewReader(manager.ReaderOptions{Logger: log})
	require.NoError(t, err)
	c, err := escalate.NewClient(escalate.ClientOptions{Logger: log})
	require.NoError(t, err)
	for _, run := range []func(context.Context) error{r.Run, c.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.Wait(ctx))
	return newRig(t, Options{Reader: r, User: c.User(), Journal: journald.Reader{}, UserJournal: userJournal, Acts: c, Declared: func() []wire.DeclaredUnit { return declared }})
}

func userJournal(uid uint32) Journal { return journald.Reader{Scope: unit.User, UID: uid} }
