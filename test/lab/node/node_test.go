package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets this binary be the command.
func TestMain(m *testing.M) {
	if os.Getenv("NODE_TEST_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

type outcome struct {
	stdout, stderr string
	code           int
}

func node(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "NODE_TEST_COMMAND=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewBufferString("input\n"), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestCommandLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodes")
	t.Cleanup(func() {
		for _, name := range []string{"x1", "x2"} {
			node(t, "--dir", dir, name, "down")
		}
		node(t, "--dir", dir, "net", "lan", "down")
	})
	times := regexp.MustCompile(`\d+\.\d\d s, PID 1 is \d+`)
	for _, c := range []struct {
		args []string
		want outcome
	}{
		{[]string{"list"}, outcome{}},
		{[]string{"x1", "reboot"}, outcome{code: 1, stderr: `error: open lab node "x1": there is none in "` + dir + `": file does not exist
hint: there are none: go run ./test/lab/node x1 up
`}},
		{[]string{"x1", "up", "--hostname", "box"}, outcome{stdout: "x1 is up after N\n"}},
		{[]string{"x1", "up"}, outcome{code: 1, stderr: `error: boot lab node "x1": there is one already, up, in "` + dir + `/x1"
`}},
		{[]string{"x2", "down"}, outcome{code: 1, stderr: `error: open lab node "x2": there is none in "` + dir + `": file does not exist
hint: there are x1
`}},
		{[]string{"x1", "exec", "hostname"}, outcome{stdout: "box\n"}},
		{[]string{"x1", "exec", "sh", "-c", "cat; echo err >&2; exit 9"}, outcome{stdout: "input\n", stderr: "err\n", code: 9}},
		{[]string{"x1", "exec", "sh", "-c", "kill -KILL $$"}, outcome{code: 128 + 9}},
		{[]string{"x1", "exec", "touch", "/etc/kept"}, outcome{}},
		{[]string{"x1", "reboot"}, outcome{}},
		{[]string{"x1", "cut"}, outcome{}},
		{[]string{"x1", "exec", "true"}, outcome{code: 1, stderr: "error: lab node \"x1\" is off\nhint: go run ./test/lab/node x1 up\n"}},
		{[]string{"x1", "up"}, outcome{stdout: "x1 is up after N\n"}},
		{[]string{"x1", "off"}, outcome{}},
		{[]string{"x1", "up"}, outcome{stdout: "x1 is up after N\n"}},
		{[]string{"x1", "exec", "ls", "/etc/kept"}, outcome{stdout: "/etc/kept\n"}},
		{[]string{"net", "list"}, outcome{}},
		{[]string{"net", "lan", "cut", "x1"}, outcome{code: 1, stderr: `error: open lab network "lan": there is none in "` + dir + `": file does not exist
hint: there are none: go run ./test/lab/node net lan up
`}},
		{[]string{"x2", "up", "--net", "lan"}, outcome{code: 1, stderr: `error: open lab network "lan": there is none in "` + dir + `": file does not exist
hint: there are none: go run ./test/lab/node net lan up
`}},
		{[]string{"net", "lan", "up"}, outcome{stdout: "network lan is up, its addresses are 10.1.0.0/24\n"}},
		{[]string{"x2", "up", "--net", "lan"}, outcome{stdout: "x2 is up after N\n"}},
		{[]string{"net", "lan", "attach", "x1"}, outcome{}},
		{[]string{"x2", "exec", "sh", "-c", "getent hosts box | tr -s ' '"}, outcome{stdout: "10.1.0.3 box\n"}},
		{[]string{"net", "lan", "cut", "x1", "x2"}, outcome{}},
		{[]string{"x1", "exec", "cat", "/sys/class/net/eth0/carrier"}, outcome{stdout: "0\n"}},
		{[]string{"net", "lan", "join", "x1"}, outcome{}},
		{[]string{"x1", "exec", "cat", "/sys/class/net/eth0/carrier"}, outcome{stdout: "1\n"}},
		{[]string{"net", "lan", "refuse", "x1"}, outcome{}},
		{[]string{"x1", "exec", "sh", "-c", "ip route get 10.1.0.1 | head -c 14"}, outcome{stdout: "local 10.1.0.1"}},
		{[]string{"net", "lan", "exec", "sh", "-c", "ip -br -4 address show switch | tr -s ' '; exit 4"}, outcome{stdout: "switch UP 10.1.0.1/24 \n", code: 4}},
		{[]string{"net", "lan", "detach", "x1"}, outcome{}},
		{[]string{"net", "lan", "cut", "x1"}, outcome{code: 1, stderr: "error: cut lab node \"x1\", network \"lan\": it is not attached\n"}},
		{[]string{"net", "lan", "down"}, outcome{}},
		{[]string{"net", "list"}, outcome{}},
		{[]string{"net", "lan"}, outcome{code: 2, stderr: "error: net \"lan\": what to do with it is missing\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"net", "lan", "cut"}, outcome{code: 2, stderr: "error: want a network's name and nodes, have [\"lan\"]\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"x2", "down"}, outcome{}},
		{[]string{"x1", "down"}, outcome{}},
		{[]string{"list"}, outcome{}},
		{[]string{"x1"}, outcome{code: 2, stderr: "error: node \"x1\": what to do with it is missing\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"x1", "upp"}, outcome{code: 2, stderr: "error: node \"x1\": unknown command \"upp\"\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"x1", "exec"}, outcome{code: 2, stderr: "error: want a node's name and a command, have [\"x1\"]\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"x1", "up", "--frob"}, outcome{code: 2, stderr: "error: unknown flag: --frob\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"list", "x1"}, outcome{code: 2, stderr: "error: want no arguments, have [\"x1\"]\nhint: go run ./test/lab/node --help\n"}},
		{[]string{"X_1", "up"}, outcome{code: 1, stderr: `error: boot lab node "X_1": name "X_1": want a DNS label: up to 63 of a-z, 0-9 and -
`}},
	} {
		got := node(t, append([]string{"--dir", dir}, c.args...)...)
		got.stdout = times.ReplaceAllString(got.stdout, "N")
		got.stdout = regexp.MustCompile(` here\n$`).ReplaceAllString(got.stdout, "\n")
		require.Equal(t, c.want, got, "node %q", c.args)
	}
}
