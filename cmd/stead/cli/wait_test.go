package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/cmd/stead/cli"
)

func TestAnInterruptedWaitSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, complaint bytes.Buffer
	code := cli.Main(ctx, cli.Options{Args: []string{"host", "status", "--socket", filepath.Join(t.TempDir(), "sock"), "--wait", "30s"}, Out: &out, Err: &complaint})
	require.Equal(t, cli.ExitFailed, code)
	require.Empty(t, out.String())
	require.Equal(t, "error: wait: interrupted before all was converged\n", complaint.String())
}
