package become

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

// An account that no machine has: numbers suffice to be somebody else.
var nobodys = Login{Name: "opal", UID: 61235, GID: 61236, Groups: []int{61237, 61238}, Home: "/nonexistent"}

// TestMain makes of this program an account's when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(beChild(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func beChild(how string, args []string) int {
	who, err := Parse(strings.TrimPrefix(args[0], "--as="))
	if err == nil && how == "run" {
		err = who.Run(args[2:]...)
	}
	if err == nil {
		err = who.Become()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	switch how {
	case "stops": // all that are of its uid, as long as its parent lives
		var over atomic.Bool
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			over.Store(true)
		}()
		for !over.Load() {
			_ = syscall.Kill(-1, syscall.SIGSTOP)
		}
	case "traces":
		var pid int
		_, _ = fmt.Scan(&pid)
		fmt.Println(syscall.PtraceAttach(pid))
	case "tells":
		status, _ := os.ReadFile("/proc/thread-self/status")
		_, _ = os.Stdout.Write(status)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// child is one that has become the account.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, how string) child {
	t.Helper()
	c := child{Cmd: nobodys.Command(t.Context(), "child", how)}
	var err error
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	c.out = bufio.NewReader(out)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return c
}

func TestAProcessIsTheAccountForGood(t *testing.T) {
	c := start(t, "tells")
	require.NoError(t, c.in.Close())
	text, err := io.ReadAll(c.out)
	require.NoError(t, err)
	for _, line := range []string{
		"Uid:\t61235\t61235\t61235\t61235", "Gid:\t61236\t61236\t61236\t61236", "Groups:\t61237 61238",
		"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000",
	} {
		require.Contains(t, string(text), line)
	}
	require.NoError(t, c.Wait())
}

// Who can trace a process has it do what he likes, with what root gave it.
func TestNobodyOfTheAccountTracesIt(t *testing.T) {
	c, other := start(t, "waits"), start(t, "traces")
	fmt.Fprintln(other.in, c.Process.Pid)
	line, err := other.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "operation not permitted\n", line)
}

// A process of the account's that stops all others of it, again and again, never
// stops the one that starts them.
func TestStartingOneWaitsForNobodyOfTheAccount(t *testing.T) {
	start(t, "stops")
	for range 100 {
		began := make(chan error, 1)
		go func() {
			cmd := nobodys.Command(t.Context(), "child", "waits")
			err := cmd.Start()
			began <- err
			if err == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		}()
		select {
		case err := <-began:
			require.NoError(t, err)
		case <-time.After(30 * time.Second):
			t.Fatal("who starts a process of the account hangs")
		}
	}
}

// What Run runs has the account's rights, and not the means to burden whom it is
// run for.
func TestWhatIsRunHasNarrowBounds(t *testing.T) {
	run := func(program ...string) (string, error) {
		cmd := nobodys.Running(t.Context(), []string{"child", "run"}, program...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	said, err := run("WORD=x", "sh", "-c", `echo $WORD $HOME $(( 1 + 1 )); read -r _ _ _ _ < /proc/self/stat; kill -0 $PPID`)
	require.Error(t, err, "its parent is root")
	require.Contains(t, said, "x /nonexistent 2\n")

	said, err = run("sh", "-c", "/bin/true & wait; echo unheard")
	require.Error(t, err)
	require.NotContains(t, said, "unheard", "it starts nothing")

	said, err = run("sh", "-c", "ulimit -v; ulimit -t; ulimit -c")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(mostMemory>>10)+"\n"+strconv.Itoa(mostSeconds)+"\n0\n", said)

	said, err = run("no-such-program")
	require.Error(t, err)
	require.Contains(t, said, "no-such-program")
}

func TestALoginIsReadAsItIsWritten(t *testing.T) {
	for _, l := range []Login{nobodys, {Name: "x", UID: 1, Home: "/a:b"}} {
		read, err := Parse(l.String())
		require.NoError(t, err)
		require.Equal(t, l.String(), read.String())
	}
	for _, text := range []string{"", "root:0:0::/root", "x:1:1::home", ":1:1::/h", "x:-1:1::/h", "x:1:1:a:/h", "x:4294967295:1::/h", "x:1:1", "x:1::,:/h"} {
		_, err := Parse(text)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), text)
	}
	require.Equal(t, fault.Refused, fault.ClassOf(Login{Name: "root"}.Become()))
}
