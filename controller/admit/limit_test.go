package admit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// problemsOf applies and returns the problems.
func (w *world) problemsOf(r wire.ApplyRequest) shape.Problems {
	w.t.Helper()
	d, err := Apply(w.basis(), r)
	require.NoError(w.t, err)
	checkReply(w.t, d)
	text, err := json.Marshal(d.Reply)
	require.NoError(w.t, err)
	require.LessOrEqual(w.t, len(text), wire.MaxPage+1000, "an answer fits into a message")
	return d.Reply.Problems
}

func TestAnApplyIsBounded(t *testing.T) {
	w := newWorld(t).node("web1")
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(service(fmt.Sprintf("d%d", i), "all: true"))
		}
		return b.String()
	}
	large := strings.Repeat("#", shape.MaxBatch/2) + "\n"
	require.Equal(t, shape.Problems{{File: "b.yaml", Line: 3001, Path: "d600", Rule: "there are 1001 declarations; a batch has at most 1000", Cure: "declare fewer"}},
		w.problemsOf(w.request(strings.ReplaceAll(many(400), "name: d", "name: e"), many(601)))[:1])
	require.Len(t, w.problemsOf(w.request(many(1001), "a: [")), 1, "the rest is not read")
	require.Equal(t, shape.Problems{{Rule: "the documents have 16777218 bytes; a batch has at most 16777216", Cure: "declare less"}}, w.problemsOf(w.request(large, large)))

	// What is written is bounded too: a control character takes six bytes there.
	text := `"#` + strings.Repeat("\\x01", 63<<10) + `"`
	control := service("ctl", "all: true", "dropins:", "  a.conf: "+text, "  b.conf: "+text)
	problems := w.problemsOf(w.request(control))
	require.Len(t, problems, 1)
	require.Equal(t, "ctl.dropins", problems[0].Path)
	require.Contains(t, problems[0].Rule, "more than the 757760 that a node takes")
}

func TestACommitIsBounded(t *testing.T) {
	w := newWorld(t).node("web1")
	docs := func(n int) []*shape.Located {
		var all []*shape.Located
		for i := range n {
			s := &shape.Service{Name: fmt.Sprintf("d%d", i), Scope: "system", Unit: unit.Name(fmt.Sprintf("d%d.service", i)), All: true, OnWithdraw: shape.Restore}
			text := strings.Repeat(`"`, 64000) // each takes two bytes
			s.Content = &text
			all = append(all, &shape.Located{Declaration: s})
		}
		return all
	}
	judged := func(n int) Decision {
		j, err := newJudge(w.basis(), "apply", "", wire.Version)
		require.NoError(t, err)
		return j.apply(docs(n), nil)
	}
	require.Len(t, judged(243).Writes, 243)
	d := judged(244)
	require.Empty(t, d.Writes)
	require.Equal(t, "what it writes has 31514820 bytes; one commit takes at most 31457280; apply it in two parts", d.Reply.Problems[0].String())
}

func TestANodeIsBounded(t *testing.T) {
	w := newWorld(t).node("web1", "role=web").node("web2", "role=web").node("db1", "role=db")
	for i := range wire.MaxEntries - 1 {
		name := fmt.Sprintf("d%d", i)
		services, _ := shape.Parse("f", []byte(service(name)))
		w.state.Declarations[name] = &assign.Declaration{Name: name, UID: name, Generation: 1, Canonical: services[0].Canonical(), Service: services[0],
			Address: assign.Address{Labels: map[string]string{"role": "web"}}}
	}
	require.Empty(t, w.problemsOf(w.request(service("last", "all: true"))))
	require.Equal(t, shape.Problems{{File: "a.yaml", Line: 4, Path: "last.all", Rule: "web1 and web2 would have 2001 declarations; a node has at most 2000", Cure: "address fewer of them to it"}},
		w.problemsOf(w.request(service("last", "all: true")+service("other", "nodes: [web1, web2, db1]"))))

	w.landed(service("all-the-web", "labels: {role: web}") + service("of-db", "nodes: [db1]"))
	d, err := Settings(w.basis(), wire.SettingsRequest{Wire: wire.Version, Node: "db1", Labels: map[string]string{"role": "web"}})
	require.NoError(t, err)
	require.Equal(t, "db1 would have 2001 declarations; a node has at most 2000", d.Reply.Problems[0].Rule)
}

func TestAnAnswerFitsIntoAMessage(t *testing.T) {
	w := newWorld(t).node("web1")
	var b strings.Builder
	name := strings.Repeat("n", 55)
	for i := range shape.MaxDeclarations {
		b.WriteString(service(fmt.Sprintf("%s%d", name, i), "nodes: ["+strings.Repeat("x", 60)+"]"))
	}
	r := w.request(b.String())
	r.Files[0].Name = strings.Repeat("a/", 150) + "\x1b[31m.yaml"
	problems := w.problemsOf(r)
	require.Len(t, problems, 1000)
	require.LessOrEqual(t, len(problems[0].File), 260)
	require.NotContains(t, problems[0].File, "\x1b")

	one := strings.ReplaceAll(b.String(), strings.Repeat("x", 60), "web1")
	w.landed(one)
	r = w.request(strings.ReplaceAll(one, "ensure: running", "ensure: stopped\nenabled: true\ntimeout: 1m\ndropins: {a.conf: '#'}\non_withdraw: release"))
	r.Seen = nil
	d, err := Apply(w.basis(), r)
	require.NoError(t, err)
	require.Empty(t, d.Reply.Problems)
	require.Len(t, d.Reply.Conflicts, 1000)
	text, err := json.Marshal(d.Reply)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), wire.MaxPage)
	r.Force = true
	d, err = Apply(w.basis(), r)
	require.NoError(t, err)
	require.Len(t, d.Reply.Changes, 1000)
	text, err = json.Marshal(d.Reply)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), wire.MaxPage)
}

func TestFitCountsWhatItLeavesOut(t *testing.T) {
	var d Decision
	for range 3000 {
		d.Reply.Problems = append(d.Reply.Problems, shape.Problem{Rule: strings.Repeat("r", 500), Cure: "c"})
		d.Reply.Conflicts = append(d.Reply.Conflicts, wire.Conflict{Name: strings.Repeat("n", 500)})
	}
	r := fit(d).Reply
	require.Equal(t, fmt.Sprintf("%d further problems are not listed", 3000-len(r.Problems)+1), r.Problems[len(r.Problems)-1].Rule)
	require.Equal(t, []string{fmt.Sprintf("%d further conflicts are not listed", 3000-len(r.Conflicts))}, r.Warnings)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), wire.MaxPage)
	require.Greater(t, len(text), wire.MaxPage/8)
}
