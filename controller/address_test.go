package controller

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
)

func TestHostsAreNamesAndAddresses(t *testing.T) {
	got, err := hosts([]string{"mesh.example.org", "10.0.0.1", "::1", "10.0.0.1", "WS1"})
	require.NoError(t, err)
	require.Equal(t, []string{"mesh.example.org", "10.0.0.1", "::1", "WS1"}, got)
	for _, bad := range []string{"", "*", "a b", "mesh.example.org:4222", "tls://a", "-a", "[::1]", "a..b"} {
		_, err := hosts([]string{bad})
		require.True(t, fault.Is(err, fault.Invalid), "%q", bad)
	}
	all, err := hosts(nil)
	require.NoError(t, err)
	require.Contains(t, all, loopback)
	for _, host := range all {
		if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() {
			require.True(t, ip.IsGlobalUnicast(), host)
		}
	}
}

func TestTheControllerReachesItsOwnServer(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:4222": loopback, "[::]:4222": loopback, ":4222": loopback, "10.0.0.1:0": "10.0.0.1", "[fd00::1]:4222": "fd00::1", "nonsense": loopback,
	} {
		require.Equal(t, want, dialHost(listen), listen)
	}
	require.NoError(t, subject.CheckLabel("controller", machineName()))
}

func TestOptionsAreChecked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, o := range map[string]Options{
		"no folder": {Logger: log},
		"no logger": {Dir: t.TempDir()},
		"a name":    {Dir: t.TempDir(), Logger: log, Name: "*"},
		"a host":    {Dir: t.TempDir(), Logger: log, Hosts: []string{"a b"}},
	} {
		_, err := New(o)
		require.Error(t, err, name)
	}
	c, err := New(Options{Dir: "mesh", Logger: log})
	require.NoError(t, err)
	require.Equal(t, DefaultListen, c.o.Listen)
	require.NotEqual(t, "mesh", c.o.Dir)
	for _, listen := range []string{"nonsense", "127.0.0.1:99999", "127.0.0.1:nats", "0.0.0.0", ":", "a b:4222", "0.0.0.0 --begin-epoch:4222", "%i:4222"} {
		_, err := New(Options{Dir: t.TempDir(), Logger: log, Listen: listen})
		require.True(t, fault.Is(err, fault.Invalid), listen)
	}
	for _, listen := range []string{":4222", "[::]:4222", "mesh.example.org:0"} {
		_, err := New(Options{Dir: t.TempDir(), Logger: log, Listen: listen})
		require.NoError(t, err, listen)
	}
}

func TestPartsEndInReverseOrderAndTogether(t *testing.T) {
	var ended []string
	part := func(name string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			ended = append(ended, name)
			return err
		}
	}
	r := newRun(t.Context(), slog.New(slog.DiscardHandler))
	r.begin("first", part("first", nil))
	r.after(func() { ended = append(ended, "between") })
	r.begin("last", part("last", context.Canceled))
	r.stop(nil)
	require.NoError(t, r.end(nil))
	require.Equal(t, []string{"last", "between", "first"}, ended)

	ended = nil
	broken := errors.New("broken")
	r = newRun(t.Context(), slog.New(slog.DiscardHandler))
	r.begin("first", part("first", nil))
	r.begin("breaks", func(context.Context) error { return broken })
	<-r.ctx.Done()
	require.ErrorIs(t, r.end(nil), broken)
	require.Equal(t, []string{"first"}, ended)

	r = newRun(t.Context(), slog.New(slog.DiscardHandler))
	r.begin("ends", func(context.Context) error { return nil })
	<-r.ctx.Done()
	require.True(t, fault.Is(r.end(nil), fault.Internal))
}
