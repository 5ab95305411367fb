// Package system tests the host as a whole: the program of this tree, started by
// its own unit file on a real systemd in a lab node, and judged from outside. The
// files mesh_*_test.go do so with a mesh: a controller, nodes on a network that can
// be cut, and an operator's commands.
//
// Each test boots its own node, and each file is named for what it shows. A test
// declares by writing files, as an operator does, and believes what systemd, the
// disk and an own connection to the bus say; the host's word alone proves nothing.
// With STEAD_CHECK=full in the environment the long ones run at full length.
// Times are printed and never judged: a bound only says when to give up.
package system

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"stead/test/lab"
)

const (
	folder  = "/etc/stead/declarations"
	etc     = "/etc/systemd/system"
	service = "stead-host.service"
	// controllerService is that of the controller.
	controllerService = "stead-controller.service"
	// patience is when a wait is given up; a loaded machine is slow.
	patience = 120 * time.Second
)

// full says that there is time for the long tests.
func full() bool { return os.Getenv("STEAD_CHECK") == "full" }

func TestMain(m *testing.M) {
	if socket := os.Getenv(knockEnv); socket != "" {
		fmt.Println(knock(socket))
		return
	}
	if file := os.Getenv(callerEnv); file != "" {
		if err := callVerbs(file, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if filepath.Base(os.Args[0]) == rogueName {
		if err := beRogue(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// The tests wait more than they compute, so more of them may run at a time than
	// there are processors; with eight all of them take as long, and each twice.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// machine is a lab node with the host installed as its own service.
type machine struct {
	*lab.Node
	t *testing.T

	files       map[string]string // what the folder of declarations holds
	generations map[string]uint64 // of each declaration in it
	declared    time.Time         // when the folder was last changed
}

// install boots a node with the program and its unit file, and a folder that
// holds no declaration. The host does not run yet. It makes the test parallel.
func install(t *testing.T) *machine {
	t.Helper()
	return installOn(t, "node")
}

// installOn gives the node a host name.
func installOn(t *testing.T, hostname string) *machine {
	t.Helper()
	t.Parallel()
	reserve(t, 1)
	m := bring(t, hostname)
	m.Run(t, "mkdir", "-p", folder)
	return m
}

// room is for how many nodes at once this package's tests have; see lab.Start.
var room = semaphore.NewWeighted(11)

// reserve waits for room for all the nodes of a test, so that no two tests wait for
// each other with some of theirs.
func reserve(t *testing.T, nodes int64) {
	t.Helper()
	require.NoError(t, room.Acquire(t.Context(), nodes))
	t.Cleanup(func() { room.Release(nodes) })
}

// bring boots a node, on these networks, with the program and its unit files,
// none of which runs yet.
func bring(t *testing.T, hostname string, networks ...*lab.Network) *machine {
	t.Helper()
	m := &machine{Node: lab.Start(t, lab.Options{Hostname: hostname, Networks: networks}), t: t,
		files: map[string]string{}, generations: map[string]uint64{}}
	m.InstallStead(t)
	for _, file := range []string{"host/" + service, "controller/" + controllerService,
		"runtime/server/stead-runtime.service", "runtime/escalate/stead-escalate.service", "runtime/escalate/stead-escalate.socket"} {
		require.NoError(t, m.CopyIn("../../"+file, "/usr/local/lib/systemd/system/"+path.Base(file)))
	}
	m.Run(t, "systemctl", "daemon-reload")
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			out, err := m.Exec(ctx, "stead", "host", "status", "-o", "wide")
			t.Logf("the host of %s says (%v):\n%s%s", hostname, err, out.Stdout, out.Stderr)
			log, err := m.Journal(ctx, "--output=cat", "--lines=80", "--unit=stead-*")
			t.Logf("stead logged on %s (%v):\n%s", hostname, err, log)
		}
	})
	return m
}

// running boots a node with these declarations, by file name, on which the host
// runs and everything is converged.
func running(t *testing.T, files map[string]string) *machine {
	t.Helper()
	m := install(t)
	m.begin(files)
	return m
}

// begin declares, starts the host, and waits until all is converged.
func (m *machine) begin(files map[string]string) {
	m.t.Helper()
	from := m.declare(files)
	m.startHost()
	m.converged(from)
}

// startHost starts the host's service; it returns when that says that it serves.
func (m *machine) startHost() {
	m.t.Helper()
	m.Run(m.t, "systemctl", "start", service)
}

// prop asks systemd for one property of a unit.
func (m *machine) prop(unit, name string) string {
	m.t.Helper()
	return strings.TrimSpace(m.Run(m.t, "systemctl", "show", "--value", "--property="+name, "--", unit))
}

// props asks systemd for one property of many units.
func (m *machine) props(name string, units []string) []string {
	m.t.Helper()
	out := m.Run(m.t, append([]string{"systemctl", "show", "--property=" + name, "--"}, units...)...)
	var all []string
	for line := range strings.Lines(out) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+"="); is {
			all = append(all, value)
		}
	}
	require.Len(m.t, all, len(units), out)
	return all
}

// read is a file of the node; "" when it is not there.
func (m *machine) read(file string) string {
	data, err := m.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data)
}

// link is where a symbolic link of the node points; "" when there is none.
func (m *machine) link(file string) string {
	to, err := os.Readlink(m.Path(file))
	if err != nil {
		return ""
	}
	return to
}

// hostPID is the id, outside the node, of the host's process.
func (m *machine) hostPID() int {
	m.t.Helper()
	return m.pidOf(service)
}

// pidOf is the id, outside the node, of the process of a service.
func (m *machine) pidOf(unit string) int {
	m.t.Helper()
	inside, err := strconv.Atoi(m.prop(unit, "MainPID"))
	require.NoError(m.t, err)
	require.NotZero(m.t, inside, "%s does not run", unit)
	return m.outside(inside)
}

// outside finds the id that a process of the node has on this machine.
func (m *machine) outside(inside int) int {
	m.t.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.PID()))
	require.NoError(m.t, err)
	entries, err := os.ReadDir("/proc")
	require.NoError(m.t, err)
	for _, e := range entries {
		if ns, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err != nil || ns != space {
			continue
		}
		data, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); f[0] == "NSpid:" && f[len(f)-1] == strconv.Itoa(inside) {
				pid, err := strconv.Atoi(e.Name())
				require.NoError(m.t, err)
				return pid
			}
		}
	}
	m.t.Fatalf("no process %d in the node", inside)
	return 0
}
