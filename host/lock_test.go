package host

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestOneHostKeepsAMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "system.lock")
	first, err := lock(path)
	require.NoError(t, err)
	_, err = lock(path)
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	require.NoError(t, first.Close())
	next, err := lock(path)
	require.NoError(t, err)
	require.NoError(t, next.Close())
}
