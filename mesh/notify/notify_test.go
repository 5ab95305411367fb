package notify

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listen is a service manager that asked to be told, and what it is told.
func listen(t *testing.T) (said func() string) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	t.Setenv("NOTIFY_SOCKET", at)
	return func() string {
		b := make([]byte, 100)
		n, err := l.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	said := listen(t)
	Ready()
	require.Equal(t, "READY=1", said())
	Status("2 declarations are in force")
	require.Equal(t, "STATUS=2 declarations are in force", said())
	Stopping()
	require.Equal(t, "STOPPING=1", said())
}

func TestWhoDoesNotAnswerIsNotFed(t *testing.T) {
	said := listen(t)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("WATCHDOG_USEC", "30000")
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	done := make(chan error, 1)
	go func() {
		done <- Watchdog(ctx, func(context.Context) error {
			if asked.Add(1) < 4 {
				return errors.New("it hangs")
			}
			return nil
		})
	}()
	require.Equal(t, "WATCHDOG=1", said())
	require.GreaterOrEqual(t, asked.Load(), int32(4), "it was fed while it hung")
	cancel()
	require.NoError(t, <-done)
}

func TestWithoutAWatchdogNothingIsFed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.NoError(t, Watchdog(ctx, func(context.Context) error { t.Error("it was asked"); return nil }))
}
