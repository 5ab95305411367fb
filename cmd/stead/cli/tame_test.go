package cli

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingThatATerminalObeysIsShown(t *testing.T) {
	var b bytes.Buffer
	p := &tame{Writer: &b}
	for _, part := range []string{"one\ttwo\n", "\x1b[31mred\a\r", "\u009b2J \x7f", "gr\xc3", "\xbc\xc3", "\xbcn", "\xff \xe2\x80"} {
		n, err := p.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, "one\ttwo\n?[31mred???2J ?gr\u00fc\u00fcn\ufffd ", b.String())
	require.Equal(t, &b, past(screen{Writer: p}))
}

func TestAnErrorIsShownPlainly(t *testing.T) {
	var out, errs bytes.Buffer
	code := Main(context.Background(), Options{Args: []string{"host", "status", "\x1b[2J", "--socket", "/nonexistent/\x1b[31m"}, Out: &out, Err: &errs, Width: 80})
	require.Equal(t, ExitFailed, code)
	require.NotContains(t, errs.String(), "\x1b")
	require.Contains(t, errs.String(), "?[31m")
}
