package identity_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// check is one line of the permission list. A check without open must get
// through. One with open must not, and must when the table is opened so: a
// refusal that nothing can open would be refused for another reason than the
// permission, and would prove nothing.
type check struct {
	name string
	try  func(w *world) bool // reports whether it got through
	open func(t *identity.Table)
	// group puts refusals on one opened table, each opened for itself in it, where
	// none opens what another is about and none leaves anything behind.
	group string
}

// run holds every check against the table, and each refusal against its opened
// table, on a server of its own or of its group. It returns how many got through
// and how many were refused.
func run(t *testing.T, checks []check) (through, refused int) {
	t.Helper()
	r := newRealm(t)
	strict := r.start(t, identity.Permissions())
	defer strict.stop()
	strict.patience = 150 * time.Millisecond // for what must not come
	for _, c := range checks {
		if c.open == nil {
			through++
			require.True(t, c.try(strict), "must get through: %s", c.name)
			continue
		}
		refused++
		require.False(t, c.try(strict), "got through: %s", c.name)
	}
	for these, rest := next(checks); len(these) > 0; these, rest = next(rest) {
		table := identity.Permissions()
		for _, c := range these {
			c.open(&table)
		}
		w := r.start(t, table)
		for _, c := range these {
			require.True(t, c.try(w), "refused although the table is opened: %s", c.name)
		}
		w.stop()
	}
	return through, refused
}

// next takes the first refusal and all of its group from checks.
func next(checks []check) (these, rest []check) {
	for _, c := range checks {
		switch {
		case c.open == nil:
		case len(these) == 0, c.group != "" && c.group == these[0].group:
			these = append(these, c)
		default:
			rest = append(rest, c)
		}
	}
	return these, rest
}

// Ways to open a table.

func both(opens ...func(*identity.Table)) func(*identity.Table) {
	return func(t *identity.Table) {
		for _, o := range opens {
			o(t)
		}
	}
}

func row(t *identity.Table, r identity.Role) *identity.RoleRow {
	i := slices.IndexFunc(t.Roles, func(row identity.RoleRow) bool { return row.Role == r })
	return &t.Roles[i]
}

func maySend(r identity.Role, subject string) func(*identity.Table) {
	return func(t *identity.Table) {
		x := row(t, r)
		x.Publish = append(x.Publish, subject)
		x.Deny = nil
	}
}

func mayHear(r identity.Role, subject string) func(*identity.Table) {
	return func(t *identity.Table) { x := row(t, r); x.Subscribe = append(x.Subscribe, subject) }
}

// lives moves a role to another account.
func lives(r identity.Role, a identity.Account) func(*identity.Table) {
	return func(t *identity.Table) { row(t, r).Account = a }
}

// passes lets a subject pass from the users of one account to another.
func passes(subject string, from, to identity.Account) func(*identity.Table) {
	return func(t *identity.Table) {
		for i, s := range t.Services {
			if s.Subject == subject && s.From == from {
				t.Services[i].To = append(t.Services[i].To, to)
				return
			}
		}
		t.Services = append(t.Services, identity.ServiceRow{Subject: subject, From: from, To: []identity.Account{to}})
	}
}

// literally puts a subject in the place of the pattern of a service, and lets it
// pass to one more account. The server hands an answer on through an import
// without a wildcard in it; through one with a wildcard it does not.
func literally(pattern, literal string, to identity.Account) func(*identity.Table) {
	return func(t *identity.Table) {
		for i, s := range t.Services {
			if s.Subject == pattern {
				t.Services[i].Subject = literal
				if !slices.Contains(s.To, to) {
					t.Services[i].To = append(t.Services[i].To, to)
				}
			}
		}
	}
}

func hasJetStream(a identity.Account) func(*identity.Table) {
	return func(t *identity.Table) {
		for i := range t.Accounts {
			if t.Accounts[i].Account == a {
				t.Accounts[i].JetStream = true
			}
		}
	}
}

// What a bare client tries. Each says whether it got through.

// sends publishes one message; the server takes it or objects.
func sends(r identity.Role, name, subject string) func(*world) bool {
	return func(w *world) bool {
		p := w.fresh(r, name)
		defer p.nc.Close()
		require.NoError(w.t, p.nc.Publish(subject, []byte("x")))
		return !p.refused(w.t)
	}
}

// hears subscribes; the server takes it or objects.
func hears(r identity.Role, name, subject, queue string) func(*world) bool {
	return func(w *world) bool {
		p := w.fresh(r, name)
		defer p.nc.Close()
		_, err := p.nc.QueueSubscribeSync(subject, queue)
		require.NoError(w.t, err)
		return !p.refused(w.t)
	}
}

// who names an honest party.
type who struct {
	role identity.Role
	name string
}

// reaches publishes on subject with a reply subject and looks whether anything
// came to the target on what.
func reaches(r identity.Role, name, subject, reply string, target who, what string) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(r, name)
		defer p.nc.Close()
		w.forget()
		require.NoError(w.t, p.nc.PublishRequest(subject, reply, []byte("x")))
		require.False(w.t, p.refused(w.t), "the request itself was refused")
		w.settle()
		require.True(w.t, w.anybodyHeard(subject), "nobody was asked")
		return w.be(target.role, target.name).heard(what) > 0
	}
}

// asks is answered, and whoever answers is told by the server who asked.
func asks(r identity.Role, name, subject string, answers who) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(r, name)
		defer p.nc.Close()
		w.forget()
		require.NoError(w.t, p.nc.PublishRequest(subject, p.answers(), []byte("x")))
		_ = p.refused(w.t)
		w.settle()
		require.NoError(w.t, p.nc.Flush())
		n, _, err := p.inbox.Pending()
		require.NoError(w.t, err)
		a := w.be(answers.role, answers.name)
		for _, m := range a.got {
			caller, err := a.creds.Caller(m)
			require.NoError(w.t, err)
			require.Equal(w.t, identity.Caller{Account: row(&w.table, r).Account, Role: r, Name: name, User: p.creds.PublicKey()}, caller)
		}
		return n > 0 && a.heard(subject) == 1
	}
}

// snoops listens on the inbox of another while that one is answered.
func snoops(r identity.Role, name string, victim who, asks string) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		v := w.fresh(victim.role, victim.name)
		defer v.nc.Close()
		p := w.fresh(r, name)
		defer p.nc.Close()
		ear, err := p.nc.SubscribeSync(v.creds.Inbox() + ".>")
		require.NoError(w.t, err)
		_ = p.refused(w.t)
		require.NoError(w.t, v.nc.PublishRequest(asks, v.answers(), []byte("x")))
		require.NoError(w.t, v.nc.Flush())
		w.settle()
		require.NoError(w.t, v.nc.Flush())
		mine, _, err := v.inbox.Pending()
		require.NoError(w.t, err)
		require.Equal(w.t, 1, mine, "the victim was not answered")
		require.NoError(w.t, p.nc.Flush())
		n, _, _ := ear.Pending()
		return n > 0
	}
}

// changes sends m, with reply, and looks whether the bucket of the controllers
// is no longer what it was.
func changes(r identity.Role, name string, m *nats.Msg) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(r, name)
		defer p.nc.Close()
		require.NoError(w.t, p.nc.PublishMsg(m))
		if p.refused(w.t) {
			return false
		}
		w.settle()
		if m.Reply != "" {
			require.True(w.t, w.anybodyHeard(m.Subject), "nobody was asked")
		}
		return w.eventually(func() bool { return w.seed() != "kept" })
	}
}

// seed is what the bucket holds under its one key.
func (w *world) seed() string {
	s, err := w.js.Stream(w.t.Context(), "KV_state")
	if err != nil {
		return err.Error()
	}
	m, err := s.GetLastMsgForSubject(w.t.Context(), "$KV.state.seed")
	if err != nil {
		return err.Error()
	}
	return string(m.Data)
}

// api asks the JetStream API and reports whether it answered as it does to those
// who may.
func api(r identity.Role, name, subject, body, answer string) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(r, name)
		defer p.nc.Close()
		require.NoError(w.t, p.nc.PublishRequest(subject, p.creds.Inbox()+".answer", []byte(body)))
		if p.refused(w.t) {
			return false
		}
		if p.inbox == nil {
			return true // it hears no answer; that the server took the request is enough
		}
		m, err := p.inbox.NextMsg(w.patience)
		return err == nil && strings.Contains(string(m.Data), answer)
	}
}

func (w *world) anybodyHeard(subject string) bool {
	for _, p := range w.who {
		if p.heard(subject) > 0 {
			return true
		}
	}
	return false
}

// eventually waits for what the server does in its own time, for w.patience.
func (w *world) eventually(is func() bool) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), w.patience)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			return is()
		case <-time.After(2 * time.Millisecond):
		}
	}
	return true
}

// forget throws away what the honest heard so far.
func (w *world) forget() {
	w.settle()
	for _, p := range w.who {
		p.got = nil
	}
}
