package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
)

// asideFor bounds what is asked of a user manager when it is not what a caller asked
// for: one that hangs is named, and the answer of the system scope does not wait.
const asideFor = 2 * time.Second

// errSlow is why a scope is left out whose manager hangs.
var errSlow = fault.New(fault.Timeout, "", "", fmt.Errorf("its manager has not answered within %s", asideFor))

// view is one scope as the verbs see it.
type view struct {
	scope unit.Scope
	reader
	m *Module
}

func (m *Module) system() view { return view{unit.System, m.o.Reader, m} }

func (m *Module) user() view { return view{unit.User, m.o.User, m} }

// in is the scope that an act is asked for in.
func (m *Module) in(scope string) view {
	if scope == string(unit.User) {
		return m.user()
	}
	return m.system()
}

// views are the scopes that a verb that reads is asked about.
func (m *Module) views(scope string) []view {
	if scope == "" {
		return []view{m.system(), m.user()}
	}
	return []view{m.in(scope)}
}

// asked is the scope as the root helper is asked for it.
func (v view) asked() unit.Scope {
	if v.scope == unit.User {
		return v.scope
	}
	return ""
}

// journal is what reads the log entries of the scope.
func (v view) journal(ctx context.Context) (Journal, error) {
	if v.scope != unit.User {
		return v.m.o.Journal, nil
	}
	a, err := v.m.o.User.Account(ctx)
	if err != nil {
		return nil, err
	}
	return v.m.o.UserJournal(a.UID), nil
}

// looked is what came of reading one scope.
type looked[T any] struct {
	view
	got T
	err error
}

// look reads all of views at once. Of several, those that cannot be read are left out
// of the answer, and named; the error is that of the question itself, or of the system
// scope when nothing could be read.
func look[T any](ctx context.Context, views []view, read func(context.Context, view) (T, error)) (seen []looked[T], blind unread, err error) {
	all := make([]looked[T], len(views))
	var group sync.WaitGroup
	for i, v := range views {
		group.Go(func() {
			if v.scope != unit.User || len(views) == 1 {
				got, err := read(ctx, v)
				all[i] = looked[T]{v, got, err}
				return
			}
			aside, cancel := context.WithTimeout(ctx, asideFor)
			defer cancel()
			got, err := read(aside, v)
			if err != nil && aside.Err() != nil && ctx.Err() == nil {
				err = errSlow
			}
			all[i] = looked[T]{v, got, err}
		})
	}
	group.Wait()
	for _, l := range all {
		switch {
		case l.err == nil:
			seen = append(seen, l)
		case fault.Is(l.err, fault.Invalid):
			return nil, nil, l.err
		default:
			blind = append(blind, unreadable{l.view, l.err})
		}
	}
	if len(seen) == 0 && len(views) > 0 && views[0].scope == unit.System {
		return nil, nil, all[0].err
	}
	return seen, blind, nil
}

// unreadable is a scope that cannot be read.
type unreadable struct {
	view
	err error
}

// unread are all that cannot be.
type unread []unreadable

func (u unread) named() []seats.Unreadable {
	var all []seats.Unreadable
	for _, one := range u {
		all = append(all, seats.Unreadable{Scope: string(one.scope), Reason: why(one.err)})
	}
	return all
}

// why is an error without what was being done.
func why(err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Cause != nil {
		err = f.Cause
	}
	return cut(err.Error(), mostWords)
}

// userFolders are where systemd looks for units of the user scope, homes left
// out (systemd.unit(5)).
func userFolders() []string {
	return []string{"/etc/systemd/user", "/run/systemd/user", "/usr/local/share/systemd/user", "/usr/share/systemd/user",
		"/usr/local/lib/systemd/user", "/usr/lib/systemd/user"}
}

// declaredInUserScope reports whether a declaration names the unit there.
func (m *Module) declaredInUserScope(n unit.Name) bool {
	for _, d := range m.o.Declared() {
		if d.Scope == string(unit.User) && d.Unit == string(n) {
			return true
		}
	}
	return false
}

// filedInUserScope reports whether the unit has a file in a folder of user managers that
// is not a home's.
func (m *Module) filedInUserScope(n unit.Name) bool {
	for _, dir := range m.o.UserFolders {
		for _, name := range []unit.Name{n, n.Template()} {
			if _, err := os.Stat(filepath.Join(dir, string(name))); err == nil {
				return true
			}
		}
	}
	return false
}

// elsewhere says that the other scope than v has such a unit, and the command that
// means it; "" when it has none.
func (v view) elsewhere(ctx context.Context, verb string, n unit.Name) (text, hint string) {
	other := v.m.user()
	if v.scope == unit.User {
		other = v.m.system()
	}
	ctx, cancel := context.WithTimeout(ctx, asideFor)
	defer cancel()
	d, err := other.Details(ctx, n)
	if err != nil && ctx.Err() != nil {
		err = errSlow
	}
	switch {
	case err == nil && exists(d.Load, d.Active):
		return fmt.Sprintf("; there is one in %s scope", other.scope), v.m.command(verb, n, other.scope)
	case err == nil, fault.Is(err, fault.Invalid), other.scope == unit.System:
	case v.m.declaredInUserScope(n):
		return "; one is declared in user scope, which cannot be read: " + why(err), v.m.command(verb, n, other.scope)
	case fault.Is(err, fault.Refused): // the node has no account
	case v.m.filedInUserScope(n):
		return "; user scope has a file for one, and cannot be read: " + why(err), v.m.command(verb, n, other.scope)
	}
	return "", ""
}

// command is what a person calls a verb with, for a unit of a scope.
func (m *Module) command(verb string, n unit.Name, scope unit.Scope) string {
	c := "stead " + verb + " "
	if verb == string(seats.Journal) {
		c += "-u "
	}
	if c += string(n); m.o.Node != "" {
		c += " -n " + m.o.Node
	}
	if scope == unit.User {
		return c + " --user"
	}
	if verb == string(seats.Status) || verb == string(seats.Units) {
		return c + " --system"
	}
	return c
}
