// Package client is how people's programs ask controllers: one method for each
// operation, typed by mesh/wire.
//
// It owns what asking takes: requests that are larger than a message go in
// parts, answers that are larger come in pages, and what was not answered is
// asked again until the context ends. Every operation is safe to repeat: an
// apply that was done and whose answer was lost finds everything as it wants it.
// What operations mean is decided by controllers.
//
// A method without a deadline in its context takes half a minute at most. Errors
// are *fault.Error: those that the controller answered with, as they are;
// unavailable when no controller was reached, timeout when one may have done it
// and nobody knows. A Client may be used by any number of goroutines.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

const (
	// patience is how long a method without a deadline asks.
	patience = 30 * time.Second
	// readFor and writeFor are how long one answer is waited for, and largeFor that
	// of a large request: reading 16 MiB of declarations takes seconds.
	readFor  = 10 * time.Second
	writeFor = 30 * time.Second
	largeFor = 2 * time.Minute
	// waitFor is how long a page of events that follows is waited for.
	waitFor = 20 * time.Second
	// maxNames is how many names one question about progress has: a viewer may
	// send 64 KiB.
	maxNames = 200
)

// caller is a connection to the mesh, of an operator or a viewer.
type caller interface {
	Call(ctx context.Context, subject string, payload []byte) ([]byte, error)
}

// Client asks the controllers of one mesh.
type Client struct {
	conn caller
}

// New returns a client on a connection, which stays the caller's to close.
func New(conn caller) *Client { return &Client{conn} }

// Apply declares what r.Files say. A reply that holds Problems, Conflicts or Sure
// changed nothing.
func (c *Client) Apply(ctx context.Context, r wire.ApplyRequest) (wire.ChangeReply, error) {
	for _, f := range r.Files {
		// JSON would put another character in place of such a byte.
		if !utf8.ValidString(f.Text) || !utf8.ValidString(f.Name) {
			return wire.ChangeReply{}, fault.New(fault.Invalid, "apply", fmt.Sprintf("%q", f.Name), errors.New("the file is no UTF-8 text")).
				WithHint("iconv -t UTF-8 makes one of it")
		}
	}
	r.Wire = wire.Version
	return ask[wire.ChangeReply](ctx, c, question{subject.Write, wire.Apply, writeFor, r})
}

// Withdraw withdraws declarations by name, as Apply declares them.
func (c *Client) Withdraw(ctx context.Context, r wire.WithdrawRequest) (wire.ChangeReply, error) {
	r.Wire = wire.Version
	return ask[wire.ChangeReply](ctx, c, question{subject.Write, wire.Withdraw, writeFor, r})
}

// Settings changes what people set of a node.
func (c *Client) Settings(ctx context.Context, r wire.SettingsRequest) (wire.ChangeReply, error) {
	r.Wire = wire.Version
	return ask[wire.ChangeReply](ctx, c, question{subject.Write, wire.Settings, writeFor, r})
}

// Pause pauses one unit of a node, or ends its pause.
func (c *Client) Pause(ctx context.Context, r wire.PauseRequest) (wire.ChangeReply, error) {
	r.Wire = wire.Version
	return ask[wire.ChangeReply](ctx, c, question{subject.Write, wire.PauseOne, writeFor, r})
}

// Get hands every page of what r asks for to take, in their order, and stops at
// its first error, which it returns. Pages may be of different revisions, and
// nothing that stood all the time is missing or comes twice.
func (c *Client) Get(ctx context.Context, r wire.GetRequest, take func(wire.GetReply) error) error {
	r.Wire = wire.Version
	for {
		page, err := ask[wire.GetReply](ctx, c, question{subject.Read, wire.Get, readFor, r})
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return err
		}
		if page.Next == "" {
			return nil
		}
		if page.Next == r.After {
			return fault.New(fault.Internal, "get", r.Kind, fmt.Errorf("the page after %q leads to itself", r.After))
		}
		r.After = page.Next
	}
}

// Progress says how far declarations have come, in the order of r.Names.
func (c *Client) Progress(ctx context.Context, r wire.ProgressRequest) (wire.ProgressReply, error) {
	var all wire.ProgressReply
	r.Wire = wire.Version
	for names := range slices.Chunk(r.Names, maxNames) {
		r.Names = names
		part, err := ask[wire.ProgressReply](ctx, c, question{subject.Read, wire.Progress, readFor, r})
		if err != nil {
			return wire.ProgressReply{}, err
		}
		if all.Revision == 0 || part.Revision < all.Revision {
			all.Revision = part.Revision
		}
		all.Names = append(all.Names, part.Names...)
	}
	return all, nil
}

// Events returns one page of the audit stream.
func (c *Client) Events(ctx context.Context, r wire.EventsRequest) (wire.EventsReply, error) {
	r.Wire = wire.Version
	return ask[wire.EventsReply](ctx, c, question{subject.Read, wire.Events, readFor + time.Duration(r.Wait)*time.Second, r})
}

// Follow hands every page of the audit stream to take, as it comes, until ctx
// ends, which is no error, or take returns one. It asks on while no controller
// answers; trouble is told why, each time that one was asked in vain.
func (c *Client) Follow(ctx context.Context, r wire.EventsRequest, take func(wire.EventsReply) error, trouble func(error)) error {
	for ctx.Err() == nil {
		bound, cancel := context.WithTimeout(ctx, readFor+waitFor)
		page, err := c.Events(bound, r)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is what ended
		case err != nil && again(err):
			trouble(err)
			continue
		case err != nil:
			return err
		}
		if err := take(page); err != nil {
			return err
		}
		r.After = page.Next
		if !page.More {
			r.Wait = int(waitFor / time.Second)
		}
	}
	return nil
}
