package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// siege is a simulation whose NATS server is somebody else's: a thief who has a
// user of the controllers' account, and so reads and writes every subject and the
// store, and who has no key of the mesh. The server outlives the controller.
type siege struct {
	*simulation
	server *meshtest.Mesh
	alice  *client.Client
	hosts  []*simulated

	nc   *nats.Conn // the thief's
	js   jetstream.JetStream
	ears []*nats.Subscription

	mu    sync.Mutex                            // guards what follows
	asked map[string]int                        // questions of hosts for their index, by node
	sync  func(wire.SyncRequest) wire.SyncReply // the thief's answer; nil: it lets others answer
	body  bodies
	turn  map[string]bodies // that go with the index that a node was given last
}

// bodies answers for bodies; a second value that is not nil is the answer.
type bodies func(wire.BodyRequest) (wire.BodyReply, any)

// besiege starts a mesh with these nodes, each of which the mesh knows.
func besiege(t *testing.T, nodes ...string) *siege {
	t.Helper()
	m := meshtest.New(t)
	url := "tls://" + m.Link.Address()
	s := &siege{server: m, asked: map[string]int{}, turn: map[string]bodies{}, simulation: &simulation{
		t: t, dir: t.TempDir(), mesh: filepath.Dir(m.Store), keys: m.Keys, log: &lines{}, urls: []string{url}, servers: []string{url},
	}}
	s.showLog()
	s.startController()
	s.alice = s.operator("alice")
	s.nc = s.bare(identity.Controller, "thief")
	var err error
	s.js, err = jetstream.New(s.nc)
	require.NoError(t, err)
	s.listen()
	for _, name := range nodes {
		s.hosts = append(s.hosts, s.node(name))
		s.hosts[len(s.hosts)-1].start()
	}
	s.until("all nodes are known", func() bool { return s.nodes(s.alice, wire.Ready) == len(nodes) })
	return s
}

// bare connects a NATS client that knows nothing of stead.
func (s *siege) bare(role identity.Role, name string) *nats.Conn {
	s.t.Helper()
	who, err := s.keys.Mint(identity.Request{Role: role, Name: name, URLs: s.urls})
	require.NoError(s.t, err)
	tls, err := who.TLS()
	require.NoError(s.t, err)
	nc, err := nats.Connect(s.urls[0], nats.UserJWTAndSeed(who.JWT, string(who.Seed)), nats.Secure(tls), nats.CustomInboxPrefix(who.Inbox()),
		nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// listen has the thief hear what hosts ask.
func (s *siege) listen() {
	s.t.Helper()
	for _, pattern := range []string{"node.v1.*.sync", "node.v1.*.body"} {
		ear, err := s.nc.Subscribe(pattern, s.hear)
		require.NoError(s.t, err)
		s.ears = append(s.ears, ear)
	}
	require.NoError(s.t, s.nc.Flush())
}

// deafen ends listen: without a controller nobody is there then who could answer,
// and hosts know it at once.
func (s *siege) deafen() {
	s.t.Helper()
	for _, ear := range s.ears {
		require.NoError(s.t, ear.Unsubscribe())
	}
	s.ears = nil
	require.NoError(s.t, s.nc.Flush())
}

// hear counts what hosts ask, and answers for the thief.
func (s *siege) hear(m *nats.Msg) {
	a, err := subject.Parse(m.Subject)
	node := string(a.Node)
	s.mu.Lock()
	if err == nil && a.Topic == subject.Sync {
		s.asked[node]++
		s.turn[node] = s.body
	}
	sync, body := s.sync, s.turn[node]
	s.mu.Unlock()
	var reply any
	switch {
	case err == nil && a.Topic == subject.Sync && sync != nil:
		var q wire.SyncRequest
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		reply = sync(q)
	case err == nil && a.Topic == subject.Body && body != nil:
		var q wire.BodyRequest
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		r, other := body(q)
		if reply = r; other != nil {
			reply = other
		}
	default:
		return
	}
	text, isText := reply.([]byte)
	if !isText {
		text, _ = json.Marshal(reply) // words always encode
	}
	_ = m.Respond(text)
}

// answer makes the thief answer in the controllers' place.
func (s *siege) answer(sync func(wire.SyncRequest) wire.SyncReply, body bodies) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sync, s.body = sync, body
}

// turns has every host ask, and returns when each has asked and has done with the
// answer what it does: it asks again only then.
func (s *siege) turns(hosts ...*simulated) {
	s.t.Helper()
	if len(hosts) == 0 {
		hosts = s.hosts
	}
	for range 2 {
		s.ask(hosts...)
	}
}

// ask has hosts ask once.
func (s *siege) ask(hosts ...*simulated) {
	s.t.Helper()
	before := s.questions()
	s.hint(0, hosts...)
	s.until("the hosts ask", func() bool {
		now := s.questions()
		return !slices.ContainsFunc(hosts, func(n *simulated) bool { return now[n.name] == before[n.name] })
	})
}

// well has every host ask and take over what it is told by a controller.
func (s *siege) well() {
	s.t.Helper()
	from := time.Now()
	s.hint(0, s.hosts...)
	s.until("the hosts are told what is declared", func() bool {
		return !slices.ContainsFunc(s.hosts, func(n *simulated) bool {
			src := n.host.Status().Source
			return src.Trouble != "" || src.Accepted.Before(from)
		})
	})
}

func (s *siege) questions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int, len(s.asked))
	for name, n := range s.asked {
		all[name] = n
	}
	return all
}

// hint tells hosts to look, as whoever may write into the controllers' account can.
func (s *siege) hint(revision uint64, hosts ...*simulated) {
	s.t.Helper()
	for _, n := range hosts {
		require.NoError(s.t, s.nc.Publish("node.v1."+n.name+".changed", fmt.Appendf(nil, `{"revision":%d}`, revision)))
	}
	require.NoError(s.t, s.nc.Flush())
}

// until waits until is holds; last is what was seen last.
func (s *siege) until(what string, is func() bool, last ...*string) {
	s.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			for _, n := range s.hosts {
				s.t.Logf("%s: %+v", n.name, n.host.Status().Source)
			}
			for _, text := range last {
				what += ": " + *text
			}
			require.FailNow(s.t, what+": did not come about")
		}
	}
}

// says waits until every host says this of the mesh; "": that all is well.
func (s *siege) says(words string, hosts ...*simulated) {
	s.t.Helper()
	if len(hosts) == 0 {
		hosts = s.hosts
	}
	s.until(fmt.Sprintf("the hosts say %q", words), func() bool {
		return !slices.ContainsFunc(hosts, func(n *simulated) bool {
			trouble := n.host.Status().Source.Trouble
			return words == "" && trouble != "" || !strings.Contains(trouble, words)
		})
	})
}

// picture is all that was ever done on a node, what lies on its disk, and what it
// keeps of before.
func (n *simulated) picture() string {
	n.s.t.Helper()
	var b strings.Builder
	for _, line := range n.fake.Log() {
		fmt.Fprintln(&b, line)
	}
	require.NoError(n.s.t, filepath.WalkDir(n.etc(), func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil // it was on its way
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		fmt.Fprintf(&b, "%s:\n%s", path, text)
		return err
	}))
	return b.String()
}

func (s *siege) pictures() (all []string) {
	for _, n := range s.hosts {
		all = append(all, n.picture())
	}
	return all
}

// runs waits until a node runs exactly these services of sleeping as they are
// declared, and there is nothing left to do.
func (s *siege) runs(n *simulated, names ...string) {
	s.t.Helper()
	slices.Sort(names)
	var got []string
	s.until(fmt.Sprintf("%s runs %v", n.name, names), func() bool {
		got = got[:0]
		for _, r := range n.host.Status().Reports {
			if r.Outcome != report.Converged {
				return false
			}
			got = append(got, r.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, names)
	})
}

// message is one message of the store as it lies there.
type message struct {
	key      string
	sequence uint64
	deleted  bool
	data     []byte
}

// messages is all that lies in the store, in its order.
func (s *siege) messages() []message {
	s.t.Helper()
	ctx := s.within(patience)
	stream, err := s.js.Stream(ctx, "KV_state")
	require.NoError(s.t, err)
	var all []message
	for sequence := stream.CachedInfo().State.FirstSeq; sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		m, err := stream.GetMsg(ctx, sequence)
		if err != nil { // written again since
			continue
		}
		all = append(all, message{strings.TrimPrefix(m.Subject, "$KV.state."), m.Sequence, m.Header.Get("KV-Operation") == "DEL", m.Data})
	}
	return all
}

// under is the message of a key.
func under(all []message, key string) message {
	for _, m := range all {
		if m.key == key {
			return m
		}
	}
	return message{}
}

// plant writes a message into the store past every controller.
func (s *siege) plant(m message) uint64 {
	s.t.Helper()
	msg := &nats.Msg{Subject: "$KV.state." + m.key, Data: m.data, Header: nats.Header{}}
	if m.deleted {
		msg.Header.Set("KV-Operation", "DEL")
	}
	ack, err := s.js.PublishMsg(s.within(patience), msg)
	require.NoError(s.t, err)
	return ack.Sequence
}

// filler is written where the store has no message any more.
const filler = "filler"

// rewrite makes the store anew with these messages, each at its sequence.
func (s *siege) rewrite(all []message) {
	s.t.Helper()
	ctx := s.within(patience)
	_ = s.js.DeleteStream(ctx, "KV_state") // it may be gone
	_, err := s.js.CreateStream(ctx, s.config())
	require.NoError(s.t, err)
	last := uint64(0)
	for _, m := range all {
		for last+1 < m.sequence {
			last = s.plant(message{key: filler, data: []byte(filler)})
		}
		last = s.plant(m)
	}
}

// config is that of the stream that controllers make.
func (s *siege) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_state", Description: "what is declared, and the nodes", Subjects: []string{"$KV.state.>"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: 96 << 20, MaxMsgSize: 512<<10 + 17<<10, Discard: jetstream.DiscardNew, MaxConsumers: 256,
		Duplicates: time.Second, DenyDelete: true, DenyPurge: true, AllowAtomicPublish: true,
	}
}

// sealed is a value for a key that fits the store as it stands: what only who has
// the key of the mesh can make.
func (s *siege) sealed(key string, body []byte, deleted bool) message {
	s.t.Helper()
	return s.sealedOn(s.messages(), key, body, deleted)
}

// sealedOn is sealed for a store that holds these.
func (s *siege) sealedOn(all []message, key string, body []byte, deleted bool) message {
	s.t.Helper()
	stands, last := map[string]seal.Stand{}, uint64(0)
	for _, m := range all {
		last = max(last, m.sequence)
		if m.key != filler {
			stands[m.key] = seal.Stand{Revision: m.sequence, Seal: seal.Seal(m.data)}
		}
	}
	p := seal.Place{Mesh: s.keys.ID(), Key: key, Revision: last + 1, Deleted: deleted}
	stands[key] = seal.Stand{Revision: p.Revision}
	p.Sum = seal.Sum(stands)
	return message{key, p.Revision, deleted, seal.Value(s.keys.DeclarationKey(), p, body)}
}

// index asks the controllers as the host of a node does: what passes over the
// thief's server every half minute.
func (s *siege) index(node string) wire.Signed {
	s.t.Helper()
	nc := s.bare(identity.Host, node)
	defer nc.Close()
	q, err := json.Marshal(wire.SyncRequest{Wire: wire.Version, Mesh: s.keys.ID()})
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "node.v1."+node+".sync", q)
	require.NoError(s.t, err)
	var reply wire.SyncReply
	require.NoError(s.t, json.Unmarshal(m.Data, &reply))
	require.NotNil(s.t, reply.Signed, "%s", m.Data)
	return *reply.Signed
}

// sign signs an index with the key of the mesh.
func (s *siege) sign(i wire.Index) wire.Signed {
	s.t.Helper()
	text, err := json.Marshal(i)
	require.NoError(s.t, err)
	return wire.Signed{Index: text, Signature: seal.Index(s.keys.DeclarationKey(), text)}
}

func read(t *testing.T, signed wire.Signed) (i wire.Index) {
	t.Helper()
	require.NoError(t, json.Unmarshal(signed.Index, &i))
	return i
}
