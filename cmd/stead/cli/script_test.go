package cli_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stead/cmd/stead/cli"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts and pages")

// TestMain lets this binary stand in for stead: as it is, as a user without
// rights, and on a machine without systemd.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"stead":         func() { os.Exit(stead(nil)) },
		"stead-user":    func() { os.Exit(stead(becomeUser())) },
		"stead-nowhere": func() { os.Exit(stead(hideSystemd())) },
	})
}

// stead is main with a version, a clock and a width of the script's. With an error of the
// preparation it ends with a code that is none of stead's.
func stead(err error) int {
	if err != nil {
		os.Stderr.WriteString("stand-in: " + err.Error() + "\n")
		return 99
	}
	o := cli.Options{Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Version: "1.2.3", Env: os.Getenv}
	if at, err := time.Parse(time.RFC3339, os.Getenv("NOW")); err == nil {
		o.Now = func() time.Time { return at }
	}
	if n, err := strconv.Atoi(os.Getenv("WIDTH")); err == nil {
		o.Width = n
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return cli.Main(ctx, o)
}

func becomeUser() error {
	const nobody = 65534
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}

// hideSystemd mounts an empty folder over /run, which this process alone sees.
func hideSystemd() error {
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return err
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount("none", "/run", "tmpfs", 0, "")
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("NOW", "2026-03-01T12:00:00Z")
			// stead-user must get through to its files.
			return errors.Join(newWorld(e), os.Chmod(filepath.Dir(e.WorkDir), 0o755), os.Chmod(e.WorkDir, 0o755))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "put": put, "repeat": repeat, "hold": hold, "serve": serve,
			"mesh": meshCommand, "mint": mint, "node": node, "mkfifo": mkfifo, "runtime": runtimeOf, "await": await, "append": appendFile,
		},
	})
}

// exits CODE COMMAND [ARG]... runs a command that must end with this exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// put FILE TEXT writes a file; TEXT has the escapes of Go.
func put(ts *testscript.TestScript, _ bool, args []string) {
	text, err := unescape(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// repeat FILE N TEXT writes TEXT, with the escapes of Go, N times, each time with
// its number, from 1, in place of #.
func repeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text, err := unescape(args[2])
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", strconv.Itoa(i+1)))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// mkfifo FILE makes a named pipe.
func mkfifo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o644))
}

// hold FILE keeps a file open for writing, as an editor does in mid-write, until
// the script is over.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	ts.Defer(func() { f.Close() })
}

// serve SOCKET FILE... answers on a unix socket as a host does: with each file
// once, and with the last one from then on. A file that begins with a digit is
// an answer of that HTTP status.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	answers := make([]string, 0, len(args)-1)
	for _, f := range args[1:] {
		answers = append(answers, ts.ReadFile(f))
	}
	next := make(chan string, 1)
	next <- answers[0]
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		now := <-next
		if len(answers) > 1 {
			answers = answers[1:]
		}
		next <- answers[0]
		if code, err := strconv.Atoi(strings.TrimSpace(now)); err == nil {
			w.WriteHeader(code)
			return
		}
		w.Write([]byte(now))
	})
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	ts.Defer(func() { server.Close(); <-done })
}

// unescape reads the escapes of Go; double quotes stand for themselves.
func unescape(s string) (string, error) {
	return strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
}
