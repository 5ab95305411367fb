package identity

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
)

// Trust is what a NATS server must know to judge every user: claims signed with
// the mesh's keys. It holds no secret.
type Trust struct {
	Operator string            // the operator's claims
	System   string            // public key of the account SYS
	Accounts map[string]string // public key of an account → its claims
}

// Revocation ends the credentials of one user that were signed up to Before, to
// the second.
type Revocation struct {
	Account Account
	User    string // public key
	Before  time.Time
}

// Trust renders a table with the keys of the mesh. It fails with class internal
// when the table names an account or role that the mesh has no key for, or when
// a row is not one that NATS accepts.
func (m *Mesh) Trust(t Table, revoked []Revocation) (Trust, error) {
	signer, err := nkeys.FromSeed([]byte(m.keys.OperatorSigning))
	if err != nil {
		return Trust{}, fault.New(fault.Internal, "render permissions", "operator's signing key", err)
	}
	defer signer.Wipe()
	out := Trust{Operator: m.keys.Operator, System: m.keys.Accounts[SYS], Accounts: map[string]string{}}
	for _, row := range t.Accounts {
		claims, err := m.account(t, row, revoked)
		if err != nil {
			return Trust{}, fault.New(fault.Internal, "render permissions", string(row.Account), err)
		}
		if out.Accounts[claims.Subject], err = claims.Encode(signer); err != nil {
			return Trust{}, fault.New(fault.Internal, "sign permissions", string(row.Account), err)
		}
	}
	return out, nil
}

func (m *Mesh) account(t Table, row AccountRow, revoked []Revocation) (*jwt.AccountClaims, error) {
	key, ok := m.keys.Accounts[row.Account]
	if !ok {
		return nil, errors.New("no key of this account")
	}
	c := jwt.NewAccountClaims(key)
	c.Name = string(row.Account)
	c.Limits.AccountLimits = jwt.AccountLimits{
		Imports: 64, Exports: 64, WildcardExports: true, DisallowBearer: true, Conn: row.Connections, LeafNodeConn: 0,
	}
	if row.JetStream {
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{
			MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, // the server's own limit holds
			Streams: 64, Consumer: 1024, MaxAckPending: 1024, MaxBytesRequired: true,
		}
	}
	for _, r := range t.Roles {
		if r.Account != row.Account {
			continue
		}
		scope, err := m.scope(r)
		if err != nil {
			return nil, err
		}
		c.SigningKeys.AddScopedSigner(scope)
	}
	if err := m.services(c, t, row.Account); err != nil {
		return nil, err
	}
	for _, r := range revoked {
		if r.Account == row.Account {
			c.RevokeAt(r.User, r.Before)
		}
	}
	return c, invalid(c)
}

// scope is a signing key that can only sign users of the role: whatever else a
// token asks for, the server takes the permissions from here.
func (m *Mesh) scope(r RoleRow) (*jwt.UserScope, error) {
	key, err := m.rolePublic(r.Role)
	if err != nil {
		return nil, err
	}
	s := jwt.NewUserScope()
	s.Key, s.Role = key, string(r.Role)
	s.Template.Pub = jwt.Permission{Allow: r.Publish, Deny: r.Deny}
	if len(r.Publish) == 0 {
		// An empty list allows everything. Answers pass a deny all the same.
		s.Template.Pub = jwt.Permission{Deny: []string{">"}}
	}
	s.Template.Sub = jwt.Permission{Allow: r.Subscribe}
	if len(r.Subscribe) == 0 {
		s.Template.Sub = jwt.Permission{Deny: []string{">"}}
	}
	if r.Answer > 0 {
		s.Template.Resp = &jwt.ResponsePermission{MaxMsgs: -1, Expires: r.Answer}
	}
	s.Template.NatsLimits = jwt.NatsLimits{Subs: r.Subscriptions, Data: jwt.NoLimit, Payload: r.Payload}
	// Without this the same credentials also open leaf nodes, WebSocket and MQTT.
	s.Template.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeInProcess}
	// The account's own check passes over templates.
	var vr jwt.ValidationResults
	s.Template.Permissions.Validate(&vr)
	return s, errors.Join(vr.Errors()...)
}

// services adds what the account offers to others and takes from them.
func (m *Mesh) services(c *jwt.AccountClaims, t Table, own Account) error {
	for _, s := range t.Services {
		if s.From == own {
			e := &jwt.Export{Name: s.Subject, Subject: jwt.Subject(s.Subject), Type: jwt.Service, ResponseType: jwt.ResponseTypeSingleton}
			if s.Many {
				e.ResponseType = jwt.ResponseTypeStream
			}
			e.ResponseThreshold = s.Within
			c.Exports.Add(e)
		}
		for _, to := range s.To {
			if to != own {
				continue
			}
			from, ok := m.keys.Accounts[s.From]
			if !ok {
				return fmt.Errorf("service %q: no key of account %s", s.Subject, s.From)
			}
			// Share is what makes the server say who calls.
			c.Imports.Add(&jwt.Import{Name: s.Subject, Subject: jwt.Subject(s.Subject), Account: from, Type: jwt.Service, Share: true})
		}
	}
	return nil
}

func invalid(c jwt.Claims) error {
	var vr jwt.ValidationResults
	c.Validate(&vr)
	return errors.Join(vr.Errors()...)
}
