package systemd

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/systemd/systemdtest"
	"stead/test/lab"
)

// TestContract holds a Manager in front of a real systemd to the contract.
func TestContract(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	systemdtest.Contract(t, openReal)
}

func openReal(t *testing.T) systemdtest.Env {
	env := systemdtest.Env{
		Manager: connect(t, Options{}),
		Reader:  reading(t, ReaderOptions{}),
		Other:   other{Manager: connect(t, Options{})},
		Dir:     "/etc/systemd/system",
		Spare:   t.TempDir(),
	}
	return env
}

// connect returns a connected Manager that runs until the test ends.
func connect(t *testing.T, o Options) *Manager {
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	m, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.Eventually(t, m.Connected, 10*time.Second, time.Millisecond)
	return m
}

// other is a second Manager, as somebody else who acts on the node.
type other struct{ *Manager }

func (o other) Kill(pid uint32) error { return syscall.Kill(int(pid), syscall.SIGKILL) }

// Cut makes the manager execute itself anew: it answers nobody, and closes every
// private connection.
func (o other) Cut(ctx context.Context) error {
	l, err := o.using(ctx, "reexecute")
	if err != nil {
		return err
	}
	l.one(ctx, onManager("Reexecute"))
	return nil
}
