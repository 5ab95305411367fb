package accept

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/seal"
	"stead/mesh/wire"
)

// mesh is a mesh that says things to node ws1.
type mesh struct {
	t    *testing.T
	key  ed25519.PrivateKey
	self Trust
}

func newMesh(t *testing.T, id string) mesh {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return mesh{t, private, Trust{Mesh: id, Node: "ws1", Key: public}}
}

func (m mesh) sign(i wire.Index) wire.Signed {
	text, err := json.Marshal(i)
	require.NoError(m.t, err)
	return m.signBytes(text)
}

func (m mesh) signBytes(text []byte) wire.Signed {
	return wire.Signed{Index: text, Signature: seal.Index(m.key, text)}
}

// index is one of epoch e1 at a revision, with entries of generation 1.
func (m mesh) index(revision uint64, entries ...string) wire.Index {
	i := wire.Index{Wire: wire.Version, Mesh: m.self.Mesh, Epoch: "e1", Revision: revision, Node: "ws1"}
	for _, name := range entries {
		i.Entries = append(i.Entries, entry(name, 1))
	}
	return i
}

func body(name string, generation uint64) []byte {
	return []byte(name + " of generation " + string(rune('0'+generation)))
}

func entry(name string, generation uint64) wire.Entry {
	b := body(name, generation)
	sum := sha256.Sum256(b)
	return wire.Entry{Name: name, UID: "uid-" + name, Generation: generation, Digest: hex.EncodeToString(sum[:]), Size: len(b)}
}

func identity(name, epoch string) Identity {
	e := entry(name, 1)
	return Identity{UID: e.UID, Name: name, Generation: 1, Digest: e.Digest, Body: body(name, 1), Epoch: epoch}
}

// bodies are those of all entries of generations 1 to 3.
func bodies(i wire.Index) map[string][]byte {
	all := make(map[string][]byte)
	for _, e := range i.Entries {
		for g := range uint64(3) {
			all[entry(e.Name, g+1).Digest] = body(e.Name, g+1)
		}
	}
	return all
}

// take accepts an index, writes the change to a ledger's maps and reads them as a
// host does that starts anew.
func (m mesh) take(h Holding, i wire.Index) (Holding, Change) {
	d, err := Decide(m.self, h, m.sign(i))
	require.NoError(m.t, err)
	change, next, err := d.Complete(bodies(i), time.Unix(100, 0))
	require.NoError(m.t, err)
	stored := make(map[string]Identity)
	for name, id := range h.Declarations {
		stored[name] = id
	}
	for _, name := range change.Delete {
		delete(stored, name)
	}
	for _, id := range change.Put {
		stored[id.Name] = id
	}
	held := change.Held
	if held == nil && h.Index != nil {
		held = &Held{h.Signed.Index, h.Signed.Signature, h.At}
	}
	again, err := Open(held, stored)
	require.NoError(m.t, err)
	require.Equal(m.t, next.Index, again.Index)
	require.Equal(m.t, next.At, again.At)
	require.Equal(m.t, next.Kept(m.self), again.Kept(m.self))
	require.Equal(m.t, names(next.Declarations), names(stored), "the ledger holds what is in force")
	for name, id := range next.Declarations {
		require.Equal(m.t, id, stored[name])
	}
	return next, change
}
