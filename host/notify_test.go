package host

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The service manager shows what was said last, so it is said anew whenever the
// number changes.
func TestTheServiceManagerIsToldHowManyAreInForce(t *testing.T) {
	at := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", at)
	said := func() string {
		b := make([]byte, 100)
		n, err := l.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	d.turn()
	require.Equal(t, "STATUS=1 declaration is in force", said())
	d.turn()
	d.write("b.yaml", declared("b", "running"))
	d.turn()
	require.Equal(t, "STATUS=2 declarations are in force", said())
}
