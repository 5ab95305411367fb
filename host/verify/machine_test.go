package verify

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

// The verifier starts a manager of its own, which would tell the host's manager
// that the host is ready, stopping, and so on.
func TestTheVerifierDoesNotSpeakForTheHost(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	const file = "/etc/systemd/system/odd.service"
	require.NoError(t, os.WriteFile(file, []byte("[Service]\nExecStart=/no/such\n"), 0o644))
	require.NotEmpty(t, Run(t.Context(), map[unit.Name]string{"odd.service": file})["odd.service"])

	require.NoError(t, l.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	b := make([]byte, 4096)
	n, err := l.Read(b)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it said %q", b[:n])
}

// The verifier of systemd 252 takes no instance that has a file of its own and no
// template, and then says nothing of the units beside it.
func TestAUnitThatIsNotTakenInSilencesNoOther(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	files := make(map[unit.Name]string)
	for _, n := range []unit.Name{"alone@x.service", "bad.service", "good.service", "worse.service"} {
		files[n] = "/etc/systemd/system/" + string(n)
		text := "[Service]\nExecStart=/bin/true\n"
		if n == "bad.service" || n == "worse.service" {
			text += "Nonsense=1\n"
		}
		require.NoError(t, os.WriteFile(files[n], []byte(text), 0o644))
	}
	out := Run(t.Context(), files)
	require.Contains(t, out["bad.service"][0], "Nonsense")
	require.Contains(t, out["worse.service"][0], "Nonsense")
	require.Empty(t, out["good.service"])
}
