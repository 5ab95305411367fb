package systemd

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/tool"
	"stead/seats"
)

// rig is the module behind the dispatcher that serves it on a node: arguments and
// replies are held to the schemas of the seat.
type rig struct {
	t testing.TB
	d *tool.Dispatcher
}

func newRig(t testing.TB, o Options) rig {
	m, err := New(o)
	require.NoError(t, err)
	d, err := tool.New(tool.Options{Node: "ws1", Record: func(tool.Record) {}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), CheckReplies: true})
	require.NoError(t, err)
	require.NoError(t, d.Serve(m.Tools()))
	return rig{t, d}
}

// options are those of a module on f.
func (f *fakeNode) options(t testing.TB) Options {
	user := f.user
	if user == nil {
		user = noUser()
	}
	return Options{
		Node: "ws1", Reader: f, User: user, Journal: f, Acts: f, UserFolders: []string{},
		UserJournal: func(uid uint32) Journal { require.Equal(t, user.account.UID, uid); return user },
		Declared:    func() []wire.DeclaredUnit { return f.declared },
	}
}

// rig returns a module on f.
func (f *fakeNode) rig(t testing.TB) rig { return newRig(t, f.options(t)) }

func request(t testing.TB, verb subject.Verb, arguments any) tool.Request {
	payload, err := json.Marshal(arguments)
	require.NoError(t, err)
	return tool.Request{Seat: seats.NodeServiceManager, Verb: verb, Payload: payload, Caller: tool.Caller{Role: "operator", Name: "alice", Logs: true}}
}

// ask calls a verb and reads its reply.
func ask[R any](r rig, verb subject.Verb, arguments any) (R, error) {
	r.t.Helper()
	return askFor[R](r, 20*time.Second, verb, arguments)
}

// askFor is ask of a caller who waits for so long.
func askFor[R any](r rig, patience time.Duration, verb subject.Verb, arguments any) (R, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var reply R
	text, err := r.d.Call(ctx, request(r.t, verb, arguments))
	if err == nil {
		require.NoError(r.t, json.Unmarshal(text, &reply))
	}
	return reply, err
}

func (r rig) units(a seats.UnitsArguments) (seats.UnitsReply, error) {
	r.t.Helper()
	return ask[seats.UnitsReply](r, seats.Units, a)
}

func (r rig) status(a seats.StatusArguments) (seats.StatusReply, error) {
	r.t.Helper()
	return ask[seats.StatusReply](r, seats.Status, a)
}

func (r rig) act(verb subject.Verb, a seats.ActArguments) (seats.ActReply, error) {
	r.t.Helper()
	return ask[seats.ActReply](r, verb, a)
}

func (r rig) link(verb subject.Verb, a seats.EnableArguments) (seats.EnableReply, error) {
	r.t.Helper()
	return ask[seats.EnableReply](r, verb, a)
}

// requireFault holds an error to its class, text and hint.
func requireFault(t testing.TB, err error, class fault.Class, text, hint string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, class, fault.ClassOf(err), "%v", err)
	require.Equal(t, text, err.Error())
	require.Equal(t, hint, fault.HintOf(err))
}

func truth(b bool) *bool { return &b }

func namesIn(lines []seats.UnitLine) []string {
	out := []string{}
	for _, l := range lines {
		out = append(out, l.Name)
	}
	return out
}
