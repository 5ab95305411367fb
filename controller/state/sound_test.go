package state_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
)

func TestPlantedValueOnANewKeyChangesNothing(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	before := c.put(declare(t, "web", "1", nil), node("ws1", nil))
	_, stranger, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	sealed := c.stored("declaration.web")
	_, body, _ := bytes.Cut(sealed.Value, []byte("\n"))
	_, body, _ = bytes.Cut(body, []byte("\n"))
	for key, value := range map[string][]byte{
		"declaration.nothing":  nil,
		"declaration.plain":    []byte(`{"name":"plain"}`),
		"declaration.copied":   sealed.Value,
		"declaration.foreign":  seal.Value(stranger, seal.Place{Mesh: before.Mesh, Key: "declaration.foreign", Revision: 7}, body),
		"node.evil":            []byte("node"),
		"mesh.other":           []byte("mesh"),
		"something.else.fully": []byte("else"),
	} {
		at := c.plant(key, value, false)
		for _, who := range []*controller{c, other} {
			require.NoError(t, who.Reach(t.Context(), at))
			now := who.Now()
			require.NoError(t, now.Unsound, key)
			require.Equal(t, before, now, "%s: not even the revision", key)
			require.Contains(t, who.Strangers(), key)
		}
	}
	require.Contains(t, c.log.String(), "no controller wrote")

	// Work goes on beside it, and takes its place.
	after := c.put(declare(t, "plain", "1", nil), declare(t, "web", "2", before.Declarations["web"]))
	require.NoError(t, after.Unsound)
	require.Equal(t, before.Revision+9, after.Revision, "the revision is the bucket's")
	require.NotContains(t, c.Strangers(), "declaration.plain")
	require.NoError(t, other.Reach(t.Context(), after.Revision))
	require.NoError(t, other.Now().Unsound)
	require.Contains(t, other.Now().Declarations, "plain")
}

func TestPlantedTombstoneWithdrawsNothing(t *testing.T) {
	_, c := alone(t)
	c.put(declare(t, "web", "1", nil), declare(t, "db", "1", nil))
	c.plant("declaration.web", c.stored("declaration.web").Value, true)
	c.unsound("not written by a controller is declaration.web")
	require.Contains(t, c.Now().UnreadableDeclarations, "web")
	require.NotContains(t, c.Now().Declarations, "web")
	require.Contains(t, c.Now().Declarations, "db", "the rest can be looked at")
}

func TestWhatIsOverwrittenMakesTheStateUnsoundForEverybody(t *testing.T) {
	for name, change := range map[string]func(c *controller) (key string, value []byte){
		"junk":              func(*controller) (string, []byte) { return "declaration.web", []byte("junk") },
		"an earlier value":  func(c *controller) (string, []byte) { return "declaration.web", c.stored("kept").Value },
		"another key's":     func(c *controller) (string, []byte) { return "declaration.web", c.stored("declaration.db").Value },
		"the value itself":  func(c *controller) (string, []byte) { return "declaration.web", c.stored("declaration.web").Value },
		"the epoch":         func(*controller) (string, []byte) { return "mesh.epoch", []byte(`{"id":"mine"}`) },
		"a node's settings": func(*controller) (string, []byte) { return "node.ws1", nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := meshtest.New(t)
			path := marker(t)
			c, other := start(t, m, path), start(t, m, marker(t))
			first := c.put(declare(t, "web", "1", nil), declare(t, "db", "1", nil), node("ws1", nil))
			c.plant("kept", c.stored("declaration.web").Value, false)
			require.NoError(t, c.Reach(t.Context(), first.Revision+1))
			c.put(declare(t, "web", "2", first.Declarations["web"]))
			key, value := change(c)
			c.plant(key, value, false)
			c.unsound(key)
			other.unsound(key)

			// A controller that starts shows it; one that is told to begins anew.
			c.end()
			late := start(t, m, path)
			late.unsound(key)
			late.end()
			cured := start(t, m, path, begin)
			now := cured.Now()
			require.NoError(t, now.Unsound)
			require.NotEqual(t, first.Epoch, now.Epoch)
			require.Equal(t, []string{first.Epoch}, now.Follows)
			require.Contains(t, now.Declarations, "db", "what opens is taken over")
			if key == "declaration.web" {
				require.NotContains(t, now.Declarations, "web", "and what does not is neither declared nor withdrawn")
				require.NotContains(t, now.UnreadableDeclarations, "web")
			}
			require.Empty(t, cured.Strangers())
			other.until("the new epoch", func(s *assign.State) bool { return s.Epoch == now.Epoch && s.Unsound == nil })
			other.put(declare(t, "web", "3", nil))
			require.NoError(t, cured.Reach(t.Context(), other.Now().Revision))
			require.NoError(t, cured.Now().Unsound)
			require.EqualValues(t, 1, cured.Now().Declarations["web"].Generation)
		})
	}
}

func TestVanishedKeysAreMissed(t *testing.T) {
	for name, gone := range map[string]string{"a declaration": "declaration.db", "a tombstone": "declaration.old", "a node": "node.ws1", "the last write": "node.ws2", "the epoch": "mesh.epoch"} {
		t.Run(name, func(t *testing.T) {
			m := meshtest.New(t)
			path := marker(t)
			c := start(t, m, path)
			first := c.put(declare(t, "web", "1", nil), declare(t, "db", "1", nil), declare(t, "old", "1", nil), node("ws1", nil))
			c.put(withdraw(first.Declarations["old"]), node("ws2", nil))
			all := c.messages()
			var kept []message
			for _, e := range all {
				if e.key != gone {
					kept = append(kept, e)
				}
			}
			c.rewrite(kept)
			c.unsound("gone is " + gone)
			fresh := start(t, m, marker(t))
			require.Error(t, fresh.Now().Unsound, "a controller that knows nothing misses it too")
			c.rewrite(all)
			c.until("the right store", func(s *assign.State) bool { return s.Unsound == nil })
		})
	}
}

// Values of another life of the store fit their place: they were sealed for that
// key and revision of this mesh.
func TestValueOfAnotherLifeOfTheStoreIsNotTaken(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	c.put(declare(t, "web", "1", nil), declare(t, "db", "1", nil))
	old := c.messages()
	c.end()
	m.Stop()
	m.Wipe()
	m.Start()
	c = start(t, m, path, begin)
	c.put(declare(t, "web", "2", nil), declare(t, "db", "2", nil))
	require.NoError(t, c.Now().Unsound)
	now := c.messages()
	require.Equal(t, old[1].key, now[1].key)
	require.Equal(t, old[1].sequence, now[1].sequence)

	// One for one, and all but the last.
	mixed := append([]message{now[0], old[1]}, now[2])
	c.rewrite(mixed)
	c.unsound("what stands in the store")
	c.rewrite(now)
	c.until("the right one again", func(s *assign.State) bool { return s.Unsound == nil })
	c.rewrite(append([]message{now[0]}, old[1], old[2]))
	c.unsound("what stands in the store")
	c.rewrite(old)
	c.unsound("does not go on from it")
}

func TestValueThatThisVersionCannotReadIsKeptInForce(t *testing.T) {
	m, c := alone(t)
	c.put(declare(t, "web", "1", nil))
	for key, body := range map[string]string{
		"declaration.later":  `{"name":"later","uid":"u","generation":1,"digest":"d","address":{"all":true}}` + "\n{}",
		"declaration.other":  `{"name":"another","uid":"u","generation":1,"withdrawn":true}`,
		"declaration.broken": `{"name":`,
		"node.ws9":           `{"name":"ws8"}`,
		"module.systemd":     `{"a kind":"of a later version"}`,
	} {
		c.seal(m, key, []byte(body))
	}
	now := c.until("all five", func(s *assign.State) bool { return s.Revision == 7 })
	require.NoError(t, now.Unsound)
	require.Len(t, now.UnreadableDeclarations, 3)
	require.Contains(t, now.UnreadableDeclarations["later"], "digest")
	require.Len(t, now.UnreadableNodes, 1)
	require.Len(t, now.Declarations, 1)
	require.Empty(t, c.Strangers())

	after := c.put(declare(t, "broken", "1", nil))
	require.NoError(t, after.Unsound)
	require.Len(t, after.UnreadableDeclarations, 2)
	require.Len(t, now.UnreadableDeclarations, 3, "a state that was handed out is never changed")
	fresh := start(t, m, marker(t))
	require.Equal(t, after, fresh.Now())
}

func TestManyStrangersAreTakenAwayByANewEpoch(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	first := c.put(declare(t, "web", "1", nil))
	js := c.js()
	for i := range 1500 {
		_, err := js.PublishAsync(fmt.Sprintf("$KV.state.declaration.x%d", i), []byte("junk"))
		require.NoError(t, err)
	}
	_, err := js.PublishAsync("$KV.state.a$key", []byte("of no controller's"))
	require.NoError(t, err)
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("not published")
	}
	c.until("all of it", func(s *assign.State) bool { return len(c.Strangers()) == 1501 })
	require.Equal(t, first, c.Now())
	c.end()
	cured := start(t, m, path, begin)
	require.NoError(t, cured.Now().Unsound)
	require.Equal(t, []string{first.Epoch}, cured.Now().Follows)
	require.Equal(t, []string{"a$key"}, cured.Strangers(), "what is no key cannot be written")
	require.Len(t, cured.Now().Declarations, 1)
	cured.put(declare(t, "x7", "1", nil))
	fresh := start(t, m, marker(t))
	require.Equal(t, cured.Now(), fresh.Now())
}

// Controllers that read while others commit never take half of it for the whole.
func TestReaderThatIsOutpacedDoubtsAndDoesNotCry(t *testing.T) {
	m := meshtest.New(t)
	c := start(t, m, marker(t))
	var watching []*controller
	for range 3 {
		watching = append(watching, start(t, m, marker(t)))
	}
	for round := range 30 {
		var changes []state.Change
		for i := range 40 {
			changes = append(changes, node(fmt.Sprintf("ws%d", i), map[string]string{"round": fmt.Sprint(round)}))
		}
		c.put(changes...)
		c.put(node("ws7", map[string]string{"round": fmt.Sprint(round)}))
	}
	for _, w := range watching {
		require.NoError(t, w.Reach(t.Context(), c.Now().Revision))
		require.Equal(t, c.Now(), w.Now())
		require.NotContains(t, w.log.String(), "unsound")
	}
}

func TestStateIsReadAnewWithoutCryingWhenTheServerComesBack(t *testing.T) {
	m, c := alone(t)
	for round := range 4 {
		c.put(node("ws1", map[string]string{"round": fmt.Sprint(round)}), declare(t, fmt.Sprintf("d%d", round), "1", nil))
		m.Stop()
		m.Start()
		m.Link.Kill()
		require.Eventually(t, func() bool {
			_, _, err := c.Decide(t.Context(), func(*assign.State) ([]state.Change, error) { return []state.Change{node("ws2", nil)}, nil })
			require.NotEqual(t, fault.Failed, fault.ClassOf(err), "%v", err)
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	require.NotContains(t, c.log.String(), "unsound")
	require.Len(t, c.Now().Declarations, 4)
}
