package controller_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// TestWhatAModuleDeclaresGoesWithIt: it is declared where the module is assigned,
// and withdrawn where it is no longer.
func TestWhatAModuleDeclaresGoesWithIt(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.start(with(tray()))
	alice := w.operator("alice")
	ws1, ws2 := w.join("ws1"), w.join("ws2")
	ws1.tells(can("desk", "service-manager"))
	ws1.sync()
	ws2.sync()
	require.Equal(t, []string{"tray.panel"}, ws1.names())
	require.Empty(t, ws2.names())
	run := w.agent("ws1")
	run.sync()
	require.Equal(t, []wire.DeclaredUnit{{Unit: "panel.service", Scope: "system", Name: "tray.panel", Generation: 1, Ensure: "running"}}, run.held.Units)

	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations, Names: []string{"tray.panel"}})
	require.Len(t, all.Declarations, 1)
	d := all.Declarations[0]
	require.Equal(t, []any{"desk", "tray", "controller c1", 1}, []any{d.Capability, d.Module, d.By, d.On})
	var body wire.BodyReply
	require.NoError(t, ws1.ask(subject.Body, wire.BodyRequest{Wire: wire.Version, Digests: []string{ws1.held.Entries[0].Digest}}, &body))
	require.Len(t, body.Bodies, 1)

	refused, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"tray.panel"}, Force: true, Yes: true})
	require.NoError(t, err)
	require.Contains(t, refused.Problems[0].Rule, `module "tray" declares it`)

	// At no revision are there two sets: it rises with what a node reports.
	at := ws1.held.Revision
	ws1.tells(can("service-manager"))
	require.NotNil(t, ws1.sync().Signed)
	require.Greater(t, ws1.held.Revision, at)
	require.Empty(t, ws1.names())
	ws1.tells(can("desk", "service-manager"))
	ws1.sync()
	require.Equal(t, []string{"tray.panel"}, ws1.names())

	edited := tray()
	edited.Declarations[0] = strings.Replace(edited.Declarations[0], "inf", "99", 1)
	w.end()
	w.start(with(edited))
	ws1.sync()
	require.EqualValues(t, 2, ws1.held.Entries[0].Generation)
	w.end()
	w.start()
	ws1.sync()
	require.Empty(t, ws1.names(), "it left the catalogue")
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Modules})
	require.Len(t, all.Modules, 1)
}

// TestAtOneRevisionThereIsOneSet: whichever controller is asked, and however what
// nodes report goes to and fro, an index of one revision has one digest.
func TestAtOneRevisionThereIsOneSet(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.start(with(tray()))
	w.beside2("c2", with(tray()))
	ws1 := w.join("ws1")
	run := w.agent("ws1")
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := profile()
			p.Capabilities = [][]string{{"service-manager"}, {"desk", "service-manager"}, {"desk"}}[i%3]
			var reply wire.ProfileReply
			if err := ws1.ask(subject.Profile, p, &reply); err != nil {
				t.Errorf("profile: %v", err)
				return
			}
		}
	})
	digests, tools := map[uint64]string{}, map[uint64]string{}
	asker := &node{w: w, name: "ws1", conn: w.connect(identity.Host, "ws1"), mesh: w.keys.ID()}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		asker.held = wire.Index{}
		asker.sync()
		if was, ok := digests[asker.held.Revision]; ok {
			require.Equal(t, was, asker.held.Digest(), "revision %d", asker.held.Revision)
		}
		digests[asker.held.Revision] = asker.held.Digest()
		run.held = wire.Tools{}
		run.sync()
		if was, ok := tools[run.held.Revision]; ok {
			require.Equal(t, was, run.held.Digest(), "revision %d", run.held.Revision)
		}
		tools[run.held.Revision] = run.held.Digest()
	}
	close(stop)
	group.Wait()
	require.Greater(t, len(digests), 10)
	require.Greater(t, len(tools), 10)

	ws1.tells(can("desk"))
	ws1.sync()
	require.Equal(t, []string{"tray.panel"}, ws1.names(), "what was told last holds")
}
