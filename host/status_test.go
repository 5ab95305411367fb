package host

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
)

func serve(t *testing.T, st Status) string {
	path := filepath.Join(t.TempDir(), "run", "host.sock")
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := listen(ctx, path)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- serveStatus(ctx, listener, func() Status { return st }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return path
}

func TestStatusTravelsWhole(t *testing.T) {
	want := Status{Node: "web1", Started: time.Now().UTC().Round(0), Source: Source{Folder: "/etc/stead/declarations"},
		Reports: []*report.Report{{Name: "web", Unit: "web.service", Outcome: report.Failed, Reason: report.Exited, Since: time.Now().UTC().Round(0)}}}
	got, err := ReadStatus(t.Context(), serve(t, want))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestTheSocketIsForRootAlone(t *testing.T) {
	st, err := os.Stat(serve(t, Status{}))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
}

func TestASocketThatAnswersIsNotTaken(t *testing.T) {
	path := serve(t, Status{})
	_, err := listen(t.Context(), path)
	require.True(t, fault.Is(err, fault.Conflict), err)
	require.ErrorContains(t, err, "another host answers there")
}

func TestASocketLeftBehindIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.sock")
	old, err := net.Listen("unix", path)
	require.NoError(t, err)
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, old.Close())
	next, err := listen(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, next.Close())
}

func TestAHostThatIsNotThereIsNamedWithTheCure(t *testing.T) {
	_, err := ReadStatus(t.Context(), filepath.Join(t.TempDir(), "host.sock"))
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Unavailable, f.Class)
	require.Contains(t, f.Hint, "systemctl start stead-host")
}

func TestBootIDIsStable(t *testing.T) {
	a, err := bootID()
	require.NoError(t, err)
	b, err := bootID()
	require.NoError(t, err)
	require.Equal(t, a, b)
	require.Regexp(t, `^[0-9a-f-]{36}\.[0-9]+$`, a)
}

// Only a socket that a dead host left behind is taken away.
func TestWhatIsNoSocketIsNotTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := listen(t.Context(), path)
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}
