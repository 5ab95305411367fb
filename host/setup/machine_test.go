package setup

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestStartWaitsAndSaysHowItWent(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	ctx := t.Context()
	m, err := Dial(ctx, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer m.Close()
	path, err := m.Path(ctx)
	require.NoError(t, err)
	require.Contains(t, path, Dir)

	good := Unit{Name: "stead-good.service", Text: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n", Wanted: "multi-user.target"}
	bad := Unit{Name: "stead-bad.service", Text: "[Service]\nType=oneshot\nExecStart=/bin/false\n", Wanted: "multi-user.target"}
	for _, u := range []Unit{good, bad} {
		_, err := Put(Dir, path, u)
		require.NoError(t, err)
	}
	require.NoError(t, m.Reload(ctx))
	require.NoError(t, m.Start(ctx, good.Name, false))
	require.NoError(t, m.Start(ctx, good.Name, false), "it runs already")
	require.NoError(t, m.Start(ctx, good.Name, true))
	err = m.Start(ctx, bad.Name, false)
	require.ErrorContains(t, err, `stead-bad.service: its job ended as "failed"; it is failed`)
	require.Error(t, m.Start(ctx, "stead-none.service", false))
}
