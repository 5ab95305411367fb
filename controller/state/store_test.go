package state_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/mesh/meshtest"
	"stead/mesh/seal"
)

// message is one message of the store as it lies there.
type message struct {
	key      string
	sequence uint64
	deleted  bool
	data     []byte
}

func (c *controller) stream() jetstream.Stream {
	c.t.Helper()
	s, err := c.js().Stream(c.t.Context(), "KV_state")
	require.NoError(c.t, err)
	return s
}

// messages is all that lies in the store, in its order.
func (c *controller) messages() []message {
	c.t.Helper()
	s := c.stream()
	var all []message
	for sequence := s.CachedInfo().State.FirstSeq; sequence <= s.CachedInfo().State.LastSeq; sequence++ {
		m, err := s.GetMsg(c.t.Context(), sequence)
		if err != nil { // written again since
			continue
		}
		all = append(all, message{strings.TrimPrefix(m.Subject, "$KV.state."), m.Sequence, m.Header.Get("KV-Operation") == "DEL", m.Data})
	}
	return all
}

// rewrite makes the store anew with these messages, each at its sequence: what
// whoever owns the NATS server can do to it. Between them "filler" is written.
func (c *controller) rewrite(all []message) {
	c.t.Helper()
	config := c.stream().CachedInfo().Config
	js := c.js()
	require.NoError(c.t, js.DeleteStream(c.t.Context(), "KV_state"))
	_, err := js.CreateStream(c.t.Context(), config)
	require.NoError(c.t, err)
	slices.SortFunc(all, func(a, b message) int { return cmp.Compare(a.sequence, b.sequence) })
	sequence := uint64(0)
	for _, m := range all {
		for sequence+1 < m.sequence {
			sequence = c.plant("filler", []byte("filler"), false)
		}
		sequence = c.plant(m.key, m.data, m.deleted)
		require.Equal(c.t, m.sequence, sequence)
	}
}

// seal commits a body under key as a controller of another version could: sealed
// with the mesh's key, at its place, with the sum of what stands there.
func (c *controller) seal(m *meshtest.Mesh, key string, body []byte) {
	c.t.Helper()
	all := map[string]seal.Stand{}
	for _, e := range c.messages() {
		if e.key != "filler" {
			all[e.key] = seal.Stand{Revision: e.sequence, Seal: seal.Seal(e.data)}
		}
	}
	place := seal.Place{Mesh: m.Keys.ID(), Key: key, Revision: c.stream().CachedInfo().State.LastSeq + 1}
	all[key] = seal.Stand{Revision: place.Revision}
	place.Sum = seal.Sum(all)
	c.plant(key, seal.Value(m.Keys.DeclarationKey(), place, body), false)
}
