package admit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

var update = flag.Bool("update", false, "write what is wanted anew")

// TestWhatIsSaid holds what an operator reads against testdata. Each archive holds
// the mesh ("state"), what was applied before ("before/…"), what is asked
// ("request" and files), and what is said ("want").
func TestWhatIsSaid(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.Greater(t, len(paths), 30)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			require.NoError(t, err)
			got := saying(t, a)
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if *update {
				if i < 0 {
					i, a.Files = len(a.Files), append(a.Files, txtar.File{Name: "want"})
				}
				a.Files[i].Data = []byte(got)
				require.NoError(t, os.WriteFile(path, txtar.Format(a), 0o600))
			}
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, string(a.Files[i].Data), got)
		})
	}
}

// saying plays an archive and returns what is said.
func saying(t *testing.T, a *txtar.Archive) string {
	w := newWorld(t)
	var request []string
	var files []wire.File
	for _, f := range a.Files {
		text := string(f.Data)
		switch {
		case f.Name == "state":
			for line := range strings.Lines(text) {
				w.line(strings.Fields(line))
			}
		case strings.HasPrefix(f.Name, "before/"):
			w.landed(text)
		case f.Name == "after":
			for line := range strings.Lines(text) {
				w.line(strings.Fields(line))
			}
		case f.Name == "request":
			request = strings.Fields(text)
		case f.Name != "want":
			files = append(files, wire.File{Name: f.Name, Text: text})
		}
	}
	require.NotEmpty(t, request)
	d := w.ask(request, files)
	checkReply(t, d)
	return said(t, request[0], d)
}

// line plays one line of a state.
func (w *world) line(words []string) {
	w.t.Helper()
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "node":
		w.node(words[1], words[2:]...)
	case "nodes": // nodes PREFIX COUNT LABEL…
		n, err := strconv.Atoi(words[2])
		require.NoError(w.t, err)
		for i := range n {
			w.node(fmt.Sprintf("%s%d", words[1], i+1), words[3:]...)
		}
	case "removed":
		w.set(wire.SettingsRequest{Node: words[1], Remove: true})
	case "account":
		w.set(wire.SettingsRequest{Node: words[1], Account: &words[2]})
	case "label":
		w.set(wire.SettingsRequest{Node: words[1], Labels: pairs(words[2:]), Yes: true})
	case "profile":
		w.profiles[words[1]] = profile(w.t, words[2:])
	case "reports": // NODE CAPABILITY…
		n := *w.state.Nodes[words[1]]
		n.Capabilities = words[2:]
		w.state.Nodes[words[1]] = &n
	case "module": // NAME CAPABILITY UNIT: it declares the unit to be running
		w.seed(1, desk(words[1], words[2], words[3]))
	case "kept":
		w.kept[words[1]] = words[2:]
	case "withdrawn":
		d := w.withdraw(wire.WithdrawRequest{Names: words[1:], Yes: true})
		require.Equal(w.t, words[1:], written(d))
	case "unreadable":
		map[string]map[string]string{"declaration": w.state.UnreadableDeclarations, "node": w.state.UnreadableNodes}[words[1]][words[2]] = strings.Join(words[3:], " ")
	default:
		w.t.Fatalf("no such line of a state: %s", words)
	}
}

func pairs(words []string) map[string]string {
	m := map[string]string{}
	for _, word := range words {
		k, v, _ := strings.Cut(word, "=")
		m[k] = v
	}
	return m
}

// profile is that of a host that lacks what is named: a field, "shape", "wire".
func profile(t *testing.T, lacks []string) wire.Profile {
	p := wire.Profile{Version: "0.9", Wires: []int{wire.Version}, Vocabulary: wire.Vocabulary()}
	for _, what := range lacks {
		switch what {
		case "shape":
			p.Vocabulary = nil
		case "wire":
			p.Wires = []int{7, 8}
		case "version":
			p.Vocabulary[0].Version = 1
		default:
			i := slices.Index(p.Vocabulary[0].Fields, what)
			require.GreaterOrEqual(t, i, 0, what)
			p.Vocabulary[0].Fields = slices.Delete(p.Vocabulary[0].Fields, i, i+1)
		}
	}
	return p
}

// ask asks what the words of a request say.
func (w *world) ask(words []string, files []wire.File) Decision {
	w.t.Helper()
	flags, rest := map[string]bool{}, []string{}
	seen := w.seen()
	for _, word := range words[1:] {
		switch name, ok := strings.CutPrefix(word, "unseen="); {
		case ok:
			delete(seen, name)
		case strings.HasPrefix(word, "stale="):
			seen[strings.TrimPrefix(word, "stale=")] = "0.0.0"
		case strings.HasPrefix(word, "--"):
			flags[word] = true
		default:
			rest = append(rest, word)
		}
	}
	switch words[0] {
	case "apply":
		d, err := Apply(w.basis(), wire.ApplyRequest{Wire: wire.Version, Files: files, Seen: seen, Force: flags["--force"], Yes: flags["--yes"], DryRun: flags["--dry-run"]})
		require.NoError(w.t, err)
		return d
	case "withdraw":
		d, err := Withdraw(w.basis(), wire.WithdrawRequest{Wire: wire.Version, Names: rest, Seen: seen, Force: flags["--force"], Yes: flags["--yes"], DryRun: flags["--dry-run"]})
		require.NoError(w.t, err)
		return d
	}
	r := wire.SettingsRequest{Wire: wire.Version, Node: words[1], Add: flags["--add"], Remove: flags["--remove"], Yes: flags["--yes"], Labels: map[string]string{}}
	for _, word := range rest[min(1, len(rest)):] {
		key, value, set := strings.Cut(word, "=")
		switch {
		case key == "account":
			r.Account = &value
		case key == "linger":
			r.Linger = &value
		case set:
			r.Labels[key] = value
		default:
			r.Unlabel = append(r.Unlabel, strings.TrimSuffix(key, "-"))
		}
	}
	d, err := Settings(w.basis(), r)
	require.NoError(w.t, err)
	return d
}

// said is an answer as a terminal shows it.
func said(t *testing.T, op string, d Decision) string {
	did := map[string]string{"apply": "applied", "withdraw": "withdrawn", "node": "changed"}[op]
	var b strings.Builder
	r := d.Reply
	if len(r.Problems) > 0 {
		b.WriteString("error: ")
		require.NoError(t, r.Problems.Format(&b, "nothing was "+did))
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(&b, "conflict: %s was %s by %s on %s, generation %d; differs in %s\n", c.Name, c.How, c.By, c.At.Format(time.DateTime), c.Generation, strings.Join(c.Fields, ", "))
	}
	if r.Sure != "" {
		b.WriteString("error: " + r.Sure + "\nhint: --yes\n")
	}
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s  %s  %d nodes, +%d -%d  generation %d  %s  %s\n", c.Name, c.How, c.Nodes, c.Gains, c.Loses, c.Generation, c.Unit, strings.Join(c.Fields, ", "))
	}
	if n := r.Node; n != nil {
		fmt.Fprintf(&b, "node %s %s %s account=%q linger=%s declared %d\n", n.Name, n.State, assign.Address{Labels: n.Labels}, n.Account, n.Linger, n.Declared)
	}
	for _, warning := range r.Warnings {
		b.WriteString("warning: " + warning + "\n")
	}
	what := written(d)
	if d.Node != nil {
		what = append(what, "node "+d.Node.Name)
	}
	fmt.Fprintf(&b, "writes: %s\n", strings.Join(what, " "))
	return b.String()
}

// checkReply holds what every answer keeps to.
func checkReply(t *testing.T, d Decision) {
	r := d.Reply
	if len(r.Problems) > 0 || len(r.Conflicts) > 0 || r.Sure != "" {
		require.Empty(t, d.Writes, "something holds it up")
		require.Nil(t, d.Node, "something holds it up")
	}
	for _, p := range r.Problems {
		require.NotEmpty(t, p.Rule)
		require.NotEmpty(t, p.Cure, p.Rule)
		require.NotContains(t, p.String(), "\n")
		require.LessOrEqual(t, len(p.Rule), 1000)
	}
	require.LessOrEqual(t, len(r.Problems), shape.MaxProblems+1)
}
