package admit

import (
	"fmt"
	"strings"
	"testing"

	"stead/mesh/wire"
)

// large is a mesh of 1,000 nodes, and a document for each of 1,000 declarations.
func large(b *testing.B) (*world, []string) {
	w := &world{state: newWorld(nil).state}
	for i := range 1000 {
		w.node(fmt.Sprintf("node%03d", i), fmt.Sprintf("role=r%d", i%10))
		w.state.Nodes[fmt.Sprintf("node%03d", i)].By = "operator bob"
	}
	var docs []string
	for i := range 1000 {
		where := "all: true"
		if i%2 == 1 {
			where = fmt.Sprintf("labels: {role: r%d}", i%10)
		}
		docs = append(docs, service(fmt.Sprintf("d%03d", i), where, "content: |", "  [Service]", "  ExecStart=/usr/bin/sleep infinity", "  [Install]", "  WantedBy=multi-user.target"))
	}
	b.ReportAllocs()
	return w, docs
}

// BenchmarkApply judges an apply of 1,000 declarations to 1,000 nodes: new ones,
// the same again, and one edited of them.
func BenchmarkApply(b *testing.B) {
	w, docs := large(b)
	run := func(name, text string, writes int) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d, err := Apply(w.basis(), wire.ApplyRequest{Wire: wire.Version, Seen: w.seen(), Files: []wire.File{{Name: "a.yaml", Text: text}}})
				if err != nil || len(d.Writes) != writes || len(d.Reply.Problems) > 0 {
					b.Fatal(err, len(d.Writes), d.Reply.Problems)
				}
			}
		})
	}
	all := strings.Join(docs, "")
	run("new", all, 1000)
	d, err := Apply(w.basis(), wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a.yaml", Text: all}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range d.Writes {
		w.state.Declarations[one.Name] = one
	}
	run("same", all, 0)
	run("one", strings.Replace(docs[7], "infinity", "1", 1), 1)
}

// BenchmarkWithdraw judges a withdrawal of 1,000 declarations from 1,000 nodes.
func BenchmarkWithdraw(b *testing.B) {
	w, docs := large(b)
	d, err := Apply(w.basis(), wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a.yaml", Text: strings.Join(docs, "")}}})
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, one := range d.Writes {
		w.state.Declarations[one.Name] = one
		names = append(names, one.Name)
	}
	for b.Loop() {
		d, err := Withdraw(w.basis(), wire.WithdrawRequest{Wire: wire.Version, Names: names, Yes: true})
		if err != nil || len(d.Writes) != 1000 {
			b.Fatal(err, len(d.Writes))
		}
	}
}
