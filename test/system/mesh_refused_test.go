package system

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/test/lab"
)

// TestBadInputIsRefusedBeforeAnythingChanges gives commands that cannot be done.
// Each is refused whole, says what is wrong with what, and how to mend it.
func TestBadInputIsRefusedBeforeAnythingChanges(t *testing.T) {
	r := startMesh(t, "ws1")
	ws1 := r.nodes["ws1"]
	r.done("node", "add", "ws2", "role=web")
	r.apply(map[string]string{"web": addressed("web", "nodes: [ws1]", sleeper(0))})
	heard, before := ws1.listen(t, nil), ws1.snapshot()
	write := func(name, docs string) string {
		t.Helper()
		file := "/root/bad/" + name + ".yaml"
		require.NoError(t, r.ctl.WriteFile(file, []byte(docs), 0o644))
		return file
	}
	many := func(n int, change map[int]string) string {
		docs := make([]string, n)
		for i := range docs {
			docs[i] = addressed(fmt.Sprintf("m%d", i), "nodes: [ws1]", sleeper(i))
			if bad, ok := change[i]; ok {
				docs[i] = bad
			}
		}
		return documents(docs...)
	}
	heavy := text{"heavy", "nodes: [ws1]\n", "[Service]\n" + strings.Repeat("#"+strings.Repeat("x", 1000)+"\n", 62)}
	heavies := make([]string, 280)
	for i := range heavies {
		heavy.name = fmt.Sprintf("heavy%d", i)
		heavies[i] = heavy.String()
	}
	r.ctl.Run(t, "sh", "-ec", "mkdir -p /root/empty /root/dangling; ln -s /nowhere /root/dangling/a.yaml; ln -s loop /root/loop")
	require.NoError(t, r.ctl.WriteFile("/root/binary/a.yaml", []byte("shape: service\nname: \xff\xfe\n"), 0o644))
	good := addressed("good", "all: true", sleeper(1)) + separator

	for name, c := range map[string]struct {
		args  []string
		code  int
		words []string
	}{
		"an unknown node":        {[]string{"apply", "-f", write("node", good+addressed("x", "nodes: [ws1, ws9]", sleeper(1)))}, 1, []string{`"ws9" is no node`, "stead node add ws9", "x.nodes[1]"}},
		"an unknown label key":   {[]string{"apply", "-f", write("label", good+addressed("x", "labels: {rloe: web}", sleeper(1)))}, 1, []string{"rloe", "did you mean role?", "stead node label"}},
		"no folder":              {[]string{"apply", "-f", "/root/nowhere"}, 1, []string{"/root/nowhere", "no such file or folder"}},
		"an empty folder":        {[]string{"apply", "-f", "/root/empty"}, 1, []string{"/root/empty", "no declaration file", "stead withdraw"}},
		"a link to nothing":      {[]string{"apply", "-f", "/root/dangling"}, 1, []string{"/root/dangling/a.yaml", "does not exist"}},
		"a link to itself":       {[]string{"apply", "-f", "/root/loop"}, 1, []string{"/root/loop"}},
		"no text":                {[]string{"apply", "-f", "/root/binary"}, 1, []string{"/root/binary/a.yaml"}},
		"one of 500 is bad":      {[]string{"apply", "-f", write("500", many(500, map[int]string{320: addressed("m320", "nodes: [ws1]\ntiemout: 1m", sleeper(1))}))}, 1, []string{"m320.tiemout", "did you mean timeout?", "nothing was applied"}},
		"two of 500 are bad":     {[]string{"apply", "-f", write("501", many(500, map[int]string{1: addressed("m1", "nodes: [ws8]", sleeper(1)), 400: addressed("m400", "nodes: [ws7]", sleeper(1))}))}, 1, []string{"2 problems", "ws8", "ws7"}},
		"more than a batch has":  {[]string{"apply", "-f", write("1001", many(1001, nil))}, 1, []string{"1001 declarations", "1000"}},
		"more than 16 MiB":       {[]string{"apply", "-f", write("heavy", documents(heavies...))}, 1, []string{"16777216"}},
		"another's unit":         {[]string{"apply", "-f", write("unit", good+addressed("x", "nodes: [ws1]\nunit: web.service", sleeper(1)))}, 1, []string{"x.unit", `declared by "web" (operator alice) on ws1`}},
		"another's alias":        {[]string{"apply", "-f", write("alias", addressed("x", "nodes: [ws1]", sleeper(1)+"Alias=web.service\n"))}, 1, []string{"web.service", `"web"`}},
		"one name twice":         {[]string{"apply", "-f", write("twice", good+good)}, 1, []string{"good"}},
		"stead's own unit":       {[]string{"apply", "-f", write("own", addressed("x", "nodes: [ws1]\nunit: "+service, sleeper(1)))}, 1, []string{service}},
		"no addressing":          {[]string{"apply", "-f", write("nowhere", up("x", sleeper(1)))}, 1, []string{"nodes", "labels", "all"}},
		"two addressings":        {[]string{"apply", "-f", write("both", addressed("x", "all: true\nnodes: [ws1]", sleeper(1)))}, 1, []string{"x."}},
		"a node name":            {[]string{"node", "add", "Web_1"}, 2, []string{`"Web_1"`, "DNS label"}},
		"a node name in a file":  {[]string{"apply", "-f", write("name", addressed("x", "nodes: [Web_1]", sleeper(1)))}, 1, []string{"Web_1"}},
		"a name for credentials": {[]string{"credentials", "node", "web.1"}, 2, []string{`"web.1"`, "DNS label"}},
		"a pattern for a name":   {[]string{"credentials", "operator", "*"}, 2, []string{`"*"`, "DNS label"}},
		"a node to label":        {[]string{"node", "label", "ws9", "a=b"}, 1, []string{`"ws9" is no node`, "did you mean ws"}},
		"a name to withdraw":     {[]string{"withdraw", "wbe"}, 1, []string{"wbe", "did you mean web?"}},
		"a context":              {[]string{"--context", "nope", "get", "nodes"}, 1, []string{"nope", "alice"}},
		"a context of a file":    {[]string{"--context", "/root/nope.json", "get", "nodes"}, 1, []string{"/root/nope.json"}},
		"no file":                {[]string{"apply"}, 2, []string{"-f"}},
		"a command":              {[]string{"aplpy", "-f", "x"}, 2, []string{"aplpy", "stead apply"}},
		"a node to remove":       {[]string{"node", "remove", "ws9"}, 1, []string{`"ws9" is no node`}},
	} {
		t.Log(name)
		r.refused(c.code, c.args, c.words...)
	}
	require.Zero(t, heard.jobsOf("web.service"))
	require.Empty(t, before.Diff(ws1.snapshot()))
}

// TestAControllerThatDoesNotAnswerIsNamed stops the controller, and then lets it
// hang.
func TestAControllerThatDoesNotAnswerIsNamed(t *testing.T) {
	r := startMesh(t)
	r.write(map[string]string{"web": addressed("web", "all: true", sleeper(0))})
	try := func(commands [][]string, words ...string) {
		t.Helper()
		for _, args := range commands {
			begun := time.Now()
			out := r.stead(append(args, "--timeout", "2s")...)
			require.Equal(t, 1, out.Code, "stead %q: %s%s", args, out.Stdout, out.Stderr)
			require.Less(t, time.Since(begun), 20*time.Second, "stead %q", args)
			for _, w := range append(words, "error: ", "hint: ", "ctl:4222") {
				require.Contains(t, out.Stderr, w, "stead %q", args)
			}
		}
	}
	r.ctl.Run(t, "systemctl", "stop", controllerService)
	try([][]string{{"get", "nodes"}, {"apply", "-f", declared}, {"withdraw", "web"}, {"node", "add", "ws2"}, {"events"}},
		"connection refused", "systemctl status stead-controller")
	r.ctl.Run(t, "systemctl", "start", controllerService)
	r.done("get", "nodes")
	r.ctl.Run(t, "systemctl", "kill", "--signal=STOP", controllerService)
	try([][]string{{"get", "nodes"}, {"apply", "-f", declared}})
	r.ctl.Run(t, "systemctl", "kill", "--signal=CONT", controllerService)
	r.ctl.until("it answers again", func() bool { return r.stead("get", "nodes").Code == 0 })
	require.Empty(t, r.get(wire.Declarations).Declarations, "what was not answered was done")
}

// TestVersionsThatDoNotFitAreRefused has people, nodes and files of other versions
// than this one's.
func TestVersionsThatDoNotFitAreRefused(t *testing.T) {
	if lab.AmInside() {
		speakOtherwise(t)
		return
	}
	r := startMesh(t, "ws1")
	r.ctl.Run(t, "stead", "credentials", "node", "old", "--out", "/root/old")
	r.done("node", "add", "old")
	r.ctl.RunTest(t, "/proc/self/exe", "-test.run", "^TestVersionsThatDoNotFitAreRefused$")
	require.Empty(t, r.get(wire.Declarations).Declarations, "only what the node reported of itself is another")

	// What the host of a node lacks is refused for that node, by name.
	r.write(map[string]string{"web": addressed("web", "all: true\ntimeout: 1m", sleeper(0))})
	r.refused(1, []string{"apply", "-f", declared}, `old`, "timeout")
	r.write(map[string]string{"web": addressed("web", "nodes: [ws1]\ntimeout: 1m", sleeper(0))})
	r.done("apply", "-f", declared, "--wait=1m")

	file := "/root/.config/stead/contexts/alice.json"
	r.ctl.Run(t, "sed", "-i.good", `s/"schema": 1,/"schema": 99,/`, file)
	out := r.stead("get", "nodes")
	require.Equal(t, 1, out.Code)
	require.Regexp(t, `error: .*alice\.json: schema 99; this version reads 1\nhint: .`, out.Stderr)
	r.ctl.Run(t, "mv", file+".good", file)

	ws1 := r.nodes["ws1"]
	ws1.Run(t, "sed", "-i.good", `s/"schema": 1,/"schema": 99,/`, "/etc/stead/credentials/host.json")
	ws1.Run(t, "systemctl", "restart", service)
	ws1.until("the host says so", func() bool {
		st, err := ws1.status()
		return err == nil && strings.Contains(st.Source.Trouble, "schema 99; this version reads 1")
	})
	require.True(t, ws1.runs("web.service", sleeper(0)), "and keeps what it has")
	ws1.Run(t, "mv", "/etc/stead/credentials/host.json.good", "/etc/stead/credentials/host.json")
	ws1.until("the host goes on by itself", func() bool {
		st, err := ws1.status()
		return err == nil && st.Source.Trouble == "" && st.Source.Mesh.Connected
	})
}

// speakOtherwise runs on the controller's node, as programs of another version.
func speakOtherwise(t *testing.T) {
	call := func(file, to string, message any) error {
		t.Helper()
		who, err := identity.ReadCredentials(file)
		require.NoError(t, err)
		conn, err := mesh.Connect(t.Context(), mesh.Options{
			Credentials: func() (identity.Credentials, error) { return who, nil }, Name: "other", Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, conn.Wait(ctx))
		payload, err := json.Marshal(message)
		require.NoError(t, err)
		_, err = conn.Call(ctx, to, payload)
		return err
	}
	const other = wire.Version + 98
	for to, message := range map[string]any{
		subject.ForOperation(subject.Write, wire.Apply): wire.ApplyRequest{Wire: other, Files: []wire.File{{Name: "x", Text: addressed("x", "all: true", sleeper(0))}}},
		subject.ForOperation(subject.Read, wire.Get):    wire.GetRequest{Wire: other, Kind: wire.Nodes},
	} {
		err := call("/root/alice.json", to, message)
		require.Equal(t, fault.Unsupported, fault.ClassOf(err), "%s: %v", to, err)
		require.ErrorContains(t, err, fmt.Sprintf("version %d, this controller reads version %d", other, wire.Version))
		require.NotEmpty(t, fault.HintOf(err))
	}
	host := "/root/old/host.json"
	err := call(host, subject.ForNode("old", subject.Sync), wire.SyncRequest{Wire: other})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err), "%v", err)
	words := wire.Vocabulary()
	words[0].Fields = slices.DeleteFunc(slices.Clone(words[0].Fields), func(f string) bool { return f == "timeout" })
	require.NoError(t, call(host, subject.ForNode("old", subject.Profile), wire.Profile{
		Wire: wire.Version, Version: "0.1", Wires: []int{wire.Version}, Vocabulary: words, Capabilities: []string{wire.ServiceManager},
	}))
}
