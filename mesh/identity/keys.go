package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
)

// schema is the version of the folder of keys and of credentials.
const schema = 1

// keys are the secrets of a mesh as they lie in keys.json. Identities of
// accounts are public keys alone: their seeds were never kept, since the server
// takes nothing that they sign.
type keys struct {
	Schema          int                `json:"schema"`
	Mesh            string             `json:"mesh"`
	Operator        string             `json:"operator"` // claims, signed by the operator's identity
	OperatorSigning Secret             `json:"operator_signing"`
	Accounts        map[Account]string `json:"accounts"`     // public keys
	Roles           map[Role]Secret    `json:"roles"`        // seeds of the scoped signing keys
	Declarations    []byte             `json:"declarations"` // seed of the key that seals declarations and signs indexes
}

// newKeys makes the keys of a new mesh. The second result is the seed of the
// operator's identity, which signs the operator's claims and nothing else.
func newKeys(t Table) (keys, Secret, error) {
	k := keys{Schema: schema, Mesh: strings.ToLower(rand.Text()), Accounts: map[Account]string{}, Roles: map[Role]Secret{}}
	for _, row := range t.Accounts {
		_, public, err := newKey(nkeys.PrefixByteAccount)
		if err != nil {
			return keys{}, "", err
		}
		k.Accounts[row.Account] = public
	}
	for _, row := range t.Roles {
		seed, _, err := newKey(nkeys.PrefixByteAccount)
		if err != nil {
			return keys{}, "", err
		}
		k.Roles[row.Role] = seed
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return keys{}, "", fault.New(fault.Internal, "make key", "declarations", err)
	}
	k.Declarations = private.Seed()
	identity, err := k.makeOperator()
	return k, identity, err
}

// makeOperator makes the operator's identity and its signing key. Only what the
// signing key signs is trusted.
func (k *keys) makeOperator() (Secret, error) {
	identity, public, err := newKey(nkeys.PrefixByteOperator)
	if err != nil {
		return "", err
	}
	signing, signingPublic, err := newKey(nkeys.PrefixByteOperator)
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed([]byte(identity))
	if err != nil {
		return "", fault.New(fault.Internal, "make key", "operator", err)
	}
	defer pair.Wipe()
	c := jwt.NewOperatorClaims(public)
	c.Name = k.Mesh
	c.SigningKeys.Add(signingPublic)
	c.SystemAccount = k.Accounts[SYS]
	c.StrictSigningKeyUsage = true
	k.OperatorSigning = signing
	if k.Operator, err = c.Encode(pair); err != nil {
		return "", fault.New(fault.Internal, "sign claims", "operator", err)
	}
	return identity, nil
}

func newKey(kind nkeys.PrefixByte) (seed Secret, public string, err error) {
	pair, err := nkeys.CreatePair(kind)
	if err != nil {
		return "", "", fault.New(fault.Internal, "make key", kind.String(), err)
	}
	defer pair.Wipe()
	raw, err := pair.Seed()
	if err != nil {
		return "", "", fault.New(fault.Internal, "make key", kind.String(), err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		return "", "", fault.New(fault.Internal, "make key", kind.String(), err)
	}
	return Secret(raw), public, nil
}

// check holds keys that were read against what must be there.
func (k *keys) check() error {
	switch {
	case k.Schema != schema:
		return fault.New(fault.Unsupported, "read keys", "", fmt.Errorf("schema %d; this version reads %d", k.Schema, schema))
	case k.Mesh == "" || k.Operator == "" || len(k.Declarations) != ed25519.SeedSize:
		return fault.New(fault.Invalid, "read keys", "", fmt.Errorf("the file is not whole"))
	}
	return nil
}

func (m *Mesh) rolePublic(r Role) (string, error) {
	pair, err := m.roleKey(r)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

func (m *Mesh) roleKey(r Role) (nkeys.KeyPair, error) {
	seed, ok := m.keys.Roles[r]
	if !ok {
		return nil, fmt.Errorf("no key of role %q", string(r))
	}
	return nkeys.FromSeed([]byte(seed))
}
