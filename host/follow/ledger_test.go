package follow

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ledgers "stead/host/ledger"
	"stead/mesh/wire"
)

// life runs a follower on a real ledger until it has taken over what is declared.
func life(t *testing.T, r *rig, path string, until func(last Set) bool) (first, last Set) {
	t.Helper()
	b, err := ledgers.Open(ledgers.Options{Path: path})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	state, err := b.Load()
	require.NoError(t, err)
	o := r.o
	o.Ledger, o.Logger = b, r.discard()
	o.Held, o.Declarations = state.Held, state.Declarations
	sets := make(chan Set, 10)
	o.Declare = func(_ context.Context, set Set) error {
		sets <- set
		return nil
	}
	f, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	first = <-sets
	last = first
	for end := time.Now().Add(30 * time.Second); !until(last) && time.Now().Before(end); {
		select {
		case last = <-sets:
		case <-time.After(time.Millisecond):
		}
	}
	require.True(t, until(last))
	cancel()
	require.NoError(t, <-done)
	return first, last
}

// On the disk of a real ledger, with as many declarations as a node may have.
func TestWhatWasAcceptedOutlivesTheProcess(t *testing.T) {
	r, path := newRig(t), filepath.Join(t.TempDir(), "ledger.db")
	var names []string
	for n := range wire.MaxEntries {
		names = append(names, fmt.Sprintf("unit%04d", n))
	}
	r.c.apply(1, names...)
	began := time.Now()
	first, last := life(t, r, path, func(last Set) bool { return len(last.Declared) > 0 })
	require.Empty(t, first.Declared, "nothing was in force before")
	require.Len(t, last.Declared, wire.MaxEntries)
	t.Logf("%d declarations taken over in %v", wire.MaxEntries, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	first, _ = life(t, r, path, func(Set) bool { return true })
	require.Equal(t, last, first, "the next process begins with it")
	t.Logf("and in force %v after the next start", time.Since(began).Round(time.Millisecond))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB of heap in use", m.HeapInuse>>20)
}
