package system

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// TestWhatIsPlantedOnNewKeysIsNothing writes past every controller into the store,
// where nothing stood, and into the other streams: it is as if it were not there.
func TestWhatIsPlantedOnNewKeysIsNothing(t *testing.T) {
	t.Parallel()
	p := newPlanter(t)
	p.each(func() []plant { return slices.Concat(p.onNewKeys(), p.besideIt()) })
}

// TestWhatIsPlantedOverOthersRunsNowhere writes over what controllers wrote, cuts
// it out, and puts back what was there before: the controller tells nobody anything
// until the store is right again, or somebody decides otherwise.
func TestWhatIsPlantedOverOthersRunsNowhere(t *testing.T) {
	t.Parallel()
	p := newPlanter(t)
	p.each(func() []plant { return slices.Concat(p.overOthers(), p.toTheStore()) })
}

// each does one after the other of what list says, on the store as it stands then,
// and has the controller read it while it runs, and after a start: nothing comes to
// run that no operator declared, nothing goes that no operator withdrew.
func (p *planter) each(list func() []plant) {
	p.t.Helper()
	before := p.pictures()
	total := len(list())
	for i := range total {
		c := list()[i]
		c.do()
		p.stands(c, before, "at once")
		p.deafen()
		p.stopController()
		err := p.tryController(false)
		if err != nil { // it is refused to start on that
			require.NotEmpty(p.t, c.unsound, "%s: %v", c.name, err)
			require.ErrorContains(p.t, err, "the store", c.name)
			require.Contains(p.t, fault.HintOf(err), "--begin-epoch", c.name)
			p.rewrite(p.all)
			p.startController()
			p.listen()
		} else {
			p.listen()
			p.stands(c, before, "after a start")
		}
		p.clean(c)
		require.Equal(p.t, before, p.pictures(), "something was done: %s", c.name)
	}
	p.turns() // whatever is still under way
	require.Equal(p.t, before, p.pictures())
	p.t.Logf("planted: %d, 0 ran and 0 took anything away", total)
	require.GreaterOrEqual(p.t, total, 20)
}

// planter is a siege whose store can be written to.
type planter struct {
	*siege
	ws1, ws2 *simulated
	foreign  ed25519.PrivateKey
	old      []message // the store of before the last changes
	all      []message // and now
}

func newPlanter(t *testing.T) *planter {
	t.Helper()
	p := &planter{siege: besiege(t, "ws1", "ws2")}
	p.ws1, p.ws2 = p.hosts[0], p.hosts[1]
	_, p.foreign, _ = ed25519.GenerateKey(nil) // its randomness never fails
	p.label("ws1", "role", "spare")
	p.label("ws2", "role", "web")
	p.apply(p.alice, sleeping("web", "all: true", 1000)+"---\n"+sleeping("db", "nodes: [ws1]", 1000)+"---\n"+
		sleeping("cache", "labels: {role: web}", 1000)+"---\n"+sleeping("gone", "all: true", 1000))
	p.runs(p.ws1, "web", "db", "gone")
	p.runs(p.ws2, "web", "cache", "gone")
	p.old = p.messages()
	_, err := p.alice.Withdraw(p.within(patience), wire.WithdrawRequest{Names: []string{"gone"}, Yes: true, Force: true})
	require.NoError(t, err)
	p.label("ws1", "role", "db")
	now := p.apply(p.alice, sleeping("web", "all: true", 2000)).Revision
	p.until("the hosts hold it", func() bool {
		return !slices.ContainsFunc(p.hosts, func(n *simulated) bool { return n.host.Status().Source.Mesh.Revision < now })
	})
	p.runs(p.ws1, "web", "db")
	p.runs(p.ws2, "web", "cache")
	p.all = p.messages()
	return p
}

func (p *planter) label(node, key, value string) {
	p.t.Helper()
	reply, err := p.alice.Settings(p.within(patience), wire.SettingsRequest{Node: node, Labels: map[string]string{key: value}, Yes: true})
	require.NoError(p.t, err)
	require.Empty(p.t, reply.Problems)
}

// clean makes the store what it was before c, with what controllers committed
// since, and waits until the controller says that all is well with it, and the
// hosts that all is well with the controller.
func (p *planter) clean(c plant) {
	p.t.Helper()
	if c.unsound == "" {
		p.all = slices.DeleteFunc(p.messages(), func(m message) bool { return under(p.all, m.key).key == "" })
	} else {
		p.rewrite(p.all)
	}
	p.until("the store is right again: "+c.name, func() bool { return p.trouble() == "" })
	p.well()
}

// trouble is what the controller says of the store.
func (p *planter) trouble() (trouble string) {
	p.t.Helper()
	require.NoError(p.t, p.alice.Get(p.within(patience), wire.GetRequest{Kind: wire.Nodes}, func(r wire.GetReply) error {
		trouble = r.Trouble
		return nil
	}))
	return trouble
}

// stands is how it is with what was planted, once the controller knows of it.
func (p *planter) stands(c plant, before []string, when string) {
	p.t.Helper()
	if c.unsound == "" {
		// A commit expects the store as it is, so the controller has read it then.
		p.label("ws1", "planted", strings.ReplaceAll(when, " ", "-"))
		require.Empty(p.t, p.trouble(), "%s, %s", c.name, when)
		p.well()
	} else {
		last := ""
		p.until(c.name+", "+when, func() bool { last = p.trouble(); return strings.Contains(last, c.unsound) }, &last)
		p.ask(p.hosts...)
		p.says("mesh state")
		_, err := p.alice.Apply(p.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: sleeping("more", "all: true", 1)}}})
		require.Contains(p.t, fault.HintOf(err), "--begin-epoch", "%s, %s", c.name, when)
	}
	require.Equal(p.t, before, p.pictures(), "something was done: %s, %s", c.name, when)
	for _, n := range p.hosts {
		require.Empty(p.t, n.host.Status().Source.Kept, "%s, %s", c.name, when)
	}
}

// plant is something that is done to the store. Unsound are words of what the
// controller says of it; "": it changes nothing.
type plant struct {
	name, unsound string
	do            func()
}

const notThis = "what stands in the store is not what the commit"

// evil is the body of a declaration that nobody declared, as controllers write it.
func (p *planter) evil(name, uid string, seconds int) []byte {
	p.t.Helper()
	all, problems := shape.Parse("a", []byte(sleeping(name, "all: true", seconds)))
	require.NoError(p.t, problems.Err())
	head, err := json.Marshal(map[string]any{"name": name, "uid": uid, "generation": 9, "digest": all[0].Digest(),
		"address": map[string]bool{"all": true}, "by": "operator alice", "at": time.Now().UTC()})
	require.NoError(p.t, err)
	return bytes.Join([][]byte{head, all[0].Canonical()}, []byte("\n"))
}

// forged is a message that fits the store as it stands, under another key.
func (p *planter) forged(key string, body []byte, change func(*seal.Place)) message {
	p.t.Helper()
	m := p.sealed(key, body, false)
	place := seal.Place{Mesh: p.keys.ID(), Key: key, Revision: m.sequence}
	change(&place)
	m.data = seal.Value(p.foreign, place, body)
	return m
}

func (p *planter) puts(key string, data []byte, deleted bool) func() {
	return func() { p.plant(message{key: key, data: data, deleted: deleted}) }
}

func (p *planter) onNewKeys() []plant {
	evil := p.evil("evil", "u1", 66)
	web, tomb, node := under(p.all, "declaration.web"), under(p.all, "declaration.gone"), under(p.all, "node.ws2")
	same := func(*seal.Place) {}
	return []plant{
		{"junk", "", p.puts("declaration.evil", []byte("junk"), false)},
		{"nothing", "", p.puts("declaration.evil", nil, false)},
		{"a declaration that is not sealed", "", p.puts("declaration.evil", evil, false)},
		{"a declaration that is copied from another key", "", p.puts("declaration.evil", web.data, false)},
		{"an old declaration that is copied", "", p.puts("declaration.evil", under(p.old, "declaration.gone").data, false)},
		{"a declaration that another key sealed", "", func() { p.plant(p.forged("declaration.evil", evil, same)) }},
		{"a declaration of another mesh", "", func() { p.plant(p.forged("declaration.evil", evil, func(s *seal.Place) { s.Mesh = "elsewhere" })) }},
		{"a seal whose text was changed", "", func() {
			m := p.sealed("declaration.evil", p.evil("evil", "u1", 67), false)
			p.plant(message{key: m.key, data: bytes.Replace(m.data, []byte("sleep 67"), []byte("sleep 68"), 1)})
		}},
		{"a name that looks like another", "", p.puts("declaration.web/", web.data, false)},
		{"a name below another", "", p.puts("declaration.web.web", web.data, false)},
		{"a tombstone for what there is not", "", p.puts("declaration.evil", tomb.data, true)},
		{"a node that nobody added", "", p.puts("node.ws9", node.data, false)},
		{"an epoch beside the epoch", "", p.puts("mesh.epoch2", under(p.all, "mesh.epoch").data, false)},
		{"a kind that there is not", "", p.puts("module.evil", evil, false)},
	}
}

func (p *planter) overOthers() []plant {
	over := func(name, key string, data []byte, deleted bool) plant {
		return plant{name, notThis, p.puts(key, data, deleted)}
	}
	now := func(key string) []byte { return under(p.all, key).data }
	was := func(key string) []byte { return under(p.old, key).data }
	return []plant{
		over("junk over a declaration", "declaration.web", []byte("junk"), false),
		over("an unsealed declaration over a sealed one", "declaration.web", p.evil("web", "u1", 66), false),
		over("an older declaration over its successor", "declaration.web", was("declaration.web"), false),
		over("the same declaration over itself", "declaration.web", now("declaration.web"), false),
		over("one declaration over another", "declaration.web", now("declaration.db"), false),
		over("a declaration as its own tombstone", "declaration.web", now("declaration.web"), true),
		over("an empty tombstone over a declaration", "declaration.web", nil, true),
		over("another's tombstone over a declaration", "declaration.web", now("declaration.gone"), true),
		over("what was withdrawn over its tombstone", "declaration.gone", was("declaration.gone"), false),
		over("a tombstone that is one no more", "declaration.gone", now("declaration.gone"), false),
		over("an unsealed declaration over a tombstone", "declaration.gone", p.evil("gone", "u1", 66), false),
		over("one node over another", "node.ws1", now("node.ws2"), false),
		over("an older node over its successor", "node.ws1", was("node.ws1"), false),
		over("a node's tombstone", "node.ws1", now("node.ws1"), true),
		over("an epoch of the thief's", "mesh.epoch", []byte(`{"id":"x","number":9}`), false),
		over("the epoch over itself", "mesh.epoch", now("mesh.epoch"), false),
		{"another key's seal over a declaration", notThis, func() { p.plant(p.forged("declaration.web", p.evil("web", "u1", 66), func(*seal.Place) {})) }},
		{"another key's tombstone over a declaration", notThis, func() {
			m := p.forged("declaration.web", nil, func(s *seal.Place) { s.Deleted = true })
			m.deleted = true
			p.plant(m)
		}},
	}
}

// without is the store without some keys.
func without(all []message, keys ...string) []message {
	return slices.DeleteFunc(slices.Clone(all), func(m message) bool { return slices.Contains(keys, m.key) })
}

func (p *planter) toTheStore() []plant {
	lacks := func(name string, keys ...string) plant {
		return plant{name, notThis, func() { p.rewrite(without(p.all, keys...)) }}
	}
	return []plant{
		lacks("a declaration is cut out", "declaration.db"),
		lacks("the last write is cut out", p.all[len(p.all)-1].key),
		lacks("a tombstone is cut out", "declaration.gone"),
		lacks("a node is cut out", "node.ws2"),
		lacks("the epoch is cut out", "mesh.epoch"),
		lacks("all declarations are cut out", "declaration.db", "declaration.web", "declaration.cache", "declaration.gone"),
		{"a declaration changes its place with another", notThis, func() {
			all := slices.Clone(p.all)
			i, k := slices.IndexFunc(all, func(m message) bool { return m.key == "declaration.db" }), slices.IndexFunc(all, func(m message) bool { return m.key == "declaration.cache" })
			all[i].key, all[i].data, all[k].key, all[k].data = all[k].key, all[k].data, all[i].key, all[i].data
			p.rewrite(all)
		}},
		{"the store is what it was before", "rolled back", func() { p.rewrite(p.old) }},
		{"what was withdrawn is what it was before", notThis, func() {
			all := append(without(p.all, "declaration.gone"), under(p.old, "declaration.gone"))
			slices.SortFunc(all, func(a, b message) int { return int(a.sequence) - int(b.sequence) })
			p.rewrite(all)
		}},
		{"the store is empty", "the store is empty", func() { p.rewrite(nil) }},
		{"the store is gone", "the store is gone", func() { require.NoError(p.t, p.js.DeleteStream(p.within(patience), "KV_state")) }},
		{"everything expires", "the store is empty", func() {
			config := p.config()
			config.MaxAge, config.Duplicates = 100*time.Millisecond, 100*time.Millisecond
			_, err := p.js.UpdateStream(p.within(patience), config)
			require.NoError(p.t, err)
			p.until("it has expired", func() bool { return len(p.messages()) == 0 })
			p.server.Link.Kill() // nothing is told of what expires: at the next reading it is missing
		}},
	}
}

// besideIt is what is done to the other streams, which are not sealed: what nodes
// say is no reason for anything to run.
func (p *planter) besideIt() []plant {
	put := func(subject string, data []byte) func() {
		return func() {
			_, err := p.js.PublishMsg(p.within(patience), &nats.Msg{Subject: subject, Data: data})
			require.NoError(p.t, err)
		}
	}
	return []plant{
		{"a profile that is none", "", put("$KV.profiles.ws1", []byte("junk"))},
		{"a profile of a node that there is not", "", put("$KV.profiles.ws9", []byte(`{"profile":{"wire":1,"wires":[1]}}`))},
		{"a report that is none", "", put("$KV.reports.ws1", []byte("junk"))},
		{"an event of an operator's", "", put("audit.v1._", []byte(`{"id":"x","source":"controller","who":"operator alice","kind":"apply","declaration":"evil"}`))},
		{"the reports are gone", "", func() {
			stream, err := p.js.Stream(p.within(patience), "KV_reports")
			require.NoError(p.t, err)
			require.NoError(p.t, p.js.DeleteStream(p.within(patience), "KV_reports"))
			_, err = p.js.CreateStream(p.within(patience), stream.CachedInfo().Config)
			require.NoError(p.t, err)
		}},
		{"a stream that hears what the store hears", "", func() {
			_, err := p.js.CreateStream(p.within(patience), jetstream.StreamConfig{Name: "COPY", MaxBytes: 1 << 20, Sources: []*jetstream.StreamSource{{Name: "KV_state"}}})
			require.NoError(p.t, err)
			require.NoError(p.t, p.js.DeleteStream(p.within(patience), "COPY"))
		}},
	}
}
