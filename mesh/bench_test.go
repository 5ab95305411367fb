package mesh_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// lineSize is about what journalctl -o json writes for one entry, in bytes.
const lineSize = 750

// BenchmarkFollow moves lines from a runtime to an operator through a server,
// all over TLS: by a stream with credit, and by bare answers without any, which
// is the floor. An iteration is a line.
func BenchmarkFollow(b *testing.B) {
	m := meshtest.New(b)
	tool, operator := m.Connect(identity.Tool, "ws1"), m.Connect(identity.Operator, "olga")
	for _, together := range []int{1, 85} { // one line in a chunk, and 64 KiB
		chunk := bytes.Repeat([]byte("x"), lineSize*together)
		b.Run(fmt.Sprintf("%d lines in a chunk/bare answers", together), func(b *testing.B) {
			bare(b, tool, operator, chunk, b.N/together+1)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
		for _, window := range []int{64 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%d lines in a chunk/stream with a window of %d KiB", together, window>>10), func(b *testing.B) {
				credited(b, tool, operator, chunk, b.N/together+1, window)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
			})
		}
	}
}

func credited(b *testing.B, tool, operator *mesh.Conn, chunk []byte, n, window int) {
	_, stop := streams(b, tool, mesh.Endpoint{Stream: func(_ context.Context, _ mesh.Request, s *mesh.Stream) error {
		for i := range n {
			if err := s.Send(chunk, strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	}})
	got := 0
	b.ResetTimer()
	err := operator.Follow(b.Context(), journal1, mesh.FollowOptions{
		Window: window, Request: func(string) []byte { return nil }, Take: func(mesh.Chunk) error { got++; return nil },
	})
	b.StopTimer()
	require.NoError(b, err)
	require.Equal(b, n, got)
	require.NoError(b, stop())
}

func bare(b *testing.B, tool, operator *mesh.Conn, chunk []byte, n int) {
	at, err := tool.Session(b.Context())
	require.NoError(b, err)
	served, err := at.NATS().Subscribe(journal1, func(m *nats.Msg) {
		for range n {
			_ = m.RespondMsg(&nats.Msg{Data: chunk})
		}
	})
	require.NoError(b, err)
	require.NoError(b, at.NATS().Flush())
	from, err := operator.Session(b.Context())
	require.NoError(b, err)
	inbox, done := from.NATS().NewInbox(), make(chan struct{})
	got := 0
	sub, err := from.NATS().Subscribe(inbox, func(*nats.Msg) {
		if got++; got == n {
			close(done)
		}
	})
	require.NoError(b, err)
	require.NoError(b, sub.SetPendingLimits(-1, -1))
	b.ResetTimer()
	require.NoError(b, from.NATS().PublishRequest(journal1, inbox, nil))
	<-done
	b.StopTimer()
	require.NoError(b, sub.Unsubscribe())
	require.NoError(b, served.Unsubscribe())
	require.NoError(b, at.NATS().Flush())
}
