package server

import (
	"bytes"
	"context"
	"encoding/json"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/runtime/escalate"
	"stead/runtime/tool"
)

// dispatcher answers calls: tool.Dispatcher.
type dispatcher interface {
	Call(ctx context.Context, r tool.Request) ([]byte, error)
	Follow(ctx context.Context, r tool.Request, s tool.Stream) error
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
			Timeout: t.Most, Together: t.Together, MaxRequest: tool.MaxArguments, Handler: handler(t, d), Metadata: described(t),
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
		return d.Call(escalate.WithFor(ctx, q.Caller.String()), q)
	}
}

func streamer(t tool.Tool, d dispatcher) mesh.Streamer {
	return func(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
		return d.Follow(ctx, request(t, r), s)
	}
}

func request(t tool.Tool, r mesh.Request) tool.Request {
	return tool.Request{
		Caller: tool.Caller{Account: string(r.Caller.Account), Role: string(r.Caller.Role), Name: r.Caller.Name, User: r.Caller.User},
		Seat:   t.Seat, Verb: t.Is.Name, Payload: r.Payload,
	}
}
