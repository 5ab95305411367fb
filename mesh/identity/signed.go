package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
)

// Headers of a call that its caller signed. The name of a caller is the server's
// word, and whoever owns the NATS servers can say it of anybody; the signature is
// the caller's own.
const (
	signerHeader    = "Stead-Signer" // the caller's JWT, which the mesh signed
	timeHeader      = "Stead-Time"   // of the caller's clock, in nanoseconds since 1970
	nonceHeader     = "Stead-Nonce"
	signatureHeader = "Stead-Signature"
)

// callDomain is put in front of what is signed.
const callDomain = "stead call 1\n"

// SignedFor is how long a signed call may be on its way, and how far the clocks of
// both sides may be apart.
const SignedFor = 5 * time.Minute

// Signed is who signed a call, when by the caller's clock, and as which: no two
// calls have one Nonce.
type Signed struct {
	Caller
	At    time.Time
	Nonce string
}

// Sign signs m as it is, with its subject, by the key of c.
func (c Credentials) Sign(m *nats.Msg, now time.Time) error {
	pair, err := nkeys.FromSeed([]byte(c.Seed))
	if err != nil {
		return fault.New(fault.Invalid, "sign call", c.Name, err)
	}
	defer pair.Wipe()
	at, nonce := strconv.FormatInt(now.UnixNano(), 10), rand.Text()
	signature, err := pair.Sign(c.signed(m, at, nonce))
	if err != nil {
		return fault.New(fault.Invalid, "sign call", c.Name, err)
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(signerHeader, c.JWT)
	m.Header.Set(timeHeader, at)
	m.Header.Set(nonceHeader, nonce)
	m.Header.Set(signatureHeader, base64.StdEncoding.EncodeToString(signature))
	return nil
}

// signed is the text that is signed.
func (c Credentials) signed(m *nats.Msg, at, nonce string) []byte {
	sum := sha256.Sum256(m.Data)
	return []byte(callDomain + strings.Join([]string{c.Mesh, m.Subject, at, nonce, hex.EncodeToString(sum[:])}, "\n"))
}

// Signer says who signed m. It is denied when nobody of this mesh signed it, as it
// is and for its subject, or when it was signed more than SignedFor from now.
func (c Credentials) Signer(m *nats.Msg, now time.Time) (Signed, error) {
	refuse := func(err error) (Signed, error) {
		return Signed{}, fault.New(fault.Denied, "signature of the call", "", err)
	}
	token := m.Header.Get(signerHeader)
	if token == "" {
		return refuse(errors.New("its caller did not sign it"))
	}
	claims, err := jwt.DecodeUserClaims(token) // which checks that the issuer signed it
	if err != nil {
		return refuse(err)
	}
	role, known := c.Roles[claims.Issuer]
	account, ours := c.Accounts[claims.IssuerAccount]
	if !known || !ours || claims.Name == "" || claims.BearerToken {
		return refuse(fmt.Errorf("%q is not of this mesh", claims.Name))
	}
	at, nonce := m.Header.Get(timeHeader), m.Header.Get(nonceHeader)
	signature, err := base64.StdEncoding.Strict().DecodeString(m.Header.Get(signatureHeader))
	if err != nil {
		return refuse(errors.New("it is no signature"))
	}
	key, err := nkeys.FromPublicKey(claims.Subject)
	if err != nil {
		return refuse(err)
	}
	if err := key.Verify(c.signed(m, at, nonce), signature); err != nil {
		return refuse(fmt.Errorf("it is not that of %s %s", role, claims.Name))
	}
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return refuse(err)
	}
	s := Signed{Caller: Caller{Account: account, Role: role, Name: claims.Name, User: claims.Subject}, At: time.Unix(0, ns), Nonce: nonce}
	if d := now.Sub(s.At); d > SignedFor || d < -SignedFor {
		return Signed{}, fault.New(fault.Denied, "signature of the call", "",
			fmt.Errorf("it was signed at %s, and it is %s: more than %s apart", s.At.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), SignedFor)).
			WithHint("set the clock of this machine and that of the controller: timedatectl status")
	}
	if claims.Expires != 0 && now.Unix() >= claims.Expires {
		return refuse(fmt.Errorf("the credentials of %s %s have expired", role, claims.Name))
	}
	return s, nil
}
