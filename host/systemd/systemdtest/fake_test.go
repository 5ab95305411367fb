package systemdtest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestContract holds the fake to the contract, in the time of a bubble.
func TestContract(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, openFake(t, Options{})) })
		})
	}
}

// TestContractInRealTime runs the suite as Contract does for any manager.
func TestContractInRealTime(t *testing.T) {
	Contract(t, func(t *testing.T) Env {
		t.Parallel()
		return openFake(t, Options{})
	})
}

// openFake returns a fake that is connected until the test ends.
func openFake(t *testing.T, o Options) Env {
	o.Dirs = append([]string{t.TempDir()}, o.Dirs...)
	f := NewFake(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		f.Close()
	})
	return Env{Manager: f, Reader: f, Other: f.Other(), Dir: o.Dirs[0], Spare: t.TempDir()}
}
