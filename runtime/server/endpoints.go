package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/runtime/escalate"
	"stead/runtime/tool"
	"stead/seats"
)

// dispatcher answers calls: tool.Dispatcher.
type dispatcher interface {
	Call(ctx context.Context, r tool.Request) ([]byte, error)
	Follow(ctx context.Context, r tool.Request, s tool.Stream) error
	Turned(r tool.Request, streamed bool, err error)
}

// endpoints are those of tools: for each a subject of the node and one of all
// nodes. A stream is of one node. Viewers read, operators act too: the server of
// the mesh sees to it, and the endpoints answer nobody else.
func endpoints(node subject.Node, tools []tool.Tool, d dispatcher) []mesh.Endpoint {
	var all []mesh.Endpoint
	for _, t := range tools {
		name := string(t.Seat) + "_" + string(t.Is.Name)
		e := mesh.Endpoint{
			Name: name, Subject: subject.ForVerb(t.Is.Class, node, t.Seat, t.Is.Name), Accounts: callers(t.Is.Class),
			Timeout: t.Most, Together: t.Together, Handler: handler(t, d), Metadata: described(t),
			Turned: func(r mesh.Request, streamed bool, err error) { d.Turned(request(t, r), streamed, err) },
		}
		if e.Timeout == 0 {
			e.Timeout = tool.DefaultMost
		}
		each := e
		each.Name, each.Subject = name+"_all", subject.ForVerb(t.Is.Class, subject.All, t.Seat, t.Is.Name)
		each.Metadata = map[string]string{"meaning": t.Is.Meaning + ", on every node that serves it", "module": t.Module, "schemas": "those of " + name}
		if t.Is.Follows {
			e.Stream = streamer(t, d)
		}
		all = append(all, e, each)
	}
	return all
}

func callers(c subject.Class) []identity.Account {
	if c == subject.Read {
		return []identity.Account{identity.OPS, identity.VIEW}
	}
	return []identity.Account{identity.OPS}
}

// described is what service discovery says of a tool besides its subject.
func described(t tool.Tool) map[string]string {
	return map[string]string{"meaning": t.Is.Meaning, "module": t.Module, "arguments": compact(t.Is.Arguments), "reply": compact(t.Is.Reply)}
}

// compact is a schema without the blanks in which it is kept.
func compact(schema json.RawMessage) string {
	var text bytes.Buffer
	if json.Compact(&text, schema) != nil {
		return string(schema)
	}
	return text.String()
}

func handler(t tool.Tool, d dispatcher) mesh.Handler {
	return func(ctx context.Context, r mesh.Request) ([]byte, error) {
		q := request(t, r)
		return d.Call(escalate.WithCall(escalate.WithFor(ctx, q.Caller.String()), named(r)), q)
	}
}

// named is the call as the helper knows it: names of calls are their caller's own.
func named(r mesh.Request) escalate.Call {
	if r.Call == "" {
		return escalate.Call{}
	}
	sum := sha256.Sum256([]byte(r.Caller.User + "\n" + r.Call))
	return escalate.Call{ID: hex.EncodeToString(sum[:16]), Asked: r.Asked}
}

func streamer(t tool.Tool, d dispatcher) mesh.Streamer {
	return func(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
		return d.Follow(ctx, request(t, r), s)
	}
}

func request(t tool.Tool, r mesh.Request) tool.Request {
	who := tool.Caller{Account: string(r.Caller.Account), Role: string(r.Caller.Role), Name: r.Caller.Name, User: r.Caller.User}
	who.Logs = mayReadLogs(r.Caller.Role)
	return tool.Request{Caller: who, Seat: t.Seat, Verb: t.Is.Name, Payload: r.Payload}
}

// mayReadLogs is whether the server lets a role ask for the journal.
func mayReadLogs(role identity.Role) bool {
	row, known := identity.Permissions().Role(role)
	return known && !slices.Contains(row.Deny, subject.VerbPattern(subject.Read, subject.Any, string(seats.Journal)))
}
