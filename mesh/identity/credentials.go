package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
	"stead/mesh/replace"
	"stead/mesh/subject"
)

// Credentials are all that one user needs to take part in the mesh, as they lie
// in one file. Everything but Seed is public.
type Credentials struct {
	Schema int      `json:"schema"`
	Mesh   string   `json:"mesh"`
	Role   Role     `json:"role"`
	Name   string   `json:"name"`
	URLs   []string `json:"urls"` // tls://HOST:PORT of the NATS servers
	CA     string   `json:"ca"`   // PEM; the only authority that is believed
	JWT    string   `json:"jwt"`
	Seed   Secret   `json:"seed"` // the user's private key
	// DeclarationKey is what seals and signatures of the mesh are checked with.
	DeclarationKey ed25519.PublicKey `json:"declaration_key"`
	// Accounts and Roles tell whose the public keys are that stand in what the
	// server says of a caller.
	Accounts map[string]Account `json:"accounts"`
	Roles    map[string]Role    `json:"roles"`
}

// WriteCredentials puts c at path with mode 0600, in one step; what was there is
// replaced.
func WriteCredentials(path string, c Credentials) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "write credentials", path, err)
	}
	return replace.File(path, append(text, '\n'), 0o600)
}

// ReadCredentials reads credentials and checks that they are whole: not_found
// without a file, refused when others may read it, unsupported when a newer
// version wrote it, invalid when its parts do not fit each other. Whether they
// expired or were revoked the server says.
func ReadCredentials(path string) (Credentials, error) {
	text, err := readOwn(path)
	if err != nil {
		return Credentials{}, err
	}
	c := Credentials{}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&c); err != nil {
		return Credentials{}, fault.New(fault.Invalid, "read credentials", path, err)
	}
	if c.Schema != schema {
		return Credentials{}, fault.New(fault.Unsupported, "read credentials", path,
			fmt.Errorf("schema %d; this version reads %d", c.Schema, schema)).
			WithHint("another version of stead wrote it: use that one here, or have credentials made by this one")
	}
	if err := c.check(); err != nil {
		return Credentials{}, fault.New(fault.Invalid, "read credentials", path, err)
	}
	return c, nil
}

func (c Credentials) check() error {
	if err := errors.Join(subject.CheckLabel("name", c.Name), checkURLs(c.URLs)); err != nil {
		return err
	}
	claims, err := jwt.DecodeUserClaims(c.JWT)
	if err != nil {
		return err
	}
	pair, err := nkeys.FromSeed([]byte(c.Seed))
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	switch {
	case err != nil:
		return fmt.Errorf("seed: %w", err)
	case public != claims.Subject:
		return errors.New("the seed is not that of the user who was signed")
	case claims.Name != c.Name || c.Roles[claims.Issuer] != c.Role:
		return fmt.Errorf("signed for another name or role: %q", claims.Name)
	case len(c.DeclarationKey) != ed25519.PublicKeySize:
		return errors.New("no key of declarations")
	}
	_, err = c.TLS()
	return err
}

// PublicKey is the user's public key, "" when JWT is not one.
func (c Credentials) PublicKey() string {
	claims, err := jwt.DecodeUserClaims(c.JWT)
	if err != nil {
		return ""
	}
	return claims.Subject
}

// Inbox is the prefix of the subjects on which the user hears answers; no other
// is allowed.
func (c Credentials) Inbox() string { return subject.Inbox(c.PublicKey()) }

// NATS is the part of the credentials that other NATS clients read, in the form
// of their .creds files. It holds the seed: it is for a file of mode 0600.
func (c Credentials) NATS() ([]byte, error) {
	text, err := jwt.FormatUserConfig(c.JWT, []byte(c.Seed))
	if err != nil {
		return nil, fault.New(fault.Invalid, "credentials", c.Name, err)
	}
	return text, nil
}

// Expires is when the credentials end; zero when they do not.
func (c Credentials) Expires() time.Time {
	claims, err := jwt.DecodeUserClaims(c.JWT)
	if err != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// TLS is how the mesh's servers are believed: TLS 1.3, and a certificate of CA
// for the host in the URL.
func (c Credentials) TLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(c.CA)) {
		return nil, fault.New(fault.Invalid, "credentials", c.Name, errors.New("no certificate of an authority"))
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}, nil
}
