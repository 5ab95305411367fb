package systemd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// lingerFolder holds a file for each login that lingers, by its name
// (loginctl(1)).
const lingerFolder = "/var/lib/systemd/linger"

const (
	loginName    = "org.freedesktop.login1"
	loginPath    = dbus.ObjectPath("/org/freedesktop/login1")
	loginManager = "org.freedesktop.login1.Manager"
	// mostSessions is of how many sessions of one user the class is asked.
	mostSessions = 64
)

// Logins asks systemd-logind(8) over the system bus who is logged in, and lets
// accounts linger. That takes root. Its methods may be called from any goroutine.
type Logins struct{ r *Reader }

// NewLogins checks o and returns a Logins that is not connected; Run connects it.
// Presets of o are not used.
func NewLogins(o ReaderOptions) (*Logins, error) {
	r, err := NewReader(o)
	if err != nil {
		return nil, err
	}
	r.to = loginName
	return &Logins{r}, nil
}

// Run keeps the connection until ctx ends, and then returns nil, as Reader.Run
// does.
func (l *Logins) Run(ctx context.Context) error { return l.r.Run(ctx) }

// Login says whether the login of that name and uid lingers, and how many sessions
// keep its manager: not the manager's own (systemd 256 and newer count it as one),
// and none that is ending.
func (l *Logins) Login(ctx context.Context, name string, uid uint32) (lingers bool, sessions int, err error) {
	const op = "read login"
	replies, err := l.r.ask(ctx, op, name, []call{{loginPath, loginManager, "GetUser", []any{uid}}})
	if err != nil {
		return false, 0, err
	}
	var a *answer
	switch err := replies[0].err; {
	case errors.As(err, &a) && a.name == loginName+".NoSuchUser":
		return lingering(name), 0, nil
	case err != nil:
		return false, 0, looking(op, name, err)
	}
	c, err := open("GetUser", replies[0].body, "o")
	if err != nil {
		return false, 0, err
	}
	user := dbus.ObjectPath(c.text())
	const iface = loginName + ".User"
	replies, err = l.r.ask(ctx, op, name, []call{get(user, iface, "Linger"), get(user, iface, "Sessions")})
	if err != nil {
		return false, 0, err
	}
	for _, r := range replies {
		if r.err != nil { // it logged out meanwhile
			return lingering(name), 0, nil //nolint:nilerr // that is the answer
		}
	}
	var paths []dbus.ObjectPath
	err = errors.Join(variant("Linger", replies[0].body, "b", func(c *cursor) { lingers = c.u32() != 0 }),
		variant("Sessions", replies[1].body, "a(so)", func(c *cursor) {
			c.list(func() {
				c.text()
				paths = append(paths, dbus.ObjectPath(c.text()))
			})
		}))
	if err != nil {
		return false, 0, err
	}
	sessions, err = l.count(ctx, name, paths[:min(len(paths), mostSessions)])
	return lingers, sessions, err
}

// count returns how many of sessions are somebody's.
func (l *Logins) count(ctx context.Context, name string, sessions []dbus.ObjectPath) (int, error) {
	if len(sessions) == 0 {
		return 0, nil
	}
	calls := make([]call, 0, 2*len(sessions))
	for _, s := range sessions {
		calls = append(calls, get(s, loginName+".Session", "Class"), get(s, loginName+".Session", "State"))
	}
	replies, err := l.r.ask(ctx, "read sessions", name, calls)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := 0; i < len(replies); i += 2 {
		if replies[i].err != nil || replies[i+1].err != nil {
			continue // it ended meanwhile
		}
		class, err1 := textOf("Class", replies[i].body)
		state, err2 := textOf("State", replies[i+1].body)
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		if !strings.HasPrefix(class, "manager") && state != "closing" {
			n++
		}
	}
	return n, nil
}

// Linger lets the manager of uid run without a session, or no longer. Turning it
// on starts the manager, and is answered before that runs; turning it off ends it
// where there is no session, with all that runs there.
func (l *Logins) Linger(ctx context.Context, uid uint32, on bool) error {
	replies, err := l.r.ask(ctx, "set linger", "", []call{{loginPath, loginManager, "SetUserLinger", []any{uid, on, false}}})
	if err != nil {
		return err
	}
	return acting("set linger", "", replies[0].err)
}

func lingering(name string) bool {
	_, err := os.Lstat(filepath.Join(lingerFolder, filepath.Base(name)))
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// variant reads a property of one type.
func variant(method string, body []any, want string, read func(*cursor)) error {
	c, err := open("Get "+method, body, "v")
	if err != nil {
		return err
	}
	if sig := string(c.signature()); sig != want {
		return strange("Get "+method, errors.New("it is of type "+sig))
	}
	if read(c); c.bad {
		return strange("Get "+method, errors.New("it ends early"))
	}
	return nil
}
