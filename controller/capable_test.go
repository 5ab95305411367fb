package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestWhatANodeCanIsWhatItsHostTells(t *testing.T) {
	var many []string
	for i := range maxCapabilities + 10 {
		many = append(many, fmt.Sprintf("c%03d", i))
	}
	for name, c := range map[string]struct {
		profile   *wire.Profile
		had, want []string
	}{
		"nothing was told":              {nil, []string{"a"}, []string{"a"}},
		"the same":                      {&wire.Profile{Systemd: "257", Capabilities: []string{"a"}}, []string{"a"}, []string{"a"}},
		"more":                          {&wire.Profile{Systemd: "257", Capabilities: []string{"b", "a", "b"}}, []string{"a"}, []string{"a", "b"}},
		"less":                          {&wire.Profile{Systemd: "257"}, []string{"a"}, nil},
		"its manager does not answer":   {&wire.Profile{}, []string{"a"}, []string{"a"}},
		"nor does it, and it tells one": {&wire.Profile{Capabilities: []string{"b"}}, []string{"c", "a"}, []string{"a", "b", "c"}},
		"what is no word":               {&wire.Profile{Systemd: "257", Capabilities: []string{"", "a b", "a\n", strings.Repeat("a", 64), "ok"}}, nil, []string{"ok"}},
		"too many":                      {&wire.Profile{Systemd: "257", Capabilities: many}, nil, many[:maxCapabilities]},
	} {
		t.Run(name, func(t *testing.T) {
			got := capable(c.profile, c.had)
			require.ElementsMatch(t, c.want, got)
			require.IsIncreasing(t, append([]string{""}, got...))
		})
	}
}

// TestATopicIsForTheProcessesThatItIsOf also where the server would let others
// through.
func TestATopicIsForTheProcessesThatItIsOf(t *testing.T) {
	d := &desk{visits: newVisits(), means: means{store: &state.Store{}, log: slog.New(slog.DiscardHandler)}}
	for _, topic := range append(subject.HostTopics(), subject.RuntimeTopics()...) {
		reached := false
		h := d.fromNode(topic, func(context.Context, mesh.Request) ([]byte, error) { reached = true; return nil, nil })
		for _, role := range []identity.Role{identity.Runtime, identity.Tool, identity.Listener, identity.Operator, identity.Viewer, identity.Controller} {
			for _, name := range []string{"ws1", "ws2", ""} {
				reached = false
				_, err := h(t.Context(), mesh.Request{Subject: subject.ForNode("ws1", topic), Caller: identity.Caller{Role: role, Name: name}})
				may := name == "ws1" && role == identity.Runtime && (topic == subject.Tools || topic == subject.Claim || topic == subject.Event)
				require.Equal(t, may, reached, "%s %s %q", topic, role, name)
				require.Equal(t, !may, fault.Is(err, fault.Denied), "%s %s %q", topic, role, name)
			}
		}
	}
	for _, topic := range []subject.Topic{subject.Tools, subject.Claim} {
		h := d.fromNode(topic, func(context.Context, mesh.Request) ([]byte, error) { return nil, nil })
		_, err := h(t.Context(), mesh.Request{Subject: subject.ForNode("ws1", topic), Caller: identity.Caller{Role: identity.Host, Name: "ws1"}})
		require.True(t, fault.Is(err, fault.Denied), "the host of the node too")
	}
}
