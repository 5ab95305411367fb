package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"stead/cmd/stead/contexts"
	"stead/host/fault"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

func TestWaitTakesATimeOrNone(t *testing.T) {
	for line, want := range map[string]string{
		"apply --wait":             "apply --wait",
		"apply --wait 2m -f x":     "apply --wait=2m -f x",
		"apply --wait -f x":        "apply --wait -f x",
		"withdraw --wait web":      "withdraw --wait web",
		"withdraw -- --wait 2m":    "withdraw -- --wait 2m",
		"host status --wait soon":  "host status --wait soon",
		"host status --wait=1s 2m": "host status --wait=1s 2m",
	} {
		require.Equal(t, want, strings.Join(joinWait(strings.Fields(line)), " "))
	}
}

func TestMomentsAreWrittenAsPeopleDo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "11:30": now.Add(-30 * time.Minute), "11:30:15": now.Add(-30*time.Minute + 15*time.Second),
		"2026-02-28": time.Date(2026, 2, 28, 0, 0, 0, 0, time.Local), "2026-02-28 07:05": time.Date(2026, 2, 28, 7, 5, 0, 0, time.Local),
		"2026-02-28T07:05:00Z": time.Date(2026, 2, 28, 7, 5, 0, 0, time.UTC),
	} {
		got, err := moment(text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for _, text := range []string{"", "yesterday", "-2h", "25:00", "2026-13-01"} {
		_, err := moment(text, now)
		require.Error(t, err, text)
	}
}

func TestLabellingIsReadWholeOrNotAtAll(t *testing.T) {
	set, unset, err := labelling([]string{"role=web", "zone=", "old-", "a-b-"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"role": "web", "zone": ""}, set)
	require.Equal(t, []string{"a-b", "old"}, unset)
	for _, bad := range [][]string{{"role"}, {"=web"}, {"-"}, {"a=1", "a=2"}, {"a=1", "a-"}, {""}} {
		_, _, err := labelling(bad)
		require.Error(t, err, bad)
	}
}

func TestErrorsOfTheMeshNameTheWay(t *testing.T) {
	l := &link{at: contexts.Context{Name: "home", Credentials: identity.Credentials{Role: identity.Operator, Name: "alice", URLs: []string{"tls://mesh:4222"}}}}
	why := errors.New("why")
	for class, want := range map[fault.Class]string{
		fault.Denied:      `apply: context "home" may not: why`,
		fault.Unavailable: "apply: no controller answers at tls://mesh:4222",
		fault.Timeout:     "apply: no answer in time from the controller at tls://mesh:4222",
		fault.Unsupported: "call: x: why",
		fault.Failed:      "call: x: why",
	} {
		err := l.explain("apply", fault.New(class, "call", "x", why))
		require.EqualError(t, err, want)
		require.Equal(t, class, fault.ClassOf(err))
	}
	require.NoError(t, l.explain("apply", nil))
	cured := fault.New(fault.Unsupported, "apply", "", why).WithHint("upgrade stead")
	require.Equal(t, error(cured), l.explain("apply", cured), "the cure that the controller knows stays")
	l.at.Credentials.Role = identity.Viewer
	require.Contains(t, l.explain("apply", fault.New(fault.Denied, "", "", why)).Error(), "is a viewer's")
}

func TestAnAnswerThatCannotBeTrustedIsAnError(t *testing.T) {
	err := missing(wire.GetRequest{Kind: wire.Nodes}, wire.GetReply{Trouble: "3 keys vanished"})
	require.EqualError(t, err, "mesh state cannot be trusted: 3 keys vanished")
	require.Contains(t, fault.HintOf(err), "--begin-epoch")

	err = missing(wire.GetRequest{Kind: wire.Reports, Names: []string{"web"}, Nodes: []string{"wbe1"}}, wire.GetReply{Missing: []string{"wbe1"}, Closest: map[string]string{"wbe1": "web1"}})
	require.EqualError(t, err, `no node is called "wbe1"`)
	require.Contains(t, fault.HintOf(err), "did you mean web1?")
	err = missing(wire.GetRequest{Kind: wire.Declarations, Names: []string{"a", "b"}}, wire.GetReply{Missing: []string{"a", "b"}})
	require.EqualError(t, err, "not known: a, b")
}

// paging answers each question with the next of its pages.
type paging struct {
	pages []any
	after func()
	asked []string
}

func (p *paging) Call(_ context.Context, _ string, payload []byte) ([]byte, error) {
	p.asked = append(p.asked, string(payload))
	now := p.pages[0]
	if p.pages = p.pages[1:]; len(p.pages) == 0 {
		p.pages = []any{now}
		p.after()
	}
	if err, ok := now.(error); ok {
		return nil, err
	}
	return json.Marshal(now)
}

func TestEventsAreFollowedUntilTheCommandIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	page := func(kind string, next uint64) wire.EventsReply {
		return wire.EventsReply{Next: next, Events: []wire.Event{{At: at(0), Source: "host", Node: "web1", Unit: "web.service", Kind: kind}}}
	}
	p := &paging{after: cancel, pages: []any{page("started", 7), wire.EventsReply{Next: 7}, page("stopped", 9), wire.EventsReply{Next: 9}}}
	var out, log bytes.Buffer
	c := &cobra.Command{}
	c.SetOut(&out)
	c.SetErr(&log)
	r := &reach{o: Options{Now: screenTime}}
	require.NoError(t, r.events(ctx, c, &link{Client: client.New(p)}, wire.EventsRequest{Last: 50}, eventsOptions{follow: true}))
	require.Equal(t, "12:00:00   host   web1   web.service   started\n12:00:00   host   web1   web.service   stopped\n", out.String())
	require.Contains(t, p.asked[1], `"after":7,"wait":`)
	require.Empty(t, log.String())
}

func TestEventsAreReadPageByPage(t *testing.T) {
	event := wire.Event{At: at(0), Source: "controller", Kind: "apply", Declaration: "web"}
	p := &paging{after: func() {}, pages: []any{wire.EventsReply{Events: []wire.Event{event}, Next: 3, More: true}, wire.EventsReply{Events: []wire.Event{event}, Next: 5}}}
	var out bytes.Buffer
	c := &cobra.Command{}
	c.SetOut(&out)
	r := &reach{o: Options{Now: screenTime}, timeout: waitTime(time.Second)}
	require.NoError(t, r.events(t.Context(), c, &link{Client: client.New(p)}, wire.EventsRequest{Last: 50}, eventsOptions{output: "json"}))
	var all []wire.Event
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	require.Len(t, all, 2)
	require.Contains(t, p.asked[1], `"after":3`)
}
