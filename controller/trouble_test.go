package controller_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// put puts a copy of a folder in the place of another; only its owner may read it.
func put(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	}))
}

func TestAStoreThatWasRolledBackTellsNobodyAnything(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	w.end()
	aside := filepath.Join(t.TempDir(), "mesh")
	put(t, w.dir, aside)
	w.start()
	w.apply(alice, service("db", "all: true", "1"))
	ws1.sync()
	require.Equal(t, []string{"db", "web"}, ws1.names())
	w.end()
	put(t, aside, w.dir) // store and marker, both of before
	w.start()

	var reply wire.SyncReply
	require.NoError(t, ws1.ask(subject.Sync, ws1.request(), &reply))
	require.Equal(t, wire.SyncReply{Prove: true, Revision: reply.Revision}, reply)
	require.Less(t, reply.Revision, ws1.held.Revision)

	// What proves nothing changes nothing.
	ask := ws1.request()
	forged := *ws1.sent
	forged.Index = append([]byte{' '}, forged.Index...)
	ask.Proof = &forged
	require.True(t, fault.Is(ws1.ask(subject.Sync, ask, &reply), fault.Refused))
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Empty(t, all.Trouble)

	ask.Proof = ws1.sent
	err := ws1.ask(subject.Sync, ask, &reply)
	require.True(t, fault.Is(err, fault.Failed), "%v", err)
	require.ErrorContains(t, err, "rolled back")
	require.Error(t, w.join2("ws2").ask(subject.Sync, wire.SyncRequest{Wire: wire.Version, Mesh: w.keys.ID()}, &reply), "nobody is told anything")
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Contains(t, all.Trouble, "rolled back")
	require.Contains(t, all.Trouble, "--begin-epoch")
	_, err = alice.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service("x", "all: true", "1")}}})
	require.True(t, fault.Is(err, fault.Failed), "%v", err)

	w.end()
	w.start(func(o *controller.Options) { o.BeginEpoch = true })
	old := ws1.held
	require.NotNil(t, ws1.sync().Signed)
	require.NotEqual(t, old.Epoch, ws1.held.Epoch)
	require.Contains(t, ws1.held.Follows, old.Epoch)
	require.Equal(t, []string{"web"}, ws1.names())
	require.Empty(t, ws1.held.Withdrawn)
}

// join2 is a node that says nothing yet.
func (w *world) join2(name string) *node {
	return &node{w: w, name: name, conn: w.connect("host", name), mesh: w.keys.ID()}
}

func TestAnEmptyStoreIsNotBegunOn(t *testing.T) {
	w := newWorld(t)
	w.apply(w.operator("alice"), service("web", "all: true", "1"))
	w.end()
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "store")))
	err := w.try()
	require.Error(t, err)
	require.Contains(t, fault.HintOf(err), "--begin-epoch")
	w.start(func(o *controller.Options) { o.BeginEpoch = true })
	w.end()
	w.start()
}

func TestStateWithoutKeysIsRefused(t *testing.T) {
	w := newWorld(t)
	w.end()
	require.NoError(t, os.RemoveAll(controller.KeysDir(w.dir)))
	err := w.try()
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.ErrorContains(t, err, "state and no keys")
}

func TestAnAddressThatIsTakenEndsTheController(t *testing.T) {
	w := newWorld(t)
	other := &world{t: t, dir: filepath.Join(t.TempDir(), "mesh"), log: &logs{}, urls: w.urls}
	err := other.try()
	require.ErrorContains(t, err, "in use")
}

func TestWhatIsPlantedInTheStoreReachesNoNode(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	// Whoever has the NATS server's keys and not the mesh's.
	thief := w.connect(identity.Controller, "thief")
	plant := func(key string) {
		answer, err := thief.Call(w.within(patience), "$KV.state."+key, []byte(`{"name":"evil"}`))
		require.NoError(t, err)
		require.Contains(t, string(answer), `"seq"`)
	}
	plant("declaration.evil")
	w.apply(alice, service("db", "all: true", "1"))
	ws1.sync()
	require.Equal(t, []string{"db", "web"}, ws1.names())
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Len(t, all.Declarations, 2)

	plant("declaration.web")
	require.Eventually(t, func() bool {
		all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
		return strings.Contains(all.Trouble, "declaration.web")
	}, patience, tick)
	var reply wire.SyncReply
	require.True(t, fault.Is(ws1.ask(subject.Sync, ws1.request(), &reply), fault.Failed))
	_, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"db"}, Force: true, Yes: true})
	require.True(t, fault.Is(err, fault.Failed), "%v", err)
	require.Contains(t, fault.HintOf(err), "--begin-epoch")
}

func TestServersAreWrittenDown(t *testing.T) {
	w := newWorld(t)
	urls, err := controller.Servers(w.dir)
	require.NoError(t, err)
	require.Equal(t, w.c.URLs(), urls)
	_, err = controller.Servers(t.TempDir())
	require.True(t, fault.Is(err, fault.NotFound))
}
