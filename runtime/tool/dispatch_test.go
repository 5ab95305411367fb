package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log collects records.
type log struct {
	mu  sync.Mutex
	all []Record
}

func (l *log) take(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

func (l *log) last() Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[len(l.all)-1]
}

// toolOf is a verb of the seeded seat, served by handle.
func toolOf(verb subject.Verb, handle Handler) Tool {
	m := modules.Catalogue()[0]
	i := slices.IndexFunc(m.Tools, func(t modules.Tool) bool { return t.Name == verb })
	t := Tool{Module: m.Name, Seat: seats.NodeServiceManager, Is: m.Tools[i], Handle: handle}
	if t.Is.Follows {
		t.Stream = func(context.Context, json.RawMessage, Stream) error { return nil }
	}
	return t
}

func dispatcher(t *testing.T, tools ...Tool) (*Dispatcher, *log) {
	l := &log{}
	d, err := New(Options{Node: "ws1", Record: l.take, Logger: slog.New(slog.DiscardHandler), CheckReplies: true})
	require.NoError(t, err)
	require.NoError(t, d.Serve(tools))
	return d, l
}

func callOf(verb subject.Verb, arguments string) Request {
	return Request{Caller: Caller{Account: "OPS", Role: "operator", Name: "alice", User: "UKEY"}, Seat: seats.NodeServiceManager, Verb: verb, Payload: []byte(arguments)}
}

func nobody(context.Context, json.RawMessage) (any, error) {
	return nil, errors.New("it is not to be called")
}

func TestBadArgumentsAreRefusedWithPathRuleAndClosestName(t *testing.T) {
	var all []Tool
	for _, tool := range modules.Catalogue()[0].Tools {
		all = append(all, toolOf(tool.Name, nobody))
	}
	d, l := dispatcher(t, all...)
	for _, c := range []struct {
		name, verb, arguments, text, hint string
	}{
		{"an unknown name", "status", `{"unti":"web"}`, `2 problems: unit: it is required; unti: there is no such argument`, "did you mean unit?"},
		{"another case", "status", `{"unit":"web","Lines":3}`, `Lines: there is no such argument`, "did you mean lines?"},
		{"a far name", "status", `{"unit":"web","everything":3}`, `everything: there is no such argument`, ""},
		{"another type", "status", `{"unit":7}`, `unit: it is a number, and a string is wanted`, ""},
		{"a truth value as text", "units", `{"all":"yes"}`, `all: it is a string, and a boolean is wanted`, ""},
		{"a path", "restart", `{"unit":"../web.service"}`, `unit: "../web.service" is not of the form that is wanted: a unit name, to which .service is added when it is bare, or a glob over loaded units`, ""},
		{"nothing", "stop", ``, `unit: it is required`, ""},
		{"an empty name", "stop", `{"unit":""}`, `unit: 0 characters; at least 1`, ""},
		{"a glob where one unit is wanted", "enable", `{"unit":"web*"}`, `unit: "web*" is not of the form that is wanted: a unit name`, ""},
		{"an unknown scope", "start", `{"unit":"web","scope":"systm"}`, `scope: "systm" is none of system, user`, "did you mean system?"},
		{"within a list", "units", `{"types":["service","servise"]}`, `types[1]: "servise" is none of automount, device, mount,`, "did you mean service?"},
		{"a time", "restart", `{"unit":"web","timeout":"90"}`, `timeout: "90" is not of the form that is wanted: `, ""},
		{"a number that is too large", "status", `{"unit":"web","lines":1001}`, `lines: 1001; at most 1000`, ""},
		{"a number that is negative", "journal", `{"lines":-1}`, `lines: -1; at least 0`, ""},
		{"a fraction", "journal", `{"lines":1.5}`, `lines: it is a number, and an integer is wanted`, ""},
		{"no object", "journal", `["web"]`, `it is an array, and an object is wanted`, ""},
		{"no JSON", "journal", `{"unit":`, `no JSON`, ""},
		{"two documents", "journal", `{} {}`, `no JSON`, ""},
		{"null", "journal", `{"unit":null}`, `unit: it is null, and a string is wanted`, ""},
		{"a follow that is no stream", "journal", `{"follow":true}`, `follow: a call gets one answer; what follows is asked for as a stream`, ""},
		{"too many", "units", `{"patterns":["` + strings.Repeat(`a","`, 300) + `a"]}`, `patterns: 301 of them; at most 256`, ""},
		{"too large", "units", `{"patterns":["` + strings.Repeat("a", MaxArguments) + `"]}`, `at most 65536`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.Call(t.Context(), callOf(subject.Verb(c.verb), c.arguments))
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
			require.ErrorContains(t, err, "arguments: node-service-manager."+c.verb+": ")
			require.ErrorContains(t, err, c.text)
			require.Equal(t, c.hint, fault.HintOf(err))
			require.Equal(t, fault.Invalid, l.last().Class)
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	d, _ := dispatcher(t, toolOf(seats.Journal, nobody))
	many := map[string]int{}
	for i := range 100 {
		many[fmt.Sprintf("argument%d", i)] = i
	}
	text, err := json.Marshal(many)
	require.NoError(t, err)
	_, err = d.Call(t.Context(), callOf(seats.Journal, string(text)))
	require.ErrorContains(t, err, "100 problems: ")
	require.ErrorContains(t, err, "; and 80 more")
	require.Less(t, len(err.Error()), 4<<10)
}

func TestUnknownNamesAreAnswered(t *testing.T) {
	d, l := dispatcher(t, toolOf(seats.Status, nobody), toolOf(seats.Start, nobody))
	for _, c := range []struct{ seat, verb, text, hint string }{
		{"node-service-manager", "statsu", `no verb of seat node-service-manager is called "statsu"`, "did you mean status?"},
		{"node-service-manger", "status", `no seat is called "node-service-manger"`, "did you mean node-service-manager?"},
	} {
		_, err := d.Call(t.Context(), Request{Seat: subject.Seat(c.seat), Verb: subject.Verb(c.verb)})
		require.Equal(t, fault.NotFound, fault.ClassOf(err))
		require.ErrorContains(t, err, c.text)
		require.Equal(t, c.hint, fault.HintOf(err))
		require.Equal(t, fault.NotFound, l.last().Class)
	}
	require.Equal(t, []subject.Verb{"start", "status"}, d.Served(seats.NodeServiceManager))
	require.NoError(t, d.Serve(nil))
	_, err := d.Call(t.Context(), callOf(seats.Status, `{"unit":"a"}`))
	require.EqualError(t, err, `call: node-service-manager.status: no module holds seat "node-service-manager" on node "ws1"`)
}

func TestArgumentsAndRepliesAreTypes(t *testing.T) {
	status := Handle(func(_ context.Context, a seats.StatusArguments) (seats.StatusReply, error) {
		if a.Unit == "bad.service" {
			return seats.StatusReply{}, nil // units is null, and the schema wants a list
		}
		return seats.StatusReply{Units: []seats.UnitStatus{{ID: a.Unit, Names: []string{a.Unit}, Scope: "system", Load: "loaded", Active: "active", Sub: "running"}}}, nil
	})
	journal := toolOf(seats.Journal, Handle(func(context.Context, seats.JournalArguments) (seats.JournalReply, error) {
		return seats.JournalReply{Entries: []json.RawMessage{json.RawMessage(`{"MESSAGE":"<b>"}`)}}, nil
	}))
	d, l := dispatcher(t, toolOf(seats.Status, status), journal)
	text, err := d.Call(t.Context(), callOf(seats.Status, `{"unit":"a.service","lines":0}`))
	require.NoError(t, err)
	var reply seats.StatusReply
	require.NoError(t, json.Unmarshal(text, &reply))
	require.Equal(t, "a.service", reply.Units[0].ID)
	r := l.last()
	require.Empty(t, r.Class)
	e := r.Event()
	sum := sha256.Sum256([]byte(`{"unit":"a.service","lines":0}`))
	require.Equal(t, wire.Event{ID: r.ID, At: r.Began, Source: "runtime", Node: "ws1", Who: "operator alice", Kind: "status", Unit: "a.service", Text: e.Text,
		Call: &wire.CallEvent{Seat: "node-service-manager", Verb: "status", Account: "OPS", User: "UKEY", Arguments: `{"unit":"a.service","lines":0}`,
			Digest: hex.EncodeToString(sum[:]), Result: "done", Took: r.Took.Seconds()}}, e)
	require.Regexp(t, `^done in \d+ ms$`, e.Text)
	_, err = d.Call(t.Context(), callOf(seats.Status, `{"unit":"a"}`))
	require.NoError(t, err)
	require.Equal(t, "a.service", l.last().Event().Unit, "the unit that is meant, by which events are found")

	_, err = d.Call(t.Context(), callOf(seats.Status, `{"unit":"bad.service"}`))
	require.EqualError(t, err, "reply: node-service-manager.status: units: it is null, and an array is wanted")
	text, err = d.Call(t.Context(), callOf(seats.Journal, `{}`))
	require.NoError(t, err)
	require.Equal(t, `{"entries":[{"MESSAGE":"<b>"}]}`, string(text), "byte for byte")
}

func TestErrorsOfToolsAreHandedOnAndRecorded(t *testing.T) {
	refused := fault.New(fault.Refused, "stop", "dbus.service", errors.New("it is protected")).WithHint("leave it")
	d, l := dispatcher(t, toolOf(seats.Stop, func(_ context.Context, a json.RawMessage) (any, error) {
		if strings.Contains(string(a), "dbus") {
			return nil, refused
		}
		return nil, errors.New("a defect")
	}))
	_, err := d.Call(t.Context(), callOf(seats.Stop, `{"unit":"dbus.service"}`))
	require.Equal(t, error(refused), err)
	e := l.last().Event()
	require.Equal(t, "refused", e.Call.Result)
	require.Equal(t, "stop: dbus.service: it is protected", e.Text)
	_, err = d.Call(t.Context(), callOf(seats.Stop, `{"unit":"x.service"}`))
	require.Equal(t, fault.Internal, fault.ClassOf(err))
}

func TestPanicCostsOneCall(t *testing.T) {
	tool := toolOf(seats.Journal, func(context.Context, json.RawMessage) (any, error) { panic("a defect") })
	tool.Stream = func(context.Context, json.RawMessage, Stream) error { panic("a defect") }
	tool.Together = 1
	d, l := dispatcher(t, tool)
	for range 3 {
		_, err := d.Call(t.Context(), callOf(seats.Journal, `{}`))
		require.EqualError(t, err, "call: node-service-manager.journal: the tool panicked")
		require.Equal(t, fault.Internal, l.last().Class)
		err = d.Follow(t.Context(), callOf(seats.Journal, `{"follow":true}`), nil)
		require.EqualError(t, err, "call: node-service-manager.journal: the tool panicked")
		require.True(t, l.last().Streamed)
	}
}

func TestAnswerIsAheadOfTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heeds := toolOf(seats.Start, func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, fault.New(fault.Timeout, "start", "a.service", errors.New("job 7 has not ended"))
		})
		release := make(chan struct{})
		hangs := toolOf(seats.Stop, func(context.Context, json.RawMessage) (any, error) { <-release; return nil, nil })
		hangs.Together = 1
		d, l := dispatcher(t, heeds, hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := d.Call(ctx, callOf(seats.Start, `{"unit":"a"}`))
		require.EqualError(t, err, "start: a.service: job 7 has not ended")
		require.Equal(t, 2750*time.Millisecond, time.Since(began))
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = d.Call(ctx, callOf(seats.Stop, `{"unit":"a"}`))
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.ErrorContains(t, err, "the tool was not done by the deadline; it may still be")
		require.NoError(t, ctx.Err(), "the caller still waits")
		require.Equal(t, fault.Timeout, l.last().Class)

		// Its place is taken for as long as it hangs, so hung ones do not pile up.
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = d.Call(ctx, callOf(seats.Stop, `{"unit":"a"}`))
		require.EqualError(t, err, "call: node-service-manager.stop: busy: 1 calls of it run")
		require.Equal(t, fault.Unavailable, fault.ClassOf(err))

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, fault.Timeout, fault.ClassOf(d.Wait(ctx)))
		close(release)
		require.NoError(t, d.Wait(t.Context()))
		_, err = d.Call(t.Context(), callOf(seats.Start, `{"unit":"a"}`))
		require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	})
}

func TestToolHasItsOwnBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heeds := func(ctx context.Context, _ json.RawMessage) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
		long := toolOf(seats.Start, heeds)
		long.Most = 10 * time.Minute
		d, _ := dispatcher(t, long, toolOf(seats.Stop, heeds))
		for verb, most := range map[subject.Verb]time.Duration{seats.Start: 10 * time.Minute, seats.Stop: DefaultMost} {
			began := time.Now()
			_, err := d.Call(context.Background(), callOf(verb, `{"unit":"a"}`))
			require.Equal(t, fault.Timeout, fault.ClassOf(err))
			require.Equal(t, most, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := d.Call(ctx, callOf(seats.Start, `{"unit":"a"}`))
		require.Equal(t, fault.Canceled, fault.ClassOf(err))
	})
}

// chunks is a stream that collects.
type chunks struct{ sent []string }

func (c *chunks) Limit() int   { return 1 << 10 }
func (c *chunks) Ready() error { return nil }
func (c *chunks) Send(payload []byte, cursor string) error {
	c.sent = append(c.sent, cursor+" "+string(payload))
	return nil
}

func TestStreamIsServedWhereTheVerbFollows(t *testing.T) {
	journal := toolOf(seats.Journal, nobody)
	journal.Stream = Follow(func(ctx context.Context, a seats.JournalArguments, s Stream) error {
		for _, unit := range []string{a.Unit, "end"} {
			if err := s.Send([]byte(unit), "c"); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	d, l := dispatcher(t, journal, toolOf(seats.Status, nobody))
	var c chunks
	require.NoError(t, d.Follow(t.Context(), callOf(seats.Journal, `{"unit":"a","follow":true}`), &c))
	require.Equal(t, []string{"c a", "c end"}, c.sent)
	require.True(t, l.last().Event().Call.Streamed)
	require.ErrorContains(t, d.Follow(t.Context(), callOf(seats.Journal, `{"follow":1}`), &c), "follow: it is a number, and a boolean is wanted")
	require.ErrorContains(t, d.Follow(t.Context(), callOf(seats.Status, `{"unit":"a"}`), &c), "the verb gives one answer and no stream")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, fault.Canceled, fault.ClassOf(d.Follow(ctx, callOf(seats.Journal, `{}`), &c)))
	require.Regexp(t, `^followed for \d+ ms$`, l.last().Event().Text, "that its caller goes is how a stream ends")
}

func TestWhatCannotBeServedChangesNothing(t *testing.T) {
	good := toolOf(seats.Status, nobody)
	d, _ := dispatcher(t, good)
	for name, change := range map[string]func(*Tool){
		"no handler":           func(t *Tool) { t.Handle = nil },
		"no seat":              func(t *Tool) { t.Seat = "" },
		"a streamer":           func(t *Tool) { t.Stream = func(context.Context, json.RawMessage, Stream) error { return nil } },
		"a negative bound":     func(t *Tool) { t.Most = -1 },
		"a schema of no kind":  func(t *Tool) { t.Is.Arguments = []byte(`{"type":"objekt"}`) },
		"a schema from abroad": func(t *Tool) { t.Is.Reply = []byte(`{"$ref":"https://example.org/schema"}`) },
		"a schema from a file": func(t *Tool) { t.Is.Reply = []byte(`{"$ref":"file:///etc/passwd"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			bad := toolOf(seats.Status, nobody)
			change(&bad)
			require.Error(t, d.Serve([]Tool{toolOf(seats.Start, nobody), bad}))
			require.Equal(t, []subject.Verb{"status"}, d.Served(seats.NodeServiceManager))
		})
	}
	second := toolOf(seats.Status, nobody)
	second.Module = "other"
	require.EqualError(t, d.Serve([]Tool{good, second}), `serve: node-service-manager.status: module "systemd" serves it, and module "other" does`)
	_, err := New(Options{Node: "ws1"})
	require.Error(t, err)
}
