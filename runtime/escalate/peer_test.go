package escalate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/unit"
)

// otherEnv makes the test binary another process.
const otherEnv = "STEAD_ESCALATE_OTHER"

// others are what other processes do.
func others() map[string]func() int {
	return map[string]func() int{
		"connects": func() int { fmt.Println(knock(os.Getenv("SOCKET"))); return 0 },
		"inherits": func() int {
			nc, err := net.FileConn(os.NewFile(3, "inherited"))
			if err == nil {
				_, err = nc.Write([]byte(ask("inherited0123456789", Stop, "a.service")))
			}
			fmt.Println(err)
			return 0
		},
	}
}

func ask(id string, act Act, n unit.Name) string {
	line, _ := json.Marshal(asked{ID: id, Act: act, Unit: string(n)})
	return string(line) + "\n"
}

// knock connects and says what the helper answers.
func knock(path string) string {
	nc, err := net.Dial("unix", path)
	if err != nil {
		return err.Error()
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	var a answered
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return err.Error()
	}
	if a.Refused == "" {
		return "hello"
	}
	return a.Refused
}

// other runs the test binary as another process.
func other(t *testing.T, what string, set func(*exec.Cmd)) string {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), otherEnv+"="+what)
	if set != nil {
		set(c)
	}
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// greeted connects as the runtime would, and returns the connection.
func greeted(t *testing.T, path string) (*net.UnixConn, *bufio.Reader) {
	t.Helper()
	nc, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(10*time.Second)))
	in := bufio.NewReader(nc)
	line, err := in.ReadBytes('\n')
	require.NoError(t, err)
	var a answered
	require.NoError(t, json.Unmarshal(line, &a))
	require.Equal(t, version, a.Hello)
	_, err = fmt.Fprintf(nc, `{"nonce":%q}`+"\n", a.Nonce)
	require.NoError(t, err)
	return nc, in
}

func TestOnlyTheMainProcessIsServed(t *testing.T) {
	r := newRig(t)
	r.helper()
	const no = "it is not the main process of stead-runtime.service"
	for name, main := range map[string]unit.Process{
		"there is none":                    {UID: unit.NoUID},
		"another process of the account":   {PID: uint32(os.Getppid()), UID: uint32(os.Getuid())},
		"another account":                  {PID: uint32(os.Getpid()), UID: uint32(os.Getuid()) + 1},
		"a unit that runs as nobody known": {PID: uint32(os.Getpid()), UID: unit.NoUID},
	} {
		t.Run(name, func(t *testing.T) {
			time.Sleep(2 * fresh)
			r.m.setMain(main)
			require.Equal(t, no, knock(r.path))
		})
	}
	time.Sleep(2 * fresh)
	r.m.setMain(me())
	require.Equal(t, "hello", knock(r.path))
	require.Equal(t, no, other(t, "connects", func(c *exec.Cmd) { c.Env = append(c.Env, "SOCKET="+r.path) }))
	require.Equal(t, "hello", knock(r.path))
	r.logged("connection refused", "reason=")
}

func TestKnockingDoesNotKeepPID1Busy(t *testing.T) {
	r := newRig(t)
	r.helper()
	r.m.setMain(unit.Process{PID: 1, UID: 0})
	began := time.Now()
	for range 500 {
		require.NotEqual(t, "hello", knock(r.path))
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	require.LessOrEqual(t, r.m.asked, int(time.Since(began)/fresh)+2)
	require.Less(t, strings.Count(r.log.text(), "connection refused"), 12)
}

// TestChildThatInheritsTheConnectionIsNotServed: who connected is still the main
// process, and it is not who sends.
func TestChildThatInheritsTheConnectionIsNotServed(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	nc, in := greeted(t, r.path)
	_, err := nc.Write([]byte(ask("first01234567890123", Start, "a.service")))
	require.NoError(t, err)
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, `"end"`) {
			break
		}
	}
	f, err := nc.File()
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "<nil>", other(t, "inherits", func(c *exec.Cmd) { c.ExtraFiles = []*os.File{f} }))
	_, err = in.ReadString('\n')
	require.Error(t, err, "the connection is closed")
	r.logged("connection closed: it was not the runtime that sent", "sender=")
	require.Equal(t, []string{"start a.service"}, r.did())
}

func TestConnectionIsWorthNothingOnceTheMainProcessIsAnother(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	for name, change := range map[string]func(*unit.Process){
		"another process": func(p *unit.Process) { p.PID++ },
		"another run":     func(p *unit.Process) { p.Invocation = strings.Repeat("c", 32) },
		"no run":          func(p *unit.Process) { *p = unit.Process{UID: unit.NoUID} },
	} {
		t.Run(name, func(t *testing.T) {
			r.m.setMain(me())
			time.Sleep(2 * fresh)
			nc, in := greeted(t, r.path)
			main := me()
			change(&main)
			r.m.setMain(main)
			_, err := nc.Write([]byte(ask("other01234567890123", Start, "a.service")))
			require.NoError(t, err)
			_, err = in.ReadString('\n')
			require.Error(t, err)
			require.Empty(t, r.did())
		})
	}
}

func TestPeerThatBreaksTheRulesIsCutOff(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	for name, text := range map[string]string{
		"a line beyond the bound": strings.Repeat("x", maxAsked+1),
		"no JSON":                 "restart a.service\n",
		"another type":            `{"id":7}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			nc, in := greeted(t, r.path)
			_, err := nc.Write([]byte(text))
			require.NoError(t, err)
			_, err = in.ReadString('\n')
			require.Error(t, err)
		})
	}
	t.Run("what was sent before the hello", func(t *testing.T) {
		nc, err := net.Dial("unix", r.path)
		require.NoError(t, err)
		defer nc.Close()
		_, err = nc.Write([]byte(ask("before0123456789012", Start, "a.service")))
		require.NoError(t, err)
		in := bufio.NewReader(nc)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "hello")
		_, err = in.ReadString('\n')
		require.Error(t, err)
	})
	require.Empty(t, r.did())
}

func TestCallsWithoutAProperIDAreRefused(t *testing.T) {
	r := newRig(t)
	r.helper()
	nc, in := greeted(t, r.path)
	for _, id := range []string{"", "short", strings.Repeat("a", 65), "not-alphanumeric-at-all"} {
		_, err := nc.Write([]byte(ask(id, Start, "a.service")))
		require.NoError(t, err)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "16 to 64 letters and digits")
	}
}

// TestSameIDIsDoneOnce: what is sent again is answered again.
func TestSameIDIsDoneOnce(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	var first string
	for i := range 2 {
		nc, in := greeted(t, r.path)
		_, err := nc.Write([]byte(ask("same01234567890123", Restart, "a.service")))
		require.NoError(t, err)
		line := ""
		for !strings.Contains(line, `"end"`) {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
		if i == 0 {
			first = line
		}
		require.Equal(t, first, line)
	}
	require.Equal(t, []string{"restart a.service"}, r.did())
}

func TestDescriptorsThatComeAlongAreNotKept(t *testing.T) {
	r := newRig(t)
	r.helper()
	nc, in := greeted(t, r.path)
	secret, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer secret.Close()
	_, _, err = nc.WriteMsgUnix([]byte(ask("files01234567890123", ResetFailed, "a.service")), unix.UnixRights(int(secret.Fd())), nil)
	require.NoError(t, err)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	open := 0
	var want, got syscall.Stat_t
	require.NoError(t, syscall.Fstat(int(secret.Fd()), &want))
	for _, e := range entries {
		if syscall.Stat("/proc/self/fd/"+e.Name(), &got) == nil && got.Ino == want.Ino && got.Dev == want.Dev {
			open++
		}
	}
	require.Equal(t, 1, open)
}

func TestNewestConnectionIsTheOne(t *testing.T) {
	r := newRig(t)
	r.helper()
	_, old := greeted(t, r.path)
	nc, in := greeted(t, r.path)
	_, err := old.ReadString('\n')
	require.Error(t, err)
	_, err = nc.Write([]byte(ask("newest0123456789012", ResetFailed, "a.service")))
	require.NoError(t, err)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
}

// TestPID1IsAskedWhoMayAskWhenItSaidSomethingNew, and for each act when what it says
// is not heard.
func TestPID1IsAskedWhoMayAskWhenItSaidSomethingNew(t *testing.T) {
	r := newRig(t)
	r.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	asks := func(want int, why string) {
		t.Helper()
		r.m.mu.Lock()
		before := r.m.asked
		r.m.mu.Unlock()
		_, err := c.Do(bound(t), Request{Act: Restart, Unit: "a.service"})
		require.NoError(t, err)
		r.m.mu.Lock()
		defer r.m.mu.Unlock()
		require.Equal(t, want, r.m.asked-before, why)
	}
	require.NoError(t, c.Wait(bound(t)))
	asks(0, "it said so when the runtime connected")
	r.m.setMain(me())
	asks(1, "it said something new")
	asks(0, "and then nothing")
	r.m.mu.Lock()
	r.m.deaf = true
	r.m.mu.Unlock()
	asks(1, "it is not heard")
	asks(1, "it is not heard")
}

// An older connection may be greeted behind a newer one.
func TestOlderConnectionDoesNotTakeThePlace(t *testing.T) {
	s := &Server{}
	conns := map[int]*conn{}
	for _, number := range []int{2, 1, 3} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		require.NoError(t, err)
		f := os.NewFile(uintptr(fds[0]), "")
		nc, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		defer nc.Close()
		defer syscall.Close(fds[1])
		conns[number] = &conn{s: s, number: number, nc: nc.(*net.UnixConn)}
		s.become(conns[number])
		require.Same(t, conns[max(number, 2)], s.current)
	}
	for number, c := range conns {
		_, err := c.nc.Write([]byte("x"))
		require.Equal(t, number == 3, err == nil, "connection %d: %v", number, err)
	}
}
