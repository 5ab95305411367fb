package contexts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// fieldsOf are those of a context of the nats command.
func fieldsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	fields := map[string]string{}
	require.NoError(t, json.Unmarshal(text, &fields))
	return fields
}

func add(t *testing.T, s *Store, name string, c identity.Credentials) Context {
	t.Helper()
	at, err := s.Add(t.Context(), name, c)
	require.NoError(t, err)
	return at
}

func TestNATSContextIsWrittenBesideThoseOfOthers(t *testing.T) {
	s, keys := open(t), newMesh(t)
	alice := mint(t, keys, identity.Operator, "alice")
	home := add(t, s, "home", alice)
	n, err := s.NATS(t.Context(), home, "home")
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"description": "stead: operator alice", "url": "tls://127.0.0.1:4222", "creds": n.Creds, "ca": n.CA, "inbox_prefix": "_INBOX." + alice.PublicKey(),
	}, fieldsOf(t, n.Path))
	require.Equal(t, filepath.Join(s.nats, "home.json"), n.Path)
	creds, err := os.ReadFile(n.Creds)
	require.NoError(t, err)
	want, err := alice.NATS()
	require.NoError(t, err)
	require.Equal(t, string(want), string(creds))
	ca, err := os.ReadFile(n.CA)
	require.NoError(t, err)
	require.Equal(t, alice.CA, string(ca))
	for _, file := range []string{n.Creds, n.CA, n.Path} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
	info, err := os.Stat(filepath.Dir(n.Creds))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	// One that is not ours stays, whatever it holds.
	for _, text := range []string{`{"url":"nats://demo","creds":""}`, `{"creds":7}`, "not JSON", "", `null`, "[]"} {
		path := filepath.Join(s.nats, "demo.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = s.NATS(t.Context(), home, "demo")
		require.True(t, fault.Is(err, fault.Conflict), "%q: %v", text, err)
		require.Contains(t, fault.HintOf(err), "--as")
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(kept))
	}
	other := add(t, s, "other", mint(t, keys, identity.Viewer, "vera"))
	_, err = s.NATS(t.Context(), other, "home")
	require.True(t, fault.Is(err, fault.Conflict), "it is that of another context")
	_, err = s.NATS(t.Context(), home, "../x")
	require.True(t, fault.Is(err, fault.Invalid))
	_, err = s.NATS(t.Context(), Context{Path: "./alice.json", Credentials: alice}, "home")
	require.True(t, fault.Is(err, fault.Invalid))
	require.Equal(t, "stead context add ./alice.json", fault.HintOf(err))
}

func TestNATSContextsGoTheWayOfTheirContext(t *testing.T) {
	s, keys := open(t), newMesh(t)
	home := add(t, s, "home", mint(t, keys, identity.Operator, "alice"))
	first, err := s.NATS(t.Context(), home, "home")
	require.NoError(t, err)
	second, err := s.NATS(t.Context(), home, "mine")
	require.NoError(t, err)
	other := add(t, s, "other", mint(t, keys, identity.Viewer, "vera"))
	others, err := s.NATS(t.Context(), other, "vera")
	require.NoError(t, err)
	theirs := filepath.Join(s.nats, "demo.json")
	require.NoError(t, os.WriteFile(theirs, []byte(`{"url":"nats://demo"}`), 0o600))

	// What somebody set besides stays.
	text, err := os.ReadFile(second.Path)
	require.NoError(t, err)
	changed := strings.Replace(strings.Replace(string(text), "stead: operator alice", "my machines", 1), "{", `{"color_scheme":"red",`, 1)
	require.NoError(t, os.WriteFile(second.Path, []byte(changed), 0o600))
	renewed := mint(t, keys, identity.Operator, "alice")
	renewed.URLs = []string{"tls://mesh.example:4222", "tls://mesh2.example:4222"}
	add(t, s, "home", renewed)
	for _, n := range []NATS{first, second} {
		fields := fieldsOf(t, n.Path)
		require.Equal(t, "tls://mesh.example:4222,tls://mesh2.example:4222", fields["url"])
		require.Equal(t, renewed.Inbox(), fields["inbox_prefix"])
	}
	require.Equal(t, "red", fieldsOf(t, second.Path)["color_scheme"])
	require.Equal(t, "my machines", fieldsOf(t, second.Path)["description"])
	creds, err := os.ReadFile(first.Creds)
	require.NoError(t, err)
	require.Contains(t, string(creds), renewed.Seed)
	require.Equal(t, other.Credentials.Inbox(), fieldsOf(t, others.Path)["inbox_prefix"], "another's stays")

	require.NoError(t, s.Remove(t.Context(), "home"))
	for _, gone := range []string{first.Path, second.Path, first.Creds, first.CA} {
		require.NoFileExists(t, gone)
	}
	for _, stays := range []string{theirs, others.Path, others.Creds, others.CA} {
		require.FileExists(t, stays)
	}
}
