package escalate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/systemd"
	"stead/host/unit"
)

// The test binary lies in the node as /usr/local/bin/stead, so that the unit
// files are tried as they are. These are its commands there.
const (
	binary  = "/usr/local/bin/stead"
	control = "/run/stead-runtime/control"
)

const runtimeUnit = `[Unit]
Wants=stead-escalate.socket
After=stead-escalate.socket
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStart=/usr/local/bin/stead runtime run
Restart=always
RestartSec=20ms
User=stead
DynamicUser=yes
SupplementaryGroups=systemd-journal
RuntimeDirectory=stead-runtime
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
`

// commands are what the binary does when it is started as a unit.
func commands() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{"escalate": runHelper, "runtime": runRuntime, "exec": runAfterExec}
}

func runCommand(f func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := f(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func ready() error {
	nc, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = io.WriteString(nc, "READY=1")
	return err
}

// runHelper is the helper as its service starts it.
func runHelper(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	m, err := systemd.New(systemd.Options{Logger: log})
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	s, err := New(Options{Listener: l.(*net.UnixListener), Manager: m, Calls: CallsPath, Logger: log})
	if err != nil {
		return err
	}
	go func() { _ = m.Run(context.WithoutCancel(ctx)) }()
	if err := ready(); err != nil {
		return err
	}
	return s.Run(ctx)
}

// order is what a test asks the runtime for.
type order struct {
	What    string
	Request Request
	For     string
	Wait    time.Duration
}

// told is its answer.
type told struct {
	Text  string
	Out   Outcome
	Class fault.Class
	Err   string
	Late  []Late
}

// runRuntime is a runtime that does what it is told on a socket of its own.
func runRuntime(ctx context.Context) error {
	var l later
	c, err := NewClient(ClientOptions{Late: l.take, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	go func() { _ = c.Run(ctx) }()
	_ = os.Remove(control)
	ln, err := net.Listen("unix", control)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	for {
		nc, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer nc.Close()
			var o order
			if json.NewDecoder(nc).Decode(&o) == nil {
				_ = json.NewEncoder(nc).Encode(o.follow(ctx, c, &l))
			}
		}()
	}
}

func (o order) follow(ctx context.Context, c *Client, l *later) told {
	switch o.What {
	case "do":
		ctx, cancel := context.WithTimeout(WithFor(ctx, o.For), o.Wait)
		defer cancel()
		out, err := c.Do(ctx, o.Request)
		t := told{Out: out, Class: fault.ClassOf(err)}
		if err != nil {
			t.Err = err.Error()
		}
		return t
	case "late":
		return told{Late: l.seen()}
	case "child":
		return told{Text: child("connects", nil)}
	case "inherit":
		c.mu.Lock()
		f, err := c.nc.(*net.UnixConn).File()
		c.mu.Unlock()
		if err != nil {
			return told{Text: err.Error()}
		}
		defer f.Close()
		return told{Text: child("inherits", f)}
	case "descriptors":
		out, err := exec.Command("/bin/ls", "-l", "/proc/self/fd").CombinedOutput()
		return told{Text: fmt.Sprint(string(out), err)}
	case "exec":
		err := syscall.Exec(binary, []string{binary, "exec"}, os.Environ())
		return told{Text: err.Error()}
	}
	return told{Text: "what?"}
}

func child(what string, inherited *os.File) string {
	c := exec.Command(binary)
	c.Env = append(os.Environ(), otherEnv+"="+what, "SOCKET="+SocketPath)
	if inherited != nil {
		c.ExtraFiles = []*os.File{inherited}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return strings.TrimSpace(string(out))
}

// runAfterExec is what the main process becomes when it execs.
func runAfterExec(ctx context.Context) error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	sockets := 0
	for _, fd := range fds {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, "socket:") && fd.Name() > "2" {
			sockets++
		}
	}
	text := fmt.Sprintf("%d sockets, knock: %s", sockets, knock(SocketPath))
	if err := os.WriteFile("/run/stead-runtime/exec", []byte(text), 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// node is the lab node that the test is in.
type node struct{ t *testing.T }

func newNode(t *testing.T) node {
	n := node{t}
	text, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(binary), 0o755))
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	n.unit("stead-escalate.socket", SocketUnit())
	n.unit("stead-escalate.service", ServiceUnit())
	n.unit("stead-runtime.service", runtimeUnit)
	n.unit("a.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
	n.unit("slow.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 3\n")
	n.run("systemctl", "daemon-reload")
	n.run("systemctl", "start", "stead-escalate.socket", "stead-runtime.service")
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("journalctl", "--no-pager", "-o", "short-precise", "-u", "stead-escalate", "-u", "stead-runtime", "-u", "stead-escalate.socket").CombinedOutput()
			t.Log(string(out))
		}
	})
	return n
}

func (n node) unit(name, text string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(filepath.Join("/etc/systemd/system", name), []byte(text), 0o644))
}

func (n node) run(args ...string) string {
	n.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(n.t, err, "%s: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (n node) show(name, property string) string {
	n.t.Helper()
	return n.run("systemctl", "show", "-P", property, name)
}

func (n node) pid(name string) int {
	n.t.Helper()
	pid, err := strconv.Atoi(n.show(name, "MainPID"))
	require.NoError(n.t, err)
	return pid
}

// ask tells the runtime what to do, once it listens.
func (n node) ask(o order) told {
	n.t.Helper()
	if o.Wait == 0 {
		o.Wait = 20 * time.Second
	}
	var nc net.Conn
	require.Eventually(n.t, func() bool {
		var err error
		nc, err = net.Dial("unix", control)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	defer nc.Close()
	require.NoError(n.t, json.NewEncoder(nc).Encode(o))
	var answer told
	if err := json.NewDecoder(bufio.NewReader(nc)).Decode(&answer); err != nil {
		answer.Err = err.Error()
	}
	return answer
}

func (n node) do(act Act, name unit.Name) told {
	n.t.Helper()
	return n.ask(order{What: "do", Request: Request{Act: act, Unit: name}, For: "operator alice"})
}

// as runs a command as the account of the runtime, with groups.
func (n node) as(groups []uint32, args ...string) (string, error) {
	n.t.Helper()
	var st syscall.Stat_t
	require.NoError(n.t, syscall.Stat("/run/stead-runtime/control", &st))
	require.NotZero(n.t, st.Uid)
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), otherEnv+"=connects", "SOCKET="+SocketPath)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid, Groups: groups}}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (n node) journalGroup() uint32 {
	n.t.Helper()
	fields := strings.Split(n.run("getent", "group", "systemd-journal"), ":")
	gid, err := strconv.ParseUint(fields[2], 10, 32)
	require.NoError(n.t, err)
	return uint32(gid)
}
