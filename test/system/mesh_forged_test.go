package system

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// TestForgedAnswersChangeNothing has a thief answer in the controllers' place, in
// every way that a signature, an index or a body can be wrong. The same answers
// with the mesh's own key under them are taken.
func TestForgedAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	wrong := 0
	f.answer(func(wire.SyncRequest) wire.SyncReply { return wire.SyncReply{Same: true} }, f.bodies)
	f.stopController()
	before := f.pictures()
	for _, c := range f.answers() {
		i := f.next()
		f.answer(asked(i, c.wrong), c.body)
		f.turns(f.ws1)
		f.says(c.says, f.ws1)
		require.Equal(t, f.held.Revision, f.ws1.host.Status().Source.Mesh.Revision, "taken: %s", c.name)
		require.Equal(t, f.held.Epoch, f.ws1.host.Status().Source.Mesh.Epoch, "taken: %s", c.name)
		require.Empty(t, f.ws1.host.Status().Source.Kept, c.name)
		require.Equal(t, before, f.pictures(), "something was done: %s", c.name)
		wrong++
	}

	f.plans()
	require.Equal(t, before, f.pictures(), "a dry run is an answer and nothing else")
	f.comesLate(before)
	wrong++

	// The mesh's own word is taken afterwards as if nothing had been.
	f.deafen()
	f.answer(nil, nil)
	f.startController()
	f.listen()
	f.turns()
	f.says("")
	f.apply(f.alice, sleeping("web", "all: true", 3000))
	f.runs(f.ws1, "web", "db")
	f.hold()

	f.answer(func(wire.SyncRequest) wire.SyncReply { return wire.SyncReply{Same: true} }, f.bodies)
	f.stopController()
	right := 0
	for _, c := range f.answers() {
		if c.right == nil {
			continue
		}
		f.held.Revision++
		i := f.held
		i.Entries = f.next().Entries
		f.answer(asked(i, c.right), f.bodies)
		f.hint(0, f.ws1)
		f.until("it is taken when it is right: "+c.name, func() bool { return f.ws1.host.Status().Source.Mesh.Revision == f.held.Revision })
		right++
	}
	f.until("what is declared with the key runs", func() bool { return strings.Contains(f.ws1.picture(), "start probe.service") })
	t.Logf("forged answers: %d, 0 taken; %d of them with the mesh's key under them, all taken", wrong, right)
	require.GreaterOrEqual(t, wrong, 40)
}

// asked answers with what say makes of an index that answers the question.
func asked(i wire.Index, say func(wire.Index) wire.SyncReply) func(wire.SyncRequest) wire.SyncReply {
	return func(q wire.SyncRequest) wire.SyncReply {
		now := i
		now.Nonce = q.Nonce
		return say(now)
	}
}

// plans asks a host what it would do, as whoever has a user of the controllers can.
func (f *forger) plans() {
	f.t.Helper()
	q, err := json.Marshal(wire.PlanRequest{Wire: wire.Version, Withdrawn: []string{"web", "db"},
		Declarations: []wire.Declared{{UID: f.probe.UID, Generation: f.probe.Generation, Canonical: f.canon[f.probe.Digest]}}})
	require.NoError(f.t, err)
	m, err := f.nc.RequestWithContext(f.within(patience), "node.v1.ws1.plan", q)
	require.NoError(f.t, err)
	require.Contains(f.t, string(m.Data), "start")
}

// comesLate starts a node that holds nothing yet, and hands it an index that was
// signed for it and that is no longer true.
func (f *forger) comesLate(before []string) {
	f.t.Helper()
	n := f.node("ws3")
	f.answer(func(wire.SyncRequest) wire.SyncReply { return signed(f.past3) }, f.bodies)
	n.start()
	f.turns(n)
	f.says("it answers another question", n)
	require.Empty(f.t, n.host.Status().Source.Mesh.Epoch, "taken: the first index from the past")
	require.NotContains(f.t, n.picture(), "start")
	require.Equal(f.t, before, f.pictures())
	f.hosts = append(f.hosts, n)
}

// forger is a siege with what passed over the thief's server before.
type forger struct {
	*siege
	ws1, ws2 *simulated
	foreign  ed25519.PrivateKey
	held     wire.Index  // what ws1 holds
	other    wire.Signed // of ws2, newer
	old      wire.Signed // of ws1, from before web was changed
	past     wire.Signed // of ws1, when it still had what was withdrawn since
	past3    wire.Signed // the same of ws3, which has not come yet
	value    message     // a declaration as it is stored
	canon    map[string][]byte
	probe    wire.Entry
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{siege: besiege(t, "ws1", "ws2"), canon: map[string][]byte{}}
	f.ws1, f.ws2 = f.hosts[0], f.hosts[1]
	_, f.foreign, _ = ed25519.GenerateKey(nil) // its randomness never fails
	declare := func(name, address string, seconds int) {
		f.apply(f.alice, sleeping(name, address, seconds))
		f.know(name, address, seconds)
	}
	declare("web", "all: true", 1000)
	f.old = f.index("ws1")
	f.index("ws3") // it is known from now on
	declare("gone", "nodes: [ws1, ws3]", 1000)
	f.past, f.past3 = f.index("ws1"), f.index("ws3")
	_, err := f.alice.Withdraw(f.within(patience), wire.WithdrawRequest{Names: []string{"gone"}, Yes: true, Force: true})
	require.NoError(t, err)
	declare("web", "all: true", 2000)
	declare("db", "nodes: [ws1]", 1000)
	declare("cache", "nodes: [ws2]", 1000)
	f.runs(f.ws1, "web", "db")
	f.runs(f.ws2, "web", "cache")
	f.know("web", "all: true", 3000)
	f.probe = f.know("probe", "all: true", 7)
	f.value = under(f.messages(), "declaration.web")
	f.hold()
	return f
}

// know keeps the canonical form of a service of sleeping, and returns its entry.
func (f *forger) know(name, address string, seconds int) wire.Entry {
	f.t.Helper()
	all, problems := shape.Parse("a", []byte(sleeping(name, address, seconds)))
	require.NoError(f.t, problems.Err())
	f.canon[all[0].Digest()] = all[0].Canonical()
	return wire.Entry{Name: name, UID: "uid-of-" + name, Generation: 9, Digest: all[0].Digest(), Size: len(all[0].Canonical())}
}

// hold waits until the hosts hold what is declared now, and notes it.
func (f *forger) hold() {
	f.t.Helper()
	f.turns()
	f.says("")
	f.other, f.held = f.index("ws2"), read(f.t, f.index("ws1"))
	f.held.Revision = f.ws1.host.Status().Source.Mesh.Revision // the same may have been declared since
}

// next is an index that would be right after the one that is held.
func (f *forger) next() wire.Index {
	i := f.held
	i.Revision++
	i.Entries = append(slices.Clone(i.Entries), f.probe)
	slices.SortFunc(i.Entries, func(a, b wire.Entry) int { return strings.Compare(a.Name, b.Name) })
	i.Entries = slices.CompactFunc(i.Entries, func(a, b wire.Entry) bool { return a.Name == b.Name })
	return i
}

// bodies answers as a controller does, with the bodies in another order.
func (f *forger) bodies(q wire.BodyRequest) (r wire.BodyReply, _ any) {
	for _, d := range slices.Backward(q.Digests) {
		if body, ok := f.canon[d]; ok {
			r.Bodies = append(r.Bodies, body)
		}
	}
	return r, nil
}

// lie is an answer that is wrong, what the host says to it, and the same that is
// right. I is an index that would be.
type lie struct {
	name, says string
	wrong      func(i wire.Index) wire.SyncReply
	right      func(i wire.Index) wire.SyncReply
	body       bodies
}

func (f *forger) answers() []lie {
	return slices.Concat(f.signatures(), f.indexes(), f.words(), f.falseBodies(), f.epochs())
}

const unsigned = "it is not signed by mesh"

// signed is the answer that holds an index.
func signed(s wire.Signed) wire.SyncReply { return wire.SyncReply{Signed: &s} }

func (f *forger) right(i wire.Index) wire.SyncReply { return signed(f.sign(i)) }

func jsonOf(i wire.Index) []byte {
	t, _ := json.Marshal(i) // words always encode
	return t
}

// signatures are those that are not the mesh's over what they are said to be over.
func (f *forger) signatures() []lie {
	own := f.sign(f.held)
	changed := func(i wire.Index) wire.Index {
		i.Entries = slices.Clone(i.Entries)
		i.Entries[0].Generation++
		return i
	}
	lies := []struct {
		name  string
		wrong func(i wire.Index) wire.Signed
	}{
		{"nobody's key", func(i wire.Index) wire.Signed {
			return wire.Signed{Index: jsonOf(i), Signature: seal.Index(f.foreign, jsonOf(i))}
		}},
		{"no signature", func(i wire.Index) wire.Signed { return wire.Signed{Index: jsonOf(i)} }},
		{"a signature of nothing", func(i wire.Index) wire.Signed {
			return wire.Signed{Index: jsonOf(i), Signature: make([]byte, ed25519.SignatureSize)}
		}},
		{"half a signature", func(i wire.Index) wire.Signed { s := f.sign(i); s.Signature = s.Signature[:32]; return s }},
		{"the signature of another index", func(i wire.Index) wire.Signed { return wire.Signed{Index: jsonOf(i), Signature: own.Signature} }},
		{"an entry changed after it was signed", func(i wire.Index) wire.Signed {
			return wire.Signed{Index: jsonOf(changed(i)), Signature: f.sign(i).Signature}
		}},
		{"a later revision put into an old one", func(i wire.Index) wire.Signed {
			old := read(f.t, f.old)
			old.Revision = i.Revision
			return wire.Signed{Index: jsonOf(old), Signature: f.old.Signature}
		}},
		{"a blank behind it", func(i wire.Index) wire.Signed { s := f.sign(i); s.Index = append(s.Index, ' '); return s }},
		{"two indexes in one", func(i wire.Index) wire.Signed { s := f.sign(f.held); s.Index = append(s.Index, jsonOf(i)...); return s }},
		{"the bare key over the bare text", func(i wire.Index) wire.Signed {
			return wire.Signed{Index: jsonOf(i), Signature: ed25519.Sign(f.keys.DeclarationKey(), jsonOf(i))}
		}},
		{"the seal of a value", func(i wire.Index) wire.Signed {
			return unsealed(f.t, seal.Value(f.keys.DeclarationKey(), seal.Place{Mesh: i.Mesh, Key: "declaration.web", Revision: i.Revision}, jsonOf(i)))
		}},
		{"a declaration as it is stored", func(wire.Index) wire.Signed { return unsealed(f.t, f.value.data) }},
		{"another mesh's key and name", func(i wire.Index) wire.Signed {
			i.Mesh = "elsewhere"
			return wire.Signed{Index: jsonOf(i), Signature: seal.Index(f.foreign, jsonOf(i))}
		}},
	}
	var all []lie
	for _, l := range lies {
		all = append(all, lie{l.name, unsigned, func(i wire.Index) wire.SyncReply { return signed(l.wrong(i)) }, f.right, f.bodies})
	}
	return all
}

// unsealed are the signature and the text of a sealed value.
func unsealed(t *testing.T, value []byte) wire.Signed {
	t.Helper()
	encoded, rest, _ := bytes.Cut(value, []byte("\n"))
	signature, err := base64.StdEncoding.DecodeString(string(encoded))
	require.NoError(t, err)
	return wire.Signed{Index: rest, Signature: signature}
}

// indexes are those that the mesh signed, and not for now or not for this node, or
// that nobody should have signed.
func (f *forger) indexes() []lie {
	with := func(name, says string, wrong, right func(i *wire.Index)) lie {
		sign := func(change func(*wire.Index)) func(wire.Index) wire.SyncReply {
			return func(i wire.Index) wire.SyncReply {
				i.Entries = slices.Clone(i.Entries)
				change(&i)
				return f.right(i)
			}
		}
		return lie{name, says, sign(wrong), sign(right), f.bodies}
	}
	as := func(entries []wire.Entry) func(i *wire.Index) {
		return func(i *wire.Index) { i.Entries = entries }
	}
	well := func(*wire.Index) {}
	return []lie{
		{"of another node, as it was signed", `it is of node "ws2", and this node is "ws1"`, func(wire.Index) wire.SyncReply { return signed(f.other) },
			func(i wire.Index) wire.SyncReply { i.Entries = read(f.t, f.other).Entries; return f.right(i) }, f.bodies},
		{"older, as it was signed", "which is held", func(wire.Index) wire.SyncReply { return signed(f.old) },
			func(i wire.Index) wire.SyncReply { i.Entries = read(f.t, f.old).Entries; return f.right(i) }, f.bodies},
		{"with what was withdrawn since, as it was signed", "which is held", func(wire.Index) wire.SyncReply { return signed(f.past) },
			func(i wire.Index) wire.SyncReply { i.Entries = read(f.t, f.past).Entries; return f.right(i) }, f.bodies},
		with("of another question", "it answers another question", func(i *wire.Index) { i.Nonce += "x" }, well),
		with("of no question", "it answers another question", func(i *wire.Index) { i.Nonce = "" }, well),
		with("of another question, and empty", "it answers another question", func(i *wire.Index) { i.Nonce, i.Entries = "x", nil }, as(nil)),
		with("older and empty", "which is held", func(i *wire.Index) { i.Revision -= 2; i.Entries = nil }, as(nil)),
		with("as old as what is held, and other", "is held with other declarations", func(i *wire.Index) { i.Revision-- }, well),
		with("as old as what is held, and empty", "is held with other declarations", func(i *wire.Index) { i.Revision--; i.Entries = nil }, well),
		with("of another mesh", "and this node belongs to mesh", func(i *wire.Index) { i.Mesh = "elsewhere" }, well),
		with("of no node", `it is of node ""`, func(i *wire.Index) { i.Node = "" }, well),
		with("of a pattern of nodes", `it is of node "*"`, func(i *wire.Index) { i.Node = "*" }, well),
		with("of a later wire version", "it is of wire version 2", func(i *wire.Index) { i.Wire = 2 }, well),
		with("of no revision", "it has no epoch and revision", func(i *wire.Index) { i.Revision = 0 }, well),
		with("of no epoch", "no epoch", func(i *wire.Index) { i.Epoch, i.Follows = "", []string{i.Epoch} }, well),
		with("out of order", "are not in order", func(i *wire.Index) { slices.Reverse(i.Entries) }, well),
		with("with a name twice", "are not in order", func(i *wire.Index) { i.Entries = append(i.Entries, i.Entries[len(i.Entries)-1]) }, well),
		with("with a path for a name", "is no name of a declaration", func(i *wire.Index) { i.Entries[0].Name = "../../etc/passwd" }, well),
		with("with an entry of nobody's", "has no uid and generation", func(i *wire.Index) { i.Entries[0].UID = "" }, well),
		with("with an entry of no size", "with 0 bytes", func(i *wire.Index) { i.Entries[0].Size = 0 }, well),
	}
}

// words are answers that hold no index.
func (f *forger) words() []lie {
	reply := func(r wire.SyncReply) func(wire.Index) wire.SyncReply {
		return func(wire.Index) wire.SyncReply { return r }
	}
	return []lie{
		{"that nothing changed", "", reply(wire.SyncReply{Same: true, Revision: 1 << 60}), f.right, f.bodies},
		{"nothing at all", "it holds no index", reply(wire.SyncReply{}), f.right, f.bodies},
		{"a proof is wanted again and again", "does not take the proof", reply(wire.SyncReply{Prove: true}), f.right, f.bodies},
		{"an index that is no JSON", "it cannot be read", reply(signed(wire.Signed{Index: []byte("{"), Signature: seal.Index(f.keys.DeclarationKey(), []byte("{"))})), f.right, f.bodies},
	}
}

// falseBodies go with an index that is right.
func (f *forger) falseBodies() []lie {
	probe := f.canon[f.probe.Digest]
	var pretty bytes.Buffer
	require.NoError(f.t, json.Indent(&pretty, probe, "", " "))
	of := func(all ...[]byte) bodies {
		return func(wire.BodyRequest) (wire.BodyReply, any) { return wire.BodyReply{Bodies: all}, nil }
	}
	const strange = "a body that was not asked for"
	lies := []struct {
		name, says string
		body       bodies
	}{
		{"the body of another declaration", strange, of(f.canon[f.held.Entries[0].Digest])},
		{"another declaration under the same name", strange, of(bytes.Replace(probe, []byte("sleep 7"), []byte("sleep 8"), 1))},
		{"a body that is cut", strange, of(probe[:len(probe)-1])},
		{"a body with a blank behind it", strange, of(append(slices.Clone(probe), ' '))},
		{"a body that says the same in other bytes", strange, of(pretty.Bytes())},
		{"an empty body", strange, of([]byte{})},
		{"a body as it is stored", strange, of(f.value.data)},
		{"a body too many before the right one", strange, of(f.canon[f.held.Entries[0].Digest], probe)},
		{"no body", "nothing new of what was asked for", of()},
		{"that it is missing", "change faster than they can be fetched", func(q wire.BodyRequest) (wire.BodyReply, any) { return wire.BodyReply{Missing: q.Digests}, nil }},
		{"no JSON", "read the controller's answer", func(wire.BodyRequest) (wire.BodyReply, any) { return wire.BodyReply{}, []byte("{") }},
	}
	var all []lie
	for _, l := range lies {
		all = append(all, lie{"body: " + l.name, l.says, f.right, f.right, l.body})
	}
	return all
}

// epochs come last: what is right of them is of another epoch from then on.
func (f *forger) epochs() []lie {
	epoch := func(id string, follows []string, entries bool) func(wire.Index) wire.SyncReply {
		return func(i wire.Index) wire.SyncReply {
			i.Epoch, i.Follows = id, follows
			if !entries {
				i.Entries = nil
			}
			return f.right(i)
		}
	}
	const stray = "which does not follow epoch"
	return []lie{
		{"of another epoch", stray, epoch("x", nil, true), nil, f.bodies},
		{"of another epoch, and empty", stray, epoch("x", nil, false), nil, f.bodies},
		{"of an epoch that follows itself", stray, epoch("x", []string{"x"}, true), nil, f.bodies},
		{"of an epoch that follows nothing by name", stray, epoch("x", []string{""}, false), nil, f.bodies},
		{"of an epoch that follows another", stray, epoch("x", []string{"y"}, true), epoch("x", []string{f.held.Epoch}, true), f.bodies},
	}
}
