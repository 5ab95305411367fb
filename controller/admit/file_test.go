package admit

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
)

// file is a document that declares a file.
func file(name, path string, fields ...string) string {
	return "shape: file\nname: " + name + "\npath: " + path + "\ncontent: a\n" + strings.Join(fields, "\n") + "\n---\n"
}

// refusals are the problems of an apply, each as it is told.
func (w *world) refusals(files ...string) []string {
	w.t.Helper()
	d, err := Apply(w.basis(), w.request(files...))
	require.NoError(w.t, err)
	require.Empty(w.t, d.Writes)
	checkReply(w.t, d)
	var all []string
	for _, p := range d.Reply.Problems {
		all = append(all, p.String())
	}
	return all
}

func TestFilesAndServicesHaveNamesOfTheirOwn(t *testing.T) {
	w := newWorld(t).node("ws1")
	d := w.landed(service("web", "nodes: [ws1]", "triggers: [file:web]"), file("web", "/etc/web.conf", "nodes: [ws1]"))
	require.Equal(t, []string{"file:web", "web"}, written(d))
	require.Equal(t, "/etc/web.conf", d.Reply.Changes[1].Unit)
	edited := w.landed(file("web", "/etc/web.conf", "nodes: [ws1]", "mode: 0600"))
	require.Equal(t, []string{"mode"}, edited.Reply.Changes[0].Fields)
	require.Equal(t, uint64(2), edited.Reply.Changes[0].Generation)
	gone := w.withdraw(wire.WithdrawRequest{Names: []string{"file:web"}, Seen: w.seen()})
	require.Equal(t, []string{"file:web"}, written(gone))
	require.Equal(t, []string{"web cites file:web, which goes from ws1: it takes no change in there any more"}, gone.Reply.Warnings)
	require.False(t, w.state.Declarations["web"].Withdrawn)
}

func TestAPathHasOneDeclarationOnANode(t *testing.T) {
	w := newWorld(t).node("ws1").node("ws2")
	w.landed(file("a", "/etc/a", "nodes: [ws1]"))
	w.landed(file("b", "/etc/a", "nodes: [ws2]"))
	require.Equal(t, []string{`a.yaml:3: file:c.path: /etc/a is declared by "file:a" (operator alice) on ws1 too; a path has one declaration on a node: withdraw file:a, or address them to different nodes`,
		`a.yaml:3: file:c.path: /etc/a is declared by "file:b" (operator alice) on ws2 too; a path has one declaration on a node: withdraw file:b, or address them to different nodes`},
		w.refusals(file("c", "/etc/a", "all: true")))
	w.landed(file("home", "~/a", "scope: user", "nodes: [ws1]"))
	w.landed(service("alias", "nodes: [ws1]"))
	w.landed(strings.Replace(file("alias", "/etc/b", "nodes: [ws1]"), "content: a", "content: \"[Install]\\nAlias=alias.service\\n\"", 1)) // what a file holds is no alias
}

func TestWhatIsCitedMustBeDeclaredOnTheSameNodes(t *testing.T) {
	w := newWorld(t).node("ws1", "role=a").node("ws2", "role=a")
	cites := func(name, where string) string { return service("web", where, "triggers: [file:"+name+"]") }
	require.Equal(t, []string{"a.yaml:5: web.triggers: it cites file:conf, which is not declared; declare a file of that name (stead explain file), or cite its path"}, w.refusals(cites("conf", "nodes: [ws1]")))
	w.landed(file("conf", "/etc/conf", "nodes: [ws1]"))
	require.Equal(t, []string{"a.yaml:5: web.triggers: it cites file:cnf, which is not declared; did you mean file:conf?"}, w.refusals(cites("cnf", "nodes: [ws1]")))
	w.landed(cites("conf", "nodes: [ws1]"))
	require.Equal(t, []string{"a.yaml:5: web.triggers: it cites file:conf, which is not declared on ws2; address file:conf to the same nodes, or cite its path"}, w.refusals(cites("conf", "all: true")))
	w.landed(cites("conf", "all: true"), file("conf", "/etc/conf", "all: true"))
	moved := w.landed(file("conf", "/etc/conf", "nodes: [ws1]"))
	require.Equal(t, []string{"web cites file:conf, which goes from ws2: it takes no change in there any more"}, moved.Reply.Warnings)
	require.Equal(t, []string{"a.yaml:5: web.triggers: it cites file:mine, which is of scope user, and a unit of the system looks at nothing below a home; declare the file in scope system"},
		w.refusals(cites("mine", "nodes: [ws1]")+file("mine", "~/mine", "scope: user", "nodes: [ws1]")))
	w.landed(service("late", "labels: {role: b}", "triggers: [file:conf]"))
	d := w.set(wire.SettingsRequest{Node: "ws2", Labels: map[string]string{"role": "b"}})
	require.Equal(t, "late.triggers: it cites file:conf, which is not declared on ws2; address file:conf to the same nodes, or cite its path", d.Reply.Problems[0].String(), "a label brings it there")
}

func TestAHostThatLacksTheShapeOrWhatCitesItRefusesByName(t *testing.T) {
	w := newWorld(t).node("old").node("new")
	old := profile(t, nil)
	old.Vocabulary = old.Vocabulary[:1:1]
	old.Vocabulary[0].Version = 2
	old.Vocabulary[0].Fields = slices.DeleteFunc(slices.Clone(old.Vocabulary[0].Fields), func(f string) bool {
		return slices.Contains([]string{"daemon_reload", "provider", "sensitive"}, f)
	})
	w.profiles["old"], w.profiles["new"] = old, profile(t, nil)
	const cure = "; upgrade stead there, or address it to other nodes"
	require.Equal(t, []string{`a.yaml:1: file:conf.shape: the host of old (stead 0.9) does not know the shape "file"` + cure}, w.refusals(file("conf", "/etc/conf", "all: true")))
	for field, doc := range map[string]string{"daemon_reload": "daemon_reload: never", "provider": "provider: systemd", "sensitive": "sensitive: true"} {
		require.Equal(t, []string{`a.yaml:5: web.` + field + `: the host of old (stead 0.9) does not know the field "` + field + `"` + cure}, w.refusals(service("web", "all: true", doc)))
	}
	w.landed(service("web", "all: true", "daemon_reload: auto", "provider: auto", "sensitive: false"))
	w.landed(file("conf", "/etc/conf", "nodes: [new]"))
	refused := w.refusals(service("web", "all: true", "triggers: [file:conf]"))
	require.Contains(t, refused, `a.yaml:5: web.triggers: the host of old (stead 0.9) does not know declared files, which it cites`+cure)
}

func TestAFileOfTheLargestContentIsTaken(t *testing.T) {
	w := newWorld(t).node("ws1")
	line := strings.Repeat("k", 39) + "\n"
	w.landed("shape: file\nname: large\npath: /etc/large\nall: true\ncontent: |\n  " + strings.ReplaceAll(strings.Repeat(line, 512<<10/len(line)), "\n", "\n  ") + "\n")
	refused := w.refusals("shape: file\nname: quotes\npath: /etc/quotes\nall: true\ncontent: '" + strings.Repeat(`"`, 512<<10) + "'\n")
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "file:quotes.content: in canonical form the declaration has 1048")
}
