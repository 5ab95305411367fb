package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// answer makes a handler of a function from words to words. A message of another
// version than this one's is refused by name; version is nil for messages that
// have none.
func answer[Q, A any](version func(*Q) int, do func(context.Context, identity.Caller, Q) (A, error)) mesh.Handler {
	return func(ctx context.Context, r mesh.Request) ([]byte, error) {
		var q Q
		if err := json.Unmarshal(r.Payload, &q); err != nil {
			return nil, fault.New(fault.Invalid, "read request", r.Subject, err)
		}
		if version != nil {
			if v := version(&q); v != wire.Version {
				return nil, fault.New(fault.Unsupported, "read request", r.Subject,
					fmt.Errorf("the messages are of version %d, this controller reads version %d", v, wire.Version)).
					WithHint("use the same version of stead here as there: stead version")
			}
		}
		a, err := do(ctx, r.Caller, q)
		if err != nil {
			return nil, err
		}
		if done, ok := any(a).(raw); ok {
			return done, nil
		}
		return encode(a)
	}
}

// encode writes JSON in which "<", ">" and "&" of unit files stay as they are: as
// escapes they are six times as long.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fault.New(fault.Internal, "write answer", "", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// fromPeople lets through who may. The server holds everybody to it already; this
// holds also when a permission was opened by mistake.
func fromPeople(c subject.Class, h mesh.Handler) mesh.Handler {
	may := []identity.Role{identity.Operator}
	if c == subject.Read {
		may = append(may, identity.Viewer)
	}
	return func(ctx context.Context, r mesh.Request) ([]byte, error) {
		if !slices.Contains(may, r.Caller.Role) {
			return nil, fault.New(fault.Denied, "call", r.Subject, fmt.Errorf("%s may not", who(r.Caller)))
		}
		return h(ctx, r)
	}
}

// fromNode lets through the processes of the node that the subject names, a few
// calls at a time: one node must not take the places of all others.
func (d *desk) fromNode(t subject.Topic, h mesh.Handler) mesh.Handler {
	may := []identity.Role{identity.Host}
	switch t {
	case subject.Event:
		may = append(may, identity.Runtime)
	case subject.Tools, subject.Claim:
		may = []identity.Role{identity.Runtime}
	}
	return func(ctx context.Context, r mesh.Request) ([]byte, error) {
		a, err := subject.Parse(r.Subject)
		if err != nil {
			return nil, err
		}
		if string(a.Node) != r.Caller.Name || !slices.Contains(may, r.Caller.Role) {
			return nil, fault.New(fault.Denied, "call", r.Subject, fmt.Errorf("%s may not", who(r.Caller)))
		}
		if !d.visits.enter(r.Subject) {
			return nil, fault.New(fault.Unavailable, "call", r.Subject, fmt.Errorf("busy: %d calls of this node run", visitsOfOne))
		}
		defer d.visits.leave(r.Subject)
		if r.Caller.Role == identity.Host {
			d.store.Touch(r.Caller.Name) // a node whose host is down is silent, whatever else runs there
		}
		return h(ctx, r)
	}
}

// who is how a caller stands in records: "operator alice".
func who(c identity.Caller) string { return string(c.Role) + " " + c.Name }

// visitsOfOne is how many calls of one node for one thing run at one time.
const visitsOfOne = 2

// visits counts the calls that run, by node and topic.
type visits struct {
	mu sync.Mutex
	in map[string]int
}

func newVisits() *visits { return &visits{in: map[string]int{}} }

func (v *visits) enter(subject string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.in[subject] >= visitsOfOne {
		return false
	}
	v.in[subject]++
	return true
}

func (v *visits) leave(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.in[subject]--; v.in[subject] == 0 {
		delete(v.in, subject)
	}
}

// sound returns an error when nothing may rest on mesh state.
func sound(unsound error) error {
	if unsound == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(unsound, &f) {
		return f
	}
	return fault.New(fault.Failed, "mesh state", "", unsound)
}
