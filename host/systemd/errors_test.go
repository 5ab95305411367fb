package systemd

import (
	"context"
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestErrorsKeepTheManagersWordsAndHaveAClass(t *testing.T) {
	for name, want := range map[string]fault.Class{
		"org.freedesktop.systemd1.NoSuchUnit":           fault.NotFound,
		"org.freedesktop.systemd1.UnitMasked":           fault.Refused,
		"org.freedesktop.systemd1.OnlyByDependency":     fault.Refused,
		"org.freedesktop.systemd1.JobTypeNotApplicable": fault.Unsupported,
		"org.freedesktop.systemd1.BadUnitSetting":       fault.Failed,
		"org.freedesktop.systemd1.LoadFailed":           fault.Failed,
		"org.freedesktop.systemd1.ShuttingDown":         fault.Unavailable,
		"org.freedesktop.DBus.Error.AccessDenied":       fault.Denied,
		"org.freedesktop.DBus.Error.NoReply":            fault.Timeout,
		"org.freedesktop.DBus.Error.InvalidArgs":        fault.Invalid,
		"org.example.Unheard":                           fault.Failed,
	} {
		err := acting("start", "x.service", fromBus(dbus.Error{Name: name, Body: []any{"The words."}}, context.Background()))
		require.Equal(t, want, fault.ClassOf(err), name)
		require.EqualError(t, err, "start: x.service: The words.")
	}
}

func TestErrorsWithoutAnAnswer(t *testing.T) {
	live := context.Background()
	gone, cancel := context.WithCancel(live)
	cancel()
	for _, c := range []struct {
		name        string
		err         error
		look, doing fault.Class
	}{
		{"none", nil, "", ""},
		{"not sent", fromBus(dbus.ErrClosed, live), fault.Unavailable, fault.Unavailable},
		{"lost", fromBus(errors.New("EOF"), live), fault.Unavailable, fault.Timeout},
		{"hung", errHung, fault.Timeout, fault.Timeout},
		{"canceled", fromBus(errors.New("any"), gone), fault.Canceled, fault.Canceled},
		{"no words", fromBus(dbus.Error{Name: "a.b"}, live), fault.Failed, fault.Failed},
		{"ours already", fault.New(fault.Denied, "", "", nil), fault.Denied, fault.Denied},
		{"unheard of", errors.New("x"), fault.Internal, fault.Internal},
	} {
		require.Equal(t, c.look, fault.ClassOf(looking("observe", "", c.err)), c.name)
		require.Equal(t, c.doing, fault.ClassOf(acting("start", "", c.err)), c.name)
	}
}
