package mesh_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

var journal1 = subject.ForVerb(subject.Read, "ws1", "node-service-manager", "journal")

// count streams the numbers behind the one that the request names, up to below
// end, or for ever when end is 0.
func count(end int) mesh.Streamer {
	return func(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
		at, _ := strconv.Atoi(string(r.Payload))
		for at++; end == 0 || at < end; at++ {
			text := strconv.Itoa(at)
			if err := s.Send([]byte(text), text); err != nil {
				return err
			}
		}
		return nil
	}
}

func behind(cursor string) []byte { return []byte(cursor) }

// streams serves the journal of ws1.
func streams(t *testing.T, c *mesh.Conn, e mesh.Endpoint) *mesh.Service {
	t.Helper()
	e.Name, e.Subject, e.Handler, e.Accounts = "journal", journal1, echo, []identity.Account{identity.OPS}
	s, _ := run(t, c, mesh.ServiceOptions{Name: "runtime", Version: "1.0.0", Node: "ws1", Endpoints: []mesh.Endpoint{e}})
	return s
}

func TestStreamArrivesWholeAndInOrder(t *testing.T) {
	m := meshtest.New(t)
	tool, operator := m.Connect(identity.Tool, "ws1"), m.Connect(identity.Operator, "olga")
	streams(t, tool, mesh.Endpoint{Stream: count(20000)})
	var got int
	err := operator.Follow(t.Context(), journal1, mesh.FollowOptions{Request: behind, Take: func(c mesh.Chunk) error {
		got++
		require.Equal(t, strconv.Itoa(got), string(c.Payload))
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, 19999, got)
}
