package system

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
	"stead/test/lab"
)

const (
	runtimeService = "stead-runtime.service"
	helperService  = "stead-escalate.service"
)

// insideUp lets a test run itself, as root, on a machine of its own, on which
// nothing was done but stead up. It is false outside, where the test has to return.
func insideUp(t *testing.T) bool {
	t.Helper()
	if lab.AmInside() {
		return true
	}
	t.Parallel()
	reserve(t, 1)
	n := lab.Start(t, lab.Options{Hostname: "ws1"})
	n.InstallStead(t)
	n.Run(t, "stead", "up")
	n.RunTest(t, lab.Self(t), "-test.run", "^"+regexp.QuoteMeta(t.Name())+"$")
	return false
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

// shown asks systemd on this machine for one property of a unit.
func shown(t *testing.T, unit, property string) string {
	t.Helper()
	return strings.TrimSpace(here(t)("systemctl", "show", "-P", property, "--", unit))
}

// person is somebody with credentials and a connection, and nothing else.
type person struct {
	*testing.T
	conn *mesh.Conn
}

// personOf connects with a file of credentials.
func personOf(t *testing.T, file string) person {
	t.Helper()
	who, err := identity.ReadCredentials(file)
	require.NoError(t, err)
	conn, err := mesh.Connect(t.Context(), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: who.Name, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, conn.Wait(ctx))
	return person{t, conn}
}

// verbOf is the subject of a verb of node-service-manager on a node.
func verbOf(node subject.Node, verb subject.Verb) string {
	v, _ := seats.Seeded()[0].Verb(verb)
	return subject.ForVerb(v.Class, node, seats.NodeServiceManager, verb)
}

// ask calls a verb of node-service-manager on a node.
func (p person) ask(node subject.Node, verb subject.Verb, arguments any) (json.RawMessage, error) {
	p.Helper()
	payload, err := json.Marshal(arguments)
	require.NoError(p, err)
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	return p.conn.Call(ctx, verbOf(node, verb), payload)
}

// put writes a file on this machine.
func put(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

// startSeats boots a mesh whose nodes serve node-service-manager. It makes the test
// parallel.
func startSeats(t *testing.T, nodes ...string) *rig {
	t.Helper()
	r := startMesh(t, nodes...)
	for _, m := range r.nodes {
		require.NoError(t, m.WriteFile(etc+"/"+bystander, []byte(sleeper(1)), 0o644))
		m.Run(t, "systemctl", "daemon-reload")
		m.Run(t, "systemctl", "enable", "--now", "stead-escalate.socket", runtimeService)
		m.Run(t, "systemctl", "start", bystander)
	}
	r.ctl.until("all nodes serve", func() bool {
		return r.stead("status", bystander, "--all").Code == 0
	})
	return r
}
