package disk

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// F118: a unit file is made in another folder and moved into place, and has the
// SELinux label of that folder.
// stead: makes it in the folder where it is to stand, so that it gets the label of
// that, and when access is denied to root says that its label may be the reason.
func TestF118AFileIsMadeInTheFolderWhereItStands(t *testing.T) {
	w := newWorld(t, nil)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fd)) }()
	_, err = unix.InotifyAddWatch(fd, w.at(etc), unix.IN_CREATE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO)
	require.NoError(t, err)
	w.apply(put(etc+"/web.service", "x"))

	type event struct {
		mask, cookie uint32
		name         string
	}
	var events []event
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	require.NoError(t, err)
	for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		size := binary.NativeEndian.Uint32(b[12:])
		name := b[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size]
		events = append(events, event{binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:]), string(bytes.TrimRight(name, "\x00"))})
		b = b[unix.SizeofInotifyEvent+size:]
	}
	require.Len(t, events, 3)
	made, from, to := events[0], events[1], events[2]
	require.EqualValues(t, unix.IN_CREATE, made.mask)
	require.True(t, temporary(made.name), made.name)
	require.Equal(t, event{unix.IN_MOVED_FROM, from.cookie, made.name}, from)
	require.Equal(t, event{unix.IN_MOVED_TO, from.cookie, "web.service"}, to)

	denied := failure("write", etc+"/web.service", unix.EACCES)
	require.ErrorContains(t, denied, "permission denied")
	require.Contains(t, fault.HintOf(denied), "label")
	require.Contains(t, fault.HintOf(denied), etc+"/web.service")
	require.Empty(t, fault.HintOf(failure("write", etc+"/web.service", unix.ENOSPC)))
}
