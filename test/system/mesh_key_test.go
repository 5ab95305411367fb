package system

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/seal"
	"stead/mesh/wire"
)

// TestWithTheKeyOfTheMeshWhatIsPlantedActs shows that nothing but the seal holds
// back what TestWhatIsPlanted… plant: the same writes, sealed as a controller does,
// declare, edit, withdraw, set, and begin.
func TestWithTheKeyOfTheMeshWhatIsPlantedActs(t *testing.T) {
	t.Parallel()
	p := newPlanter(t)
	acts := p.keyed()
	for i, c := range acts {
		c.do()
		p.until(c.name, func() bool {
			p.ask(p.hosts...) // no controller made it, so none tells of it
			return c.done()
		})
		require.Empty(t, p.trouble(), c.name)
		if i == len(acts)/2 { // what was planted so is read again at a start
			p.deafen()
			p.stopController()
			require.NoError(t, p.tryController(false))
			p.listen()
		}
	}
	p.until("all is calm", func() bool { return p.trouble() == "" })
	p.runs(p.ws1, "web", "evil", "gone")
	p.runs(p.ws2, "web", "evil", "gone")
	for _, n := range p.hosts {
		require.Empty(t, n.host.Status().Source.Kept)
	}
	t.Logf("planted with the key of the mesh: %d, all in force", len(acts))
}

// act is something that is done with the key, and what comes of it.
type act struct {
	name string
	do   func()
	done func() bool
}

func (p *planter) keyed() []act {
	seals := func(key string, body []byte, deleted bool) func() {
		return func() { p.plant(p.sealed(key, body, deleted)) }
	}
	has := func(n *simulated, words string) func() bool {
		return func() bool { return strings.Contains(n.picture(), words) }
	}
	uid := p.uids()
	return []act{
		{"a declaration that nobody declared", seals("declaration.evil", p.evil("evil", "u1", 66), false), has(p.ws1, "start evil.service")},
		{"an edit that nobody made", seals("declaration.web", p.evil("web", uid["web"], 67), false), has(p.ws2, "sleep 67")},
		{"what was withdrawn, over its tombstone", seals("declaration.gone", p.evil("gone", "u2", 68), false), has(p.ws2, "sleep 68")},
		{"a withdrawal that nobody wanted", seals("declaration.db", p.tombstone("db", uid["db"]), true), has(p.ws1, "stop db.service")},
		{"a label that nobody set", seals("node.ws1", p.node("ws1", "web"), false), has(p.ws1, "start cache.service")},
		{"an epoch that nobody began", func() {
			epoch := p.ws1.host.Status().Source.Mesh.Epoch
			body, err := json.Marshal(map[string]any{"id": "x", "number": 2, "follows": []string{epoch}, "created": time.Now(), "by": "thief"})
			require.NoError(p.t, err)
			p.plant(p.sealed("mesh.epoch", body, false))
		}, func() bool {
			return p.ws1.host.Status().Source.Mesh.Epoch == "x" && p.ws2.host.Status().Source.Mesh.Epoch == "x"
		}},
		{"a declaration that is cut out, under a sum that fits", p.cutOut, func() bool {
			return has(p.ws1, "stop cache.service")() && has(p.ws2, "stop cache.service")()
		}},
	}
}

// cutOut makes the store anew without a declaration, and with a sum that knows
// nothing of it.
func (p *planter) cutOut() {
	all := without(p.messages(), "declaration.cache")
	last := all[len(all)-1]
	_, text, _ := bytes.Cut(last.data, []byte("\n"))
	_, body, _ := bytes.Cut(text, []byte("\n"))
	p.rewrite(append(all, p.sealedOn(all, last.key, body, last.deleted)))
}

// uids are those of what is declared.
func (p *planter) uids() map[string]string {
	p.t.Helper()
	uids := map[string]string{}
	require.NoError(p.t, p.alice.Get(p.within(patience), wire.GetRequest{Kind: wire.Declarations}, func(r wire.GetReply) error {
		for _, d := range r.Declarations {
			uids[d.Name] = d.UID
		}
		return nil
	}))
	return uids
}

func (p *planter) tombstone(name, uid string) []byte {
	p.t.Helper()
	head, err := json.Marshal(map[string]any{"name": name, "uid": uid, "generation": 9, "withdrawn": true, "by": "thief", "at": time.Now()})
	require.NoError(p.t, err)
	return append(head, '\n')
}

func (p *planter) node(name, role string) []byte {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "labels": map[string]string{"role": role}, "linger": "auto", "by": "thief", "at": time.Now()})
	require.NoError(p.t, err)
	return body
}

// TestAnEpochThatBeginsOnWhatWasPlantedTakesNothingAway has somebody decide to go
// on with a store that was tampered with. What does not open is nobody's word, and
// what is missing was withdrawn by nobody.
func TestAnEpochThatBeginsOnWhatWasPlantedTakesNothingAway(t *testing.T) {
	t.Parallel()
	p := newPlanter(t)
	before := p.pictures()
	for _, c := range []struct {
		name string
		do   func()
		kept []string // by ws1
	}{
		{"junk beside the others", p.puts("declaration.evil", p.evil("evil", "u1", 66), false), nil},
		{"junk over a declaration", p.puts("declaration.web", []byte("junk"), false), []string{"web"}},
		{"a tombstone over a declaration", func() { p.puts("declaration.web", under(p.all, "declaration.web").data, true)() }, []string{"web"}},
		{"what was withdrawn over its tombstone", p.puts("declaration.gone", under(p.old, "declaration.gone").data, false), nil},
		{"another key's declaration", func() { p.plant(p.forged("declaration.web", p.evil("web", "u1", 66), func(*seal.Place) {})) }, []string{"web"}},
		{"a declaration that is cut out", func() { p.rewrite(without(p.messages(), "declaration.db")) }, []string{"db"}},
		{"a node that is cut out", func() { p.rewrite(without(p.messages(), "node.ws1", "node.ws2")) }, nil},
		{"a tombstone that is cut out", func() { p.rewrite(without(p.messages(), "declaration.gone")) }, nil},
		{"an epoch of the thief's", p.puts("mesh.epoch", []byte(`{"id":"x","number":9}`), false), nil},
		{"everything", func() { p.rewrite(nil) }, []string{"db", "web"}},
		{"the store itself", func() { require.NoError(t, p.js.DeleteStream(p.within(patience), "KV_state")) }, []string{"db", "web"}},
	} {
		p.deafen()
		p.stopController()
		c.do()
		require.NoError(t, p.tryController(true), c.name)
		p.listen()
		p.well()
		require.Empty(t, p.trouble(), c.name)
		require.Equal(t, before, p.pictures(), "something was done: %s", c.name)
		require.Equal(t, c.kept, slices.Clone(p.ws1.host.Status().Source.Kept), c.name)
		p.heal()
		require.Equal(t, before, p.pictures(), "something was done: %s, declared again", c.name)
	}
}

// heal declares again what was declared, and sets what was set.
func (p *planter) heal() {
	p.t.Helper()
	p.label("ws1", "role", "db")
	p.label("ws2", "role", "web")
	p.apply(p.alice, sleeping("web", "all: true", 2000)+"---\n"+sleeping("db", "nodes: [ws1]", 1000)+"---\n"+sleeping("cache", "labels: {role: web}", 1000))
	p.well()
	p.until("nothing is kept any more", func() bool {
		return !slices.ContainsFunc(p.hosts, func(n *simulated) bool { return len(n.host.Status().Source.Kept) > 0 })
	})
	p.all = p.messages()
}
