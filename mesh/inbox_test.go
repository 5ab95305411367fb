package mesh_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// TestCallsOfOneConnectionGetTheirOwnAnswers: they share one subscription, which a
// call that nobody waits for any more leaves as it was.
func TestCallsOfOneConnectionGetTheirOwnAnswers(t *testing.T) {
	m := meshtest.New(t)
	const status = "seat.v1.r.ws1.node-service-manager.status"
	serve(t, m.Connect(identity.Tool, "ws1"), mesh.Endpoint{Subject: status, Accounts: []identity.Account{identity.OPS}, Handler: echo, Together: 64, Waiting: 1000})
	alice := m.Connect(identity.Operator, "alice")
	session, err := alice.Session(t.Context())
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ask := fmt.Sprint(i)
			answer, err := alice.Insist(within(t, patience), status, []byte(ask))
			if err != nil || string(answer) != ask {
				t.Errorf("asked %s: %q, %v", ask, answer, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, session.NATS().NumSubscriptions())
}
