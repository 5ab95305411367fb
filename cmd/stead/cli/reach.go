package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stead/cmd/stead/contexts"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
)

const (
	// patience is how long a command waits for the mesh when nothing is said.
	patience = 20 * time.Second
	// dialFor is how much of it the connection may take.
	dialFor = 5 * time.Second
	// contextVariable names a context where --context does not.
	contextVariable = "STEAD_CONTEXT"
	// asksMesh marks commands that ask the mesh: their help shows its flags.
	asksMesh = "asks the mesh"
)

// reach is how commands come to the mesh: what the command line and the
// environment say of it.
type reach struct {
	o       Options
	context string
	timeout waitTime
}

// flags are those of every command that asks the mesh.
func (r *reach) flags(f *pflag.FlagSet) {
	r.timeout = waitTime(patience)
	f.StringVar(&r.context, "context", "", "ask the mesh of context `NAME`, or of a file of credentials")
	f.Var(&r.timeout, "timeout", "wait up to `TIME` for an answer")
}

// asks makes c a command that asks the mesh.
func asks(c *cobra.Command) *cobra.Command {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[asksMesh] = "yes"
	return c
}

// store opens the contexts of the user who runs the command.
func (r *reach) store() (*contexts.Store, error) {
	places, err := contexts.Places(r.o.Env)
	if err != nil {
		return nil, err
	}
	return contexts.New(places)
}

// asked is the context that is asked for by name; "" is the current one.
func (r *reach) asked() string {
	if r.context != "" {
		return r.context
	}
	return r.o.Env(contextVariable)
}

// link is the way to one mesh, for one command.
type link struct {
	*client.Client
	store *contexts.Store
	at    contexts.Context
	conn  *mesh.Conn
}

// dial connects to the mesh of the context that is asked for.
func (r *reach) dial(ctx context.Context) (*link, error) {
	if r.timeout <= 0 {
		return nil, usageError{errors.New("--timeout 0s leaves no time for an answer"), "such as --timeout 30s"}
	}
	store, err := r.store()
	if err != nil {
		return nil, err
	}
	at, err := store.Find(r.asked())
	if err != nil {
		return nil, err
	}
	conn, err := mesh.Connect(ctx, mesh.Options{
		Credentials: func() (identity.Credentials, error) { return at.Credentials, nil },
		Name:        "stead " + at.Credentials.Name,
		Logger:      slog.New(slog.DiscardHandler), // what matters comes back as an error
	})
	if err != nil {
		return nil, err
	}
	bound, cancel := context.WithTimeout(ctx, min(dialFor, time.Duration(r.timeout)))
	defer cancel()
	if err := connected(bound, conn); err != nil {
		conn.Close()
		return nil, unreached(ctx, at, err)
	}
	return &link{client.New(conn), store, at, conn}, nil
}

// connected waits for a connection. Credentials that are turned away are not
// waited for: they stay so.
func connected(ctx context.Context, conn *mesh.Conn) error {
	wake, stop := conn.Notify()
	defer stop()
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return conn.Wait(ctx)
		}
		switch st := conn.State(); {
		case st.Connected:
			return nil
		case fault.Is(st.Err, fault.Denied):
			return st.Err
		}
	}
}

// unreached says of a mesh that cannot be connected to where it was looked for.
func unreached(ctx context.Context, at contexts.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "reach the mesh", "", errors.New("interrupted"))
	}
	servers := strings.Join(at.Credentials.URLs, ", ")
	if fault.Is(err, fault.Denied) {
		return fault.New(fault.Denied, "reach the mesh", servers, rootCause(err)).
			WithHint("the server does not take the credentials in " + at.Path + ", or is one of another mesh: get new ones, and stead context add")
	}
	return fault.New(fault.Unavailable, "reach the mesh", servers, rootCause(err)).
		WithHint("see whether a controller runs there (systemctl status stead-controller); the address is that of " + nameOf(at))
}

// rootCause leaves out what callers say anew.
func rootCause(err error) error {
	var f *fault.Error
	for errors.As(err, &f) && f.Cause != nil {
		err = f.Cause
	}
	return err
}

func nameOf(at contexts.Context) string {
	if at.Name == "" {
		return at.Path
	}
	return fmt.Sprintf("context %q", at.Name)
}

// explain adds to an error of a question what only the asking side knows.
func (l *link) explain(op string, err error) error {
	servers := strings.Join(l.at.Credentials.URLs, ", ")
	role := l.at.Credentials.Role
	switch {
	case err == nil || fault.HintOf(err) != "":
		return err
	case fault.Is(err, fault.Denied) && role == identity.Viewer:
		return fault.New(fault.Denied, op, "", fmt.Errorf("%s is a viewer's, and viewers neither change anything nor are shown content", nameOf(l.at))).
			WithHint("stead context list shows the others; --context NAME takes one")
	case fault.Is(err, fault.Denied):
		return fault.New(fault.Denied, op, "", fmt.Errorf("%s may not: %w", nameOf(l.at), rootCause(err)))
	case fault.Is(err, fault.Unavailable):
		return fault.New(fault.Unavailable, op, "", fmt.Errorf("no controller answers at %s", servers)).
			WithHint("the server is there, and no controller: systemctl status stead-controller, or a longer --timeout")
	case fault.Is(err, fault.Timeout):
		return fault.New(fault.Timeout, op, "", fmt.Errorf("no answer in time from the controller at %s", servers)).
			WithHint("it may have been done: the same command again does it once and not twice")
	}
	return err
}

// run connects and calls f with a context that ends with the command's patience.
func (r *reach) run(ctx context.Context, f func(context.Context, *link) error) error {
	l, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	return f(ctx, l)
}

// bound is for one question.
func (r *reach) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(r.timeout))
}
