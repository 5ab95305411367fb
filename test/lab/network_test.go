package lab_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// echo answers each line with itself, on port 7 of all addresses.
const echo = "[Socket]\nListenStream=0.0.0.0:7\nAccept=yes\n[Install]\nWantedBy=sockets.target\n"

// pair is a network with the nodes a and b, of which b has an echo server.
func pair(t *testing.T) (w *lab.Network, a, b *lab.Node) {
	t.Helper()
	w = lab.StartNetwork(t, lab.NetworkOptions{})
	a = lab.Start(t, lab.Options{Hostname: "a", Networks: []*lab.Network{w}})
	b = lab.Start(t, lab.Options{Hostname: "b", Networks: []*lab.Network{w}})
	serveEcho(t, b)
	return w, a, b
}

func serveEcho(t *testing.T, n *lab.Node) {
	t.Helper()
	require.NoError(t, n.WriteFile("/etc/systemd/system/echo.socket", []byte(echo), 0o644))
	require.NoError(t, n.WriteFile("/etc/systemd/system/echo@.service", []byte("[Service]\nExecStart=cat\nStandardInput=socket\n"), 0o644))
	n.Run(t, "systemctl", "enable", "--now", "echo.socket")
}

// asks is a shell's attempt to have to's echo server answer, bounded by a second.
func asks(t *testing.T, from *lab.Node, to string) lab.Output {
	t.Helper()
	out, err := from.Exec(t.Context(), "timeout", "1", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/7; echo hello >&3; read -r line <&3; echo $line", to))
	require.NoError(t, err)
	return out
}

var (
	answer  = lab.Output{Stdout: "hello\n"}
	silence = lab.Output{Code: 124} // of timeout(1)
)

func TestNodesOfANetworkReachEachOtherByName(t *testing.T) {
	w, a, b := pair(t)
	require.Equal(t, answer, asks(t, a, "b"))
	require.Equal(t, answer, asks(t, a, w.Address(b).String()))
	require.Equal(t, answer, asks(t, b, "b"), "it knows its own name")
	require.Equal(t, w.Address(a).String()+"\n", b.Run(t, "sh", "-c", "getent hosts a | cut -d ' ' -f 1"))
	require.True(t, w.Prefix().Contains(w.Address(a)))

	other := lab.StartNetwork(t, lab.NetworkOptions{})
	stranger := lab.Start(t, lab.Options{Hostname: "c", Networks: []*lab.Network{other}})
	require.NotEqual(t, w.Prefix(), other.Prefix())
	require.Contains(t, asks(t, stranger, w.Address(b).String()).Stderr, "unreachable")
	require.NotContains(t, stranger.Run(t, "cat", "/etc/hosts"), w.Address(b).String())
	require.False(t, w.Address(stranger).IsValid())

	// A node on both hears both and passes nothing on.
	require.NoError(t, other.Attach(t.Context(), b))
	require.Equal(t, answer, asks(t, stranger, "b"))
	require.Equal(t, answer, asks(t, a, "b"))
	require.Equal(t, "eth0\neth1\nlo\n", b.Run(t, "ls", "/sys/class/net"))
	require.Contains(t, asks(t, stranger, w.Address(a).String()).Stderr, "unreachable")
	require.NoError(t, other.Detach(t.Context(), b))
	require.NotContains(t, b.Run(t, "cat", "/etc/hosts"), "\tc\n")
}

func TestNothingLeadsOutOfANetwork(t *testing.T) {
	before, err := net.Interfaces()
	require.NoError(t, err)
	w, a, _ := pair(t)
	after, err := net.Interfaces()
	require.NoError(t, err)
	require.Equal(t, before, after, "this machine has other interfaces")
	routes := a.Run(t, "ip", "-4", "route", "show", "table", "main")
	require.Equal(t, fmt.Sprintf("%s dev eth0 proto kernel scope link src %s", w.Prefix(), w.Address(a)), strings.TrimSpace(routes))
	out, err := w.Command(t.Context(), "ip", "-4", "route", "show", "table", "main").Output()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s dev switch proto kernel scope link src %s", w.Prefix(), w.Own()), strings.TrimSpace(string(out)))
}

func TestTestTakesPartInANetwork(t *testing.T) {
	w, _, b := pair(t)
	c, err := w.DialContext(t.Context(), "tcp", w.Address(b).String()+":7")
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, w.Own().String(), c.LocalAddr().(*net.TCPAddr).IP.String())
	fmt.Fprintln(c, "hello")
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	out, err := w.Command(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/7; echo again >&3; head -n 1 <&3", w.Address(b))).Output()
	require.NoError(t, err)
	require.Equal(t, "again\n", string(out))
	_, err = w.DialContext(t.Context(), "tcp", "b:7")
	require.Error(t, err, "names are looked up")
}

// talk is a connection from a to b that is held open.
type talk struct {
	in    *os.File
	lines chan string
}

func startTalk(t *testing.T, from *lab.Node, to string) talk {
	t.Helper()
	cmd := from.Command(t.Context(), "bash", "-c", fmt.Sprintf(`exec 3<>/dev/tcp/%s/7 4<&0; cat <&4 >&3 & cat <&3; echo closed`, to))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r.Close()
	k := talk{in: w, lines: make(chan string, 16)}
	done := make(chan bool)
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			k.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		w.Close()
		cmd.Cancel()
		<-done
		cmd.Wait()
	})
	k.say("begin")
	k.hears(t, "begin")
	return k
}

func (k talk) say(word string) { fmt.Fprintln(k.in, word) }

func (k talk) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-k.lines:
		require.Equal(t, want, got)
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing is heard")
	}
}

func (k talk) silent(t *testing.T) {
	t.Helper()
	select {
	case got := <-k.lines:
		require.Fail(t, "something is heard", got)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestCutNodeIsSilentBothWaysAndConnectionsOutliveIt(t *testing.T) {
	w, a, b := pair(t)
	serveEcho(t, a)
	k := startTalk(t, a, "b")
	require.NoError(t, w.Cut(t.Context(), a))
	require.Equal(t, lab.Severed, w.Link(a))
	require.Equal(t, lab.Joined, w.Link(b))
	k.say("meanwhile")
	k.silent(t)
	require.NoError(t, w.Join(t.Context(), a))
	k.hears(t, "meanwhile")
	require.NoError(t, w.Cut(t.Context(), a))
	require.Equal(t, silence, asks(t, a, "b"))
	require.Equal(t, silence, asks(t, b, "a"))
	require.Equal(t, answer, asks(t, a, "a"), "it reaches itself")
	require.NoError(t, w.Cut(t.Context(), a), "it may be cut twice")
	require.NoError(t, w.Join(t.Context(), a))
	require.Equal(t, answer, asks(t, a, "b"))
	require.Equal(t, answer, asks(t, b, "a"))
	require.NoError(t, w.Join(t.Context(), a, b), "it may be joined twice")
}

func TestRefusedNodeIsResetAtOnce(t *testing.T) {
	w, a, b := pair(t)
	k := startTalk(t, a, "b")
	require.NoError(t, w.Refuse(t.Context(), a))
	k.say("meanwhile")
	k.hears(t, "closed")
	require.Contains(t, asks(t, a, "b").Stderr, "refused")
	require.Equal(t, answer, asks(t, b, "b"))
	require.NoError(t, w.Join(t.Context(), a))
	require.Equal(t, answer, asks(t, a, "b"))
	// From one to the other, and back.
	require.NoError(t, w.Refuse(t.Context(), a))
	require.NoError(t, w.Cut(t.Context(), a))
	require.Equal(t, silence, asks(t, a, "b"))
	require.NoError(t, w.Join(t.Context(), a))
	require.Equal(t, answer, asks(t, a, "b"))
}

func TestAttachmentOutlivesPower(t *testing.T) {
	w, a, b := pair(t)
	address := w.Address(b)
	for name, cycle := range map[string]func() error{
		"reboot": func() error { return b.Reboot(t.Context()) },
		"power cut": func() error {
			if err := b.PowerCut(t.Context()); err != nil {
				return err
			}
			require.Equal(t, silence, asks(t, a, "b"), "it refuses while it is off")
			return b.PowerOn(t.Context())
		},
	} {
		require.NoError(t, cycle(), name)
		require.Equal(t, address, w.Address(b), name)
		require.Equal(t, answer, asks(t, a, "b"), name)
	}
	require.NoError(t, w.Refuse(t.Context(), a))
	require.NoError(t, a.Reboot(t.Context()))
	require.Contains(t, asks(t, a, "b").Stderr, "refused", "a reboot undoes the refusal")
	require.NoError(t, w.Join(t.Context(), a))
	startTalk(t, a, "b")
	require.NoError(t, w.Cut(t.Context(), b))
	begun := time.Now()
	require.NoError(t, b.Reboot(t.Context()))
	require.Less(t, time.Since(begun), 20*time.Second, "what is left of connections holds it up")
	require.Equal(t, lab.Severed, w.Link(b))
	require.Equal(t, silence, asks(t, a, "b"), "a reboot undoes the cut")
	require.NoError(t, w.Join(t.Context(), b))
	require.Equal(t, answer, asks(t, a, "b"))
}

func TestPowerCutTellsNobody(t *testing.T) {
	_, a, b := pair(t)
	k := startTalk(t, a, "b")
	require.NoError(t, b.PowerCut(t.Context()))
	k.silent(t)
	require.NoError(t, b.PowerOn(t.Context()))
	k.silent(t) // nor when it is back: it knows nothing of the connection until it is asked
	k.say("are you there")
	k.hears(t, "closed")
}

func TestShutdownClosesConnections(t *testing.T) {
	_, a, b := pair(t)
	k := startTalk(t, a, "b")
	require.NoError(t, b.PowerOff(t.Context()))
	k.hears(t, "closed")
}

func TestNodeTakesTheAddressOfOneThatIsGone(t *testing.T) {
	w, a, b := pair(t)
	address := w.Address(b)
	require.Equal(t, answer, asks(t, a, "b"))
	require.NoError(t, b.Down(t.Context()))
	again := lab.Start(t, lab.Options{Hostname: "b", Networks: []*lab.Network{w}})
	require.Equal(t, address, w.Address(again))
	serveEcho(t, again)
	require.Equal(t, answer, asks(t, a, "b"), "the other still knows the one that is gone")
}

func TestAttachRefuses(t *testing.T) {
	w := lab.StartNetwork(t, lab.NetworkOptions{})
	a := lab.Start(t, lab.Options{Hostname: "a", Networks: []*lab.Network{w}})
	twin, shared := lab.Start(t, lab.Options{Hostname: "a"}), lab.Start(t, lab.Options{ShareNet: true})
	require.ErrorContains(t, w.Attach(t.Context(), a), "it is attached already")
	require.ErrorContains(t, w.Attach(t.Context(), twin), `has the hostname "a" already`)
	require.ErrorContains(t, w.Attach(t.Context(), shared), "it is in this machine's network")
	require.ErrorContains(t, w.Cut(t.Context(), twin), "it is not attached")
	elsewhere, err := lab.MakeNetwork(t.Context(), lab.NetworkOptions{Name: "w", Dir: t.TempDir()})
	require.NoError(t, err)
	require.ErrorContains(t, elsewhere.Attach(t.Context(), twin), "there is no such node")
	require.NoError(t, elsewhere.Down(t.Context()))
	require.ErrorContains(t, elsewhere.Attach(t.Context(), twin), "the network is no more")
	_, err = lab.MakeNetwork(t.Context(), lab.NetworkOptions{Name: "A_"})
	require.ErrorContains(t, err, "want a DNS label")
	_, err = lab.Boot(t.Context(), lab.Options{Name: "x", ShareNet: true, Networks: []*lab.Network{w}})
	require.ErrorContains(t, err, "has none of its own")
}

func TestNodesOutliveTheirNetwork(t *testing.T) {
	w, a, b := pair(t)
	require.NoError(t, w.Down(t.Context()))
	within(t, func() bool { return a.Run(t, "ls", "/sys/class/net") == "lo\n" }, "the cable stays")
	require.NotContains(t, a.Run(t, "cat", "/etc/hosts"), "\tb\n")
	require.NoError(t, b.Reboot(t.Context()))
	require.NoError(t, w.Down(t.Context()), "it may be taken down twice")
}
