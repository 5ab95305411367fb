package lab

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestANodeWaitsUntilThereIsRoomForIt(t *testing.T) {
	looks := 0
	require.NoError(t, room(t.Context(), func() (int, int, error) {
		looks++
		return 130 - 10*looks, 128, nil
	}))
	require.Equal(t, 3, looks, "24 of 128 must be free, and are at 100")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, room(ctx, func() (int, int, error) { return 120, 128, nil }), "120 of 128 inotify instances are in use")
}

func TestInotifyInstancesAreCounted(t *testing.T) {
	if !Inside(t, Options{}) { // where no others come and go
		return
	}
	before, limit, err := instances()
	require.NoError(t, err)
	require.Positive(t, limit)
	require.Positive(t, before, "systemd has some")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	after, _, err := instances()
	require.NoError(t, err)
	require.Equal(t, before+1, after)
}
