package seal

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestAValueOpensOnlyWhereItWasSealed(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	stranger, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	place := Place{Mesh: "m", Key: "declaration.web", Revision: 7, Sum: "s"}
	body := []byte("a\nb\x00c")
	stored := Value(private, place, body)

	found := Place{Mesh: "m", Key: "declaration.web", Revision: 7}
	got, text, err := OpenValue(public, found, stored)
	require.NoError(t, err)
	require.Equal(t, place, got)
	require.Equal(t, body, text)

	for name, c := range map[string]struct {
		key    ed25519.PublicKey
		found  Place
		stored []byte
	}{
		"another mesh's key":   {stranger, found, stored},
		"another mesh":         {public, Place{Mesh: "n", Key: found.Key, Revision: 7}, stored},
		"another key":          {public, Place{Mesh: "m", Key: "declaration.db", Revision: 7}, stored},
		"a later revision":     {public, Place{Mesh: "m", Key: found.Key, Revision: 8}, stored},
		"as a tombstone":       {public, Place{Mesh: "m", Key: found.Key, Revision: 7, Deleted: true}, stored},
		"another body":         {public, found, append(bytes.Clone(stored), 'x')},
		"nothing":              {public, found, nil},
		"no seal":              {public, found, []byte(`{"name":"web"}`)},
		"an index's signature": {public, found, append([]byte("AA==\n"), stored...)},
	} {
		_, _, err := OpenValue(c.key, c.found, c.stored)
		require.True(t, fault.Is(err, fault.Refused), "%s: %v", name, err)
	}
}

func TestEveryByteOfAValueIsSealed(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	found := Place{Mesh: "m", Key: "k", Revision: 1}
	stored := Value(private, found, []byte("body"))
	for i := range stored {
		forged := bytes.Clone(stored)
		forged[i] ^= 1
		_, _, err := OpenValue(public, found, forged)
		require.Error(t, err, "byte %d", i)
	}
}

func TestTheKindsOfSignatureAreNotExchanged(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	text := []byte(`{"node":"ws1"}`)
	type sign = func(ed25519.PrivateKey, []byte) []byte
	for name, kind := range map[string]struct {
		sign, other sign
		check       func(ed25519.PublicKey, []byte, []byte) error
	}{"index": {Index, Tools, CheckIndex}, "tools": {Tools, Index, CheckTools}} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, kind.check(public, text, kind.sign(private, text)))
			require.Error(t, kind.check(public, []byte(`{"node":"ws2"}`), kind.sign(private, text)))
			require.Error(t, kind.check(public, text, kind.other(private, text)))
			require.Error(t, kind.check(public, text, ed25519.Sign(private, text)))
			require.Error(t, kind.check(nil, text, kind.sign(private, text)))
			require.Error(t, kind.check(public, text, ed25519.Sign(private, append([]byte(valueDomain), text...))))
		})
	}
}

func TestTheSumTellsWhatVanishedOrWasExchanged(t *testing.T) {
	all := map[string]Stand{"a": {1, "x"}, "b": {2, "y"}, "c": {3, ""}}
	sum := Sum(all)
	require.Equal(t, sum, Sum(map[string]Stand{"c": {3, ""}, "a": {1, "x"}, "b": {2, "y"}}))
	for name, other := range map[string]map[string]Stand{
		"nothing":         {},
		"a key less":      {"a": {1, "x"}, "b": {2, "y"}},
		"a revision":      {"a": {1, "x"}, "b": {2, "y"}, "c": {4, ""}},
		"another key":     {"a": {1, "x"}, "b": {2, "y"}, "d": {3, ""}},
		"a key more":      {"a": {1, "x"}, "b": {2, "y"}, "c": {3, ""}, "d": {4, ""}},
		"exchanged":       {"a": {1, "x"}, "b": {2, "z"}, "c": {3, ""}},
		"seals that move": {"a": {1, "y"}, "b": {2, "x"}, "c": {3, ""}},
	} {
		require.NotEqual(t, sum, Sum(other), name)
	}
}

func TestTheSealIsThatOfTheWholeValue(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	one := Value(private, Place{Mesh: "m", Key: "k", Revision: 1}, []byte("body"))
	two := Value(private, Place{Mesh: "m", Key: "k", Revision: 1}, []byte("bodies"))
	require.Equal(t, Seal(one), Seal(bytes.Clone(one)))
	require.NotEqual(t, Seal(one), Seal(two))
	require.Empty(t, Seal(nil))
}
