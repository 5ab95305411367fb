package controller_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/subject"
	"stead/mesh/wire"
)

// TestWhatIsSensitiveIsGotAsADigest: by people; the node gets what is declared.
func TestWhatIsSensitiveIsGotAsADigest(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true\nsensitive: true\ndropins: {a.conf: 'hunter2'}", "1\n  # hunter2"))
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations, Content: true})
	text := string(all.Declarations[0].Canonical)
	require.NotContains(t, text, "hunter2")
	require.Contains(t, text, "sha256")
	require.True(t, json.Valid(all.Declarations[0].Canonical))
	ws1.sync()
	var reply wire.BodyReply
	require.NoError(t, ws1.ask(subject.Body, wire.BodyRequest{Wire: wire.Version, Digests: []string{ws1.held.Entries[0].Digest}}, &reply))
	require.Contains(t, string(reply.Bodies[0]), "hunter2")
}
