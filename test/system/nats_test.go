package system

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
	"stead/test/lab"
)

// natsRig is a mesh of ws1, on which stead up ran, and ws2, which joined it; on
// ws2 there is the nats command, and people who brought their credentials.
type natsRig struct {
	*rig
	ws1, ws2 *machine
}

// TestTheNATSCommand asks nodes and acts on them with the real command line of
// NATS, and what a person has who was given credentials.
func TestTheNATSCommand(t *testing.T) {
	t.Parallel()
	reserve(t, 2)
	n := &natsRig{rig: &rig{T: t, net: lab.StartNetwork(t, lab.NetworkOptions{}), nodes: map[string]*machine{}}}
	n.ctl = bring(t, "ws1", n.net)
	n.ctl.InstallNATS(t)
	n.ctl.Run(t, "stead", "up")
	n.ws1, n.ws2 = n.ctl, n.join("ws2")
	n.ws2.Run(t, "systemctl", "enable", "--now", runtimeService)
	n.ws2.InstallNATS(t)
	n.person(identity.Operator, "alice")
	n.person(identity.Viewer, "vera")
	last := ""
	n.ws2.until("both nodes are listed", func() bool {
		last = n.nats("vera", "micro", "ls", "stead-node").Stdout
		return regexp.MustCompile(`│ ws1 +│`).MatchString(last) && regexp.MustCompile(`│ ws2 +│`).MatchString(last)
	}, &last)

	// One after the other, since calls are counted.
	for _, part := range []struct {
		name string
		run  func(*natsRig)
	}{
		{"operator and viewer discover", (*natsRig).discovered},
		{"calls and errors are shown and counted", (*natsRig).counted},
		{"an operator acts", (*natsRig).acted},
		{"a viewer reads, and the server stops the rest", (*natsRig).heldBack},
	} {
		t.Run(part.name, func(t *testing.T) {
			here := *n.rig
			here.T = t
			part.run(&natsRig{&here, n.ws1, n.ws2})
		})
	}
}

// person makes credentials, brings them to ws2, and has root there take them over
// for stead and for nats.
func (n *natsRig) person(role identity.Role, name string) {
	n.Helper()
	file := path.Join("/root", name+".json")
	n.ws1.Run(n.T, "stead", "credentials", string(role), name, "--out", file)
	text, err := n.ws1.ReadFile(file)
	require.NoError(n, err)
	require.NoError(n, n.ws2.WriteFile(file, text, 0o600))
	n.ws2.Run(n.T, "stead", "context", "add", file)
	said := n.ws2.Run(n.T, "stead", "context", "nats", name)
	require.NotRegexp(n, `\bSU[A-Z2-7]{56}\b`, said, "the key is shown")
	creds := regexp.MustCompile(`credentials +(/.*)\n`).FindStringSubmatch(said)
	require.NotNil(n, creds, said)
	require.Equal(n, "600 root\n", n.ws2.Run(n.T, "stat", "-c", "%a %U", creds[1]))
}

// nats gives a command of nats, on ws2 as this person.
func (n *natsRig) nats(who string, args ...string) lab.Output {
	n.Helper()
	out, err := n.ws2.Exec(n.Context(), append([]string{"nats", "--context", who, "--timeout", "6s"}, args...)...)
	require.NoError(n, err)
	return out
}

// natsInfo is what nats micro info says as JSON.
type natsInfo struct {
	Info struct {
		ID, Description string
		Metadata        map[string]string
		Endpoints       []struct {
			Name, Subject string
			Metadata      map[string]string
		}
	}
	Stats struct {
		Endpoints []natsCount
	}
}

type natsCount struct {
	Name      string
	Requests  int    `json:"num_requests"`
	Errors    int    `json:"num_errors"`
	LastError string `json:"last_error"`
	Spent     int64  `json:"processing_time"`
}

// info asks for one node.
func (n *natsRig) info(who, node string) (i natsInfo) {
	n.Helper()
	out := n.nats(who, "micro", "info", "stead-node", node, "--json")
	require.NoError(n, json.Unmarshal([]byte(out.Stdout), &i), "%s%s", out.Stdout, out.Stderr)
	require.Equal(n, node, i.Info.ID)
	return i
}

// count is how often a verb of a node was called.
func (n *natsRig) count(node string, verb subject.Verb) natsCount {
	n.Helper()
	name := string(seats.NodeServiceManager) + "_" + string(verb)
	for _, e := range n.info("alice", node).Stats.Endpoints {
		if e.Name == name {
			return e
		}
	}
	n.Fatalf("%s does not count %s", node, name)
	return natsCount{}
}

func (n *natsRig) discovered() {
	// Whoever ran stead up has a context already.
	require.Contains(n, n.done("--context", "ws1", "context", "nats", "--as", "home"), "operator root")
	require.Regexp(n, `│ ws2 +│`, n.ws1.Run(n.T, "nats", "--context", "home", "micro", "ls"))

	out := n.nats("alice", "micro", "ping")
	require.Regexp(n, `(?m)^stead-node ws1 +rtt=`, out.Stdout)
	require.Regexp(n, `(?m)^stead-node ws2 +rtt=`, out.Stdout)
	for _, who := range []string{"alice", "vera"} {
		out := n.nats(who, "micro", "stats", "stead-node", "ws2")
		require.Regexp(n, `│ ws2 +│ node-service-manager_disable +│ 0 `, out.Stdout, who)
		for _, node := range []string{"ws1", "ws2"} {
			i := n.info(who, node)
			require.Equal(n, node, i.Info.Metadata["node"])
			require.NotEmpty(n, i.Info.Description)
			require.Len(n, i.Info.Endpoints, 2*len(seats.Seeded()[0].Verbs), "of the node, and of all nodes")
			n.described(i, subject.Node(node))
		}
	}
	out = n.nats("alice", "micro", "info", "stead-node", "ws1")
	require.Regexp(n, `Subject: seat\.v1\.w\.ws1\.node-service-manager\.restart\n +Metadata: arguments: \{"\$schema"`, out.Stdout, "so a person sees it")
}

// described holds what a node says of its verbs against the seat.
func (n *natsRig) described(i natsInfo, node subject.Node) {
	n.Helper()
	found := map[string]map[string]string{}
	for _, e := range i.Info.Endpoints {
		found[e.Subject] = e.Metadata
	}
	for _, v := range seats.Seeded()[0].Verbs {
		one, all := found[verbOf(node, v.Name)], found[verbOf(subject.All, v.Name)]
		require.JSONEq(n, string(v.Arguments), one["arguments"], "%s", v.Name)
		require.JSONEq(n, string(v.Reply), one["reply"], "%s", v.Name)
		require.Equal(n, v.Meaning, one["meaning"])
		require.Contains(n, all["meaning"], v.Meaning)
	}
}

// counted calls a verb of ws2, which nobody else calls.
func (n *natsRig) counted() {
	status := verbOf("ws2", seats.Status)
	before, others := n.count("ws2", seats.Status), n.count("ws1", seats.Status)
	out := n.nats("alice", "request", "--count", "3", status, `{"unit":"stead-host.service"}`)
	require.Equal(n, 3, strings.Count(out.Stdout, `"id":"stead-host.service"`), "%s%s", out.Stdout, out.Stderr)
	require.Equal(n, 3, strings.Count(out.Stderr, "Stead-Name: ws2\n"), "who answers is told")

	for _, bad := range []struct{ payload, class, words string }{
		{`{"unit":7}`, "invalid", "unit: it is a number, and a string is wanted"},
		{`{"unit":"a.service","unti":1}`, "invalid", "unti: there is no such argument"},
		{`{}`, "invalid", "unit"},
		{`nonsense`, "invalid", "no JSON"},
		{`{"unit":"../x"}`, "invalid", "unit"},
		{`{"unit":"nosuch.service"}`, "not_found", "nosuch.service: there is no such unit"},
	} {
		out := n.nats("alice", "request", status, bad.payload)
		require.Contains(n, out.Stderr, "Nats-Service-Error-Code: "+bad.class+"\n", bad.payload)
		require.Regexp(n, "Nats-Service-Error: .*"+regexp.QuoteMeta(bad.words), out.Stderr, bad.payload)
		require.NotContains(n, out.Stdout, `"units"`)
	}
	after := n.count("ws2", seats.Status)
	require.Equal(n, before.Requests+9, after.Requests)
	require.Equal(n, before.Errors+6, after.Errors)
	require.Contains(n, after.LastError, "there is no such unit")
	require.Greater(n, after.Spent, before.Spent)
	require.Equal(n, others, n.count("ws1", seats.Status), "another node was not asked")

	for _, nobody := range []string{verbOf("ws3", seats.Status), "seat.v1.r.ws2.node-service-manager.nosuch", "seat.v1.r.ws2.nosuch.status", "seat.v1.r.ws2.node-service-manager.stop"} {
		require.Contains(n, n.nats("alice", "request", nobody, `{"unit":"a.service"}`).Stderr, "No responders are available", nobody)
	}
	out = n.nats("alice", "request", "--replies", "2", verbOf(subject.All, seats.Status), `{"unit":"stead-host.service"}`)
	require.Contains(n, out.Stderr, "Stead-Name: ws1\n")
	require.Contains(n, out.Stderr, "Stead-Name: ws2\n")
}

func (n *natsRig) acted() {
	for _, m := range []*machine{n.ws1, n.ws2} {
		require.NoError(n, m.WriteFile(etc+"/a.service", []byte(sleeper(1)), 0o644))
		m.Run(n.T, "systemctl", "daemon-reload")
	}
	before := n.count("ws1", seats.Restart)
	out := n.nats("alice", "request", verbOf("ws1", seats.Restart), `{"unit":"a.service"}`)
	require.Contains(n, out.Stdout, `"result":"done"`, out.Stderr)
	require.NotContains(n, out.Stderr, "Nats-Service-Error")
	require.Equal(n, "active", n.ws1.prop("a.service", "ActiveState"))
	require.Equal(n, "inactive", n.ws2.prop("a.service", "ActiveState"), "another node was not asked")
	after := n.count("ws1", seats.Restart)
	require.Equal(n, before.Requests+1, after.Requests)
	require.Equal(n, before.Errors, after.Errors)
	last := ""
	n.ws1.until("the audit has who acted", func() bool {
		last = fmt.Sprint(n.events("--unit", "a.service"))
		return strings.Contains(last, "operator alice")
	}, &last)

	// What changes the mesh is signed by who asks, which nats does not do.
	revision := n.revision()
	out = n.nats("alice", "request", "mesh.v1.w.withdraw", `{"names":["a"]}`)
	require.Contains(n, out.Stderr, "Nats-Service-Error-Code: denied\n")
	require.Contains(n, out.Stderr, "sign")
	require.Equal(n, revision, n.revision())
}

func (n *natsRig) heldBack() {
	for verb, arguments := range map[subject.Verb]string{seats.Units: `{"patterns":["a.service"]}`, seats.Status: `{"unit":"a.service"}`} {
		out := n.nats("vera", "request", verbOf("ws1", verb), arguments)
		require.Contains(n, out.Stdout, `"a.service"`, out.Stderr)
		require.NotContains(n, out.Stderr, "Nats-Service-Error")
	}
	pid, before := n.ws1.prop("a.service", "MainPID"), n.count("ws1", seats.Stop)
	require.NotEqual(n, "0", pid)
	violation := func(subject string) string { return fmt.Sprintf("Permissions Violation for Publish to %q", subject) }
	stop := verbOf("ws1", seats.Stop)
	out := n.nats("vera", "request", stop, `{"unit":"a.service"}`)
	require.Contains(n, out.Stderr, violation(stop))
	require.Empty(n, out.Stdout)
	// What is published alone is refused at once, and the command says so when it ends.
	refused := []string{verbOf("ws1", seats.Journal), verbOf(subject.All, seats.Stop), "mesh.v1.w.withdraw", "node.v1.ws1.changed", "$SRV.STOP"}
	for _, v := range seats.Seeded()[0].Verbs {
		if v.Class == subject.Write {
			refused = append(refused, verbOf("ws1", v.Name))
		}
	}
	for _, subject := range refused {
		out := n.nats("vera", "pub", subject, `{"unit":"a.service"}`)
		require.NotZero(n, out.Code, subject)
		require.Contains(n, out.Stderr, violation(subject))
	}
	require.Equal(n, pid, n.ws1.prop("a.service", "MainPID"))
	require.Equal(n, before, n.count("ws1", seats.Stop), "it did not come as far as the node")
}
