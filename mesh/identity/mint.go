package identity

import (
	"crypto/ed25519"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
	"stead/mesh/subject"
)

// Request asks for the credentials of one user.
type Request struct {
	Role Role
	Name string // of the node, person or controller: a DNS label
	// Expires ends the credentials, to the second. Zero: they do not end.
	Expires time.Time
	// URLs are where the mesh's NATS servers are: "tls://HOST:PORT".
	URLs []string
}

// NodeRoles are the roles of which each node has one user.
func NodeRoles() []Role { return []Role{Host, Listener, Runtime, Tool} }

// Mint makes a key for one user and signs it for the role and the name. A name
// that is no DNS label, an unknown role, or a URL that is not tls:// is invalid,
// and nothing is signed.
func (m *Mesh) Mint(r Request) (Credentials, error) {
	if err := checkURLs(r.URLs); err != nil {
		return Credentials{}, err
	}
	seed, public, err := newKey(nkeys.PrefixByteUser)
	if err != nil {
		return Credentials{}, err
	}
	token, err := m.Sign(r, public)
	if err != nil {
		return Credentials{}, err
	}
	c := Credentials{
		Schema: schema, Mesh: m.ID(), Role: r.Role, Name: r.Name, URLs: r.URLs, CA: m.CA(), JWT: token, Seed: seed,
		DeclarationKey: m.DeclarationKey().Public().(ed25519.PublicKey),
		Accounts:       map[string]Account{}, Roles: map[string]Role{},
	}
	for account, key := range m.keys.Accounts {
		c.Accounts[key] = account
	}
	for role := range m.keys.Roles {
		key, err := m.rolePublic(role)
		if err != nil {
			return Credentials{}, fault.New(fault.Internal, "mint credentials", string(role), err)
		}
		c.Roles[key] = role
	}
	return c, nil
}

// Sign signs the public key of a user that was made elsewhere, and returns the
// signed claims. It checks what Mint checks, URLs left out.
func (m *Mesh) Sign(r Request, public string) (string, error) {
	row, ok := Permissions().Role(r.Role)
	if !ok {
		return "", fault.New(fault.Invalid, "mint credentials", "", fmt.Errorf("no such role: %q", string(r.Role)))
	}
	// The server pastes the name into patterns as it is: a user called "*" would
	// be every node.
	if err := subject.CheckLabel("name", r.Name); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return "", fault.New(fault.Invalid, "mint credentials", r.Name, fmt.Errorf("no public key of a user: %q", public))
	}
	key, err := m.roleKey(r.Role)
	if err != nil {
		return "", fault.New(fault.Internal, "mint credentials", r.Name, err)
	}
	defer key.Wipe()
	c := jwt.NewUserClaims(public)
	c.Name, c.IssuerAccount = r.Name, m.keys.Accounts[row.Account]
	if !r.Expires.IsZero() {
		c.Expires = r.Expires.Unix()
	}
	c.SetScoped(true)
	token, err := c.Encode(key)
	if err != nil {
		return "", fault.New(fault.Internal, "mint credentials", r.Name, err)
	}
	return token, nil
}

func checkURLs(urls []string) error {
	if len(urls) == 0 {
		return fault.New(fault.Invalid, "mint credentials", "", fmt.Errorf("no URL of a NATS server"))
	}
	for _, s := range urls {
		if u, err := url.Parse(s); err != nil || u.Scheme != "tls" || u.Hostname() == "" || u.Port() == "" || u.User != nil ||
			u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return fault.New(fault.Invalid, "URL", fmt.Sprintf("%q", s), fmt.Errorf("must be tls://HOST:PORT"))
		}
	}
	return nil
}
