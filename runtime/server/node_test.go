package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
	"stead/test/lab"
)

// insideEnv tells the test that it runs in the node, where stead is installed.
const insideEnv = "STEAD_LAB_NODE"

// A machine on which nothing was done but stead up, asked by an operator who has
// nothing but credentials.
func TestSeatServesAfterUpOnARealMachine(t *testing.T) {
	if os.Getenv(insideEnv) == "" {
		n := lab.Start(t, lab.Options{Hostname: "ws1"})
		n.InstallStead(t)
		n.RunTest(t, lab.Self(t), "-test.run", "^"+t.Name()+"$")
		return
	}
	run := here(t)
	require.NoError(t, os.WriteFile("/etc/systemd/system/a.service", []byte("[Service]\nExecStart=/bin/sleep infinity\n"), 0o644))
	run("stead", "up")
	o := operator(t, run)

	var before, after seats.StatusReply
	o.ask(seats.Status, subject.Read, `{"unit":"stead-runtime.service"}`, &before)
	require.Equal(t, "active", before.Units[0].Active)
	require.NotEmpty(t, before.Units[0].Lines, "the journal is read")
	require.NotRegexp(t, "level=(WARN|ERROR)", strings.Join(before.Units[0].Lines, "\n"), "all is well")

	var acted seats.ActReply
	o.ask(seats.Restart, subject.Write, `{"unit":"a.service"}`, &acted)
	require.Equal(t, "done", acted.Units[0].Result)
	require.Equal(t, "active", strings.TrimSpace(run("systemctl", "is-active", "a.service")))
	log := run("journalctl", "-u", "stead-escalate", "-o", "cat")
	require.Contains(t, log, `unit=a.service for="operator carol"`)

	// It has no rights, and no bus that turns it away.
	pid := strings.TrimSpace(run("systemctl", "show", "--value", "-p", "MainPID", "stead-runtime"))
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	require.Contains(t, string(status), "CapEff:\t0000000000000000")
	require.Contains(t, run("getent", "passwd", "stead"), "nologin")

	// Without controller and host, and killed: it serves what it kept as soon as it
	// is reached, and is told nothing.
	run("systemctl", "kill", "-s", "KILL", "stead-runtime")
	run("systemctl", "stop", "stead-host")
	require.True(t, lab.Await(20*time.Second, func() bool {
		_, err := o.call(seats.Status, subject.Read, `{"unit":"a.service"}`)
		return err == nil
	}))
	o.ask(seats.Status, subject.Read, `{"unit":"a.service"}`, &after)
	require.Equal(t, "active", after.Units[0].Active)

	// The audit has who did what.
	require.True(t, lab.Await(20*time.Second, func() bool {
		return strings.Contains(run("stead", "events", "-o", "json"), "operator carol")
	}))

	// Done again nothing changes, also while the helper serves.
	require.Contains(t, run("stead", "up"), "stead-runtime.service        runs")
	// Ended, it ends.
	run("systemctl", "stop", "stead-runtime")
	require.Equal(t, "success", strings.TrimSpace(run("systemctl", "show", "--value", "-p", "Result", "stead-runtime")))
}

// person is an operator with a connection and nothing else.
type person struct {
	t    *testing.T
	conn *mesh.Conn
}

func operator(t *testing.T, run func(args ...string) string) person {
	t.Helper()
	run("stead", "credentials", "operator", "carol", "--out", "/root/carol.json")
	c, err := identity.ReadCredentials("/root/carol.json")
	require.NoError(t, err)
	conn, err := mesh.Connect(t.Context(), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return c, nil }, Name: "carol", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, conn.Wait(ctx))
	return person{t, conn}
}

func (p person) call(v subject.Verb, c subject.Class, arguments string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	return p.conn.Call(ctx, subject.ForVerb(c, "ws1", seats.NodeServiceManager, v), []byte(arguments))
}

func (p person) ask(v subject.Verb, c subject.Class, arguments string, reply any) {
	p.t.Helper()
	text, err := p.call(v, c, arguments)
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(text, reply), string(text))
}

// here runs commands on this machine that must succeed.
func here(t *testing.T) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil {
			log, _ := exec.CommandContext(t.Context(), "journalctl", "-u", "stead-*", "-o", "cat", "-n", "40", "--no-pager").CombinedOutput()
			require.NoError(t, err, "%q: %s%s\n%s", args, stdout.String(), stderr.String(), log)
		}
		return stdout.String()
	}
}
