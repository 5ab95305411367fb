package admit

import (
	"testing"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

// FuzzApply: whatever is applied, by whoever saw whatever, nothing panics; each
// problem says what and how to mend it; what lands, lands whole, has one claimant
// of each unit on each node, and changes nothing when it is sent again.
func FuzzApply(f *testing.F) {
	two := service("web", "labels: {role: web}") + service("db", "unit: x", "nodes: [db1]")
	for _, s := range []string{two, service("web", "all: true") + service("web2", "unit: web", "nodes: [web1]"), service("web", "nodes: [web9, wbe1, old]"),
		service("web", "labels: {rloe: web}"), service("db", "all: true", "content: \"[Install]\\nAlias=web.service\""), "a: [", "", service("lost", "all: true"),
		service("web")} {
		f.Add(s, "", false, true)
		f.Add(s, "a.1.b", true, false)
	}
	f.Fuzz(func(t *testing.T, text, mark string, force, yes bool) {
		w := newWorld(t).node("web1", "role=web").node("web2", "role=web", "zone=a").node("db1", "role=db").node("old")
		w.landed(two)
		w.set(wire.SettingsRequest{Node: "old", Remove: true})
		w.profiles["db1"] = profile(t, []string{"enabled"})
		w.state.UnreadableDeclarations["lost"] = "why"
		r := w.request(text)
		r.Force, r.Yes = force, yes
		r.Seen["web"] = wire.Mark(mark)
		d, err := Apply(w.basis(), r)
		if err != nil {
			t.Fatal(err)
		}
		checkReply(t, d)
		held := len(d.Reply.Problems)+len(d.Reply.Conflicts) > 0 || d.Reply.Sure != ""
		services, bad := shape.Parse("a.yaml", []byte(text))
		if !held && (len(bad) > 0 || len(services) != len(d.Reply.Changes)) {
			t.Fatalf("%d declarations, %d changes, %v", len(services), len(d.Reply.Changes), bad)
		}
		if held {
			return
		}
		w.commit(d)
		oneOwner(t, w.state)
		r.Seen = nil
		again, err := Apply(w.basis(), r)
		if err != nil || len(again.Writes)+len(again.Reply.Problems)+len(again.Reply.Conflicts) > 0 || again.Reply.Sure != "" {
			t.Fatalf("the same again: %v %+v", err, again.Reply)
		}
	})
}

// oneOwner fails when two declarations of a unit meet on a node.
func oneOwner(t *testing.T, s *assign.State) {
	p := assign.Place(s)
	for _, node := range p.Nodes() {
		by := map[claim]string{}
		for _, d := range p.Set(node) {
			for _, u := range claims(d) {
				if first, taken := by[u]; taken {
					t.Fatalf("%s has %s and %s of %v", node, first, d.Name, u)
				}
				by[u] = d.Name
			}
		}
	}
}
