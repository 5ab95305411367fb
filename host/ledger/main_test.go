package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/plan"
	"stead/host/unit"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeForEver(path)
	}
	goleak.VerifyTestMain(m)
}

func openAt(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "host", "ledger.db") }

// memory is what is remembered of a unit at whose path a file with the bytes
// content stood.
func memory(name unit.Name, content string) plan.Memory {
	path := "/etc/systemd/system/" + string(name)
	wrote := plan.Entry{Kind: plan.File, Digest: sum([]byte("new")), Mode: 0o644}
	m := plan.Memory{
		Scope: unit.System, Unit: name, Name: string(name), UID: "u-" + string(name), Generation: 3,
		Found: map[string]plan.Entry{path: {Kind: plan.Absent}},
		Wrote: map[string]plan.Entry{path: wrote}, Activity: unit.Inactive,
		Loaded: plan.Loaded{Digest: "d", Boot: "b", At: 17},
	}
	if content != "" {
		m.Found[path] = plan.Entry{Kind: plan.File, Digest: sum([]byte(content)), Mode: 0o600, UID: 1}
	}
	return m
}

func blobs(contents ...string) map[string][]byte {
	m := make(map[string][]byte)
	for _, c := range contents {
		m[sum([]byte(c))] = []byte(c)
	}
	return m
}
