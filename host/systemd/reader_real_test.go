package systemd

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reading returns a connected Reader that runs until the test ends.
func reading(t *testing.T, o ReaderOptions) *Reader {
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := NewReader(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.Eventually(t, r.Connected, 10*time.Second, time.Millisecond)
	return r
}
