package identity_test

import (
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// TestOtherClientsReadTheCredentials: in the form in which NATS clients read them they
// are the same user.
func TestOtherClientsReadTheCredentials(t *testing.T) {
	alice, err := newRealm(t).mesh.Mint(identity.Request{Role: identity.Operator, Name: "alice", URLs: []string{"tls://127.0.0.1:4222"}})
	require.NoError(t, err)
	text, err := alice.NATS()
	require.NoError(t, err)
	token, err := jwt.ParseDecoratedJWT(text)
	require.NoError(t, err)
	require.Equal(t, alice.JWT, token)
	pair, err := jwt.ParseDecoratedUserNKey(text)
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	require.Equal(t, alice.PublicKey(), public)

	alice.JWT = "x"
	_, err = alice.NATS()
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}
