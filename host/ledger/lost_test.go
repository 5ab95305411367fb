package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

// What was found on the machine outlives somebody's rm.
func TestALedgerThatIsTakenAwayIsWrittenAgain(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"the file":   os.Remove,
		"its folder": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		for _, then := range []string{"a commit", "the end"} {
			t.Run(name+", then "+then, func(t *testing.T) {
				path := newPath(t)
				l := openAt(t, path)
				require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("a.service", "theirs")}, Blobs: blobs("theirs")}))
				require.NoError(t, take(path))
				if then == "a commit" {
					require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("b.service", "")}}))
					_, err := Open(Options{Path: path})
					require.True(t, fault.Is(err, fault.Conflict), "it is locked: %v", err)
				}
				require.NoError(t, l.Close())
				l = openAt(t, path)
				s, err := l.Load()
				require.NoError(t, err)
				require.Contains(t, s.Units, Key{unit.System, "a.service"})
				require.Equal(t, then == "a commit", len(s.Units) == 2)
				data, err := l.Blob(sum([]byte("theirs")))
				require.NoError(t, err)
				require.Equal(t, "theirs", string(data))
			})
		}
	}
}

func TestAnotherFileInItsPlaceIsLeftAlone(t *testing.T) {
	path := newPath(t)
	l := openAt(t, path)
	require.NoError(t, os.Rename(path, path+".moved"))
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
	err := l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("a.service", "")}})
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	require.NoError(t, l.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(data))
}
