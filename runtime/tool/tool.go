package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/modules"
)

// Caller is who calls, as the server of the mesh states it.
type Caller struct {
	Account string
	Role    string
	Name    string
	User    string // public key
	Logs    bool   // may read the journal, and so be shown lines of it by other verbs
}

// String is how people are named everywhere: "operator alice".
func (c Caller) String() string { return c.Role + " " + c.Name }

type callerKey struct{}

// MayReadLogs reports whether the caller of a tool's context may be shown lines of
// the journal.
func MayReadLogs(ctx context.Context) bool {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c.Logs
}

// Request is one call as it comes from the mesh.
type Request struct {
	Caller  Caller
	Seat    subject.Seat
	Verb    subject.Verb
	Payload []byte // the arguments, a JSON object; nothing is the empty one
}

// Handler answers one call whose arguments passed the schema. Ctx ends ahead of
// the caller's deadline, so that an answer still reaches it. The answer is
// written as JSON: as its method JSON() []byte has it when there is one.
type Handler func(ctx context.Context, arguments json.RawMessage) (any, error)

// Streamer answers a call with a stream.
type Streamer func(ctx context.Context, arguments json.RawMessage, s Stream) error

// Stream is the tool's end of a stream: mesh.Stream.
type Stream interface {
	Limit() int                               // of a chunk, in bytes
	Ready() error                             // waits until the caller has room for a chunk
	Send(payload []byte, cursor string) error // waits likewise
}

// Tool is a callable of a module at work.
type Tool struct {
	Module string
	Seat   subject.Seat // whose verb it serves
	Is     modules.Tool
	Handle Handler
	Stream Streamer // of a tool that follows

	Most     time.Duration // of one call; 0 is DefaultMost. A caller with less patience has less
	Together int           // calls that run at one time; further ones wait; 0 is 16
}

// DefaultMost is how long a call may take when its tool does not say.
const DefaultMost = 10 * time.Second

// Handle makes a Handler of a function of the arguments as a type.
func Handle[A, R any](f func(context.Context, A) (R, error)) Handler {
	return func(ctx context.Context, arguments json.RawMessage) (any, error) {
		a, err := decode[A](arguments)
		if err != nil {
			return nil, err
		}
		return f(ctx, a)
	}
}

// Follow makes a Streamer of a function of the arguments as a type.
func Follow[A any](f func(context.Context, A, Stream) error) Streamer {
	return func(ctx context.Context, arguments json.RawMessage, s Stream) error {
		a, err := decode[A](arguments)
		if err != nil {
			return err
		}
		return f(ctx, a, s)
	}
}

func decode[A any](arguments json.RawMessage) (A, error) {
	var a A
	if err := json.Unmarshal(arguments, &a); err != nil {
		return a, fault.New(fault.Invalid, "arguments", "", err)
	}
	return a, nil
}

// check returns an error of class internal when t cannot be served.
func (t Tool) check() error {
	bad := func(why string) error {
		return fault.New(fault.Internal, "serve", fmt.Sprintf("%s.%s", t.Seat, t.Is.Name), errors.New(why))
	}
	switch {
	case t.Module == "" || t.Seat == "" || t.Is.Name == "":
		return bad("module, seat and name are required")
	case t.Handle == nil:
		return bad("it has no handler")
	case t.Is.Follows != (t.Stream != nil):
		return bad("a tool follows when it has a streamer, and only then")
	case t.Most < 0 || t.Together < 0:
		return bad("a bound is negative")
	}
	return nil
}
