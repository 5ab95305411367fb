package server

import (
	"testing"

	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// Running is what the server that runs says of itself.
func (s *Server) Running(t *testing.T) (*nats.JetStreamConfig, *nats.Varz) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.ns.Varz(nil)
	require.NoError(t, err)
	return s.ns.JetStreamConfig(), v
}
