package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/replace"
)

const (
	caLife     = 10 * 365 * 24 * time.Hour
	serverLife = 365 * 24 * time.Hour
	skew       = time.Hour // clocks of nodes may be behind
)

// authority is the mesh's own CA, as PEM and read.
type authority struct {
	certificate, key []byte
	cert             *x509.Certificate
	signer           crypto.Signer
}

func newAuthority(mesh string, now time.Time) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fault.New(fault.Internal, "make key", "CA", err)
	}
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "stead mesh " + mesh},
		NotBefore: now.Add(-skew), NotAfter: now.Add(caLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	certificate, err := sign(t, t, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	text, err := keyPEM(key)
	if err != nil {
		return authority{}, err
	}
	return readAuthority(certificate, text)
}

func readAuthority(certificate, key []byte) (authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return authority{}, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return authority{}, errors.New("no certificate of an authority")
	}
	return authority{certificate: certificate, key: key, cert: pair.Leaf, signer: signer}, nil
}

// CA is the certificate that clients of the mesh pin, as PEM.
func (m *Mesh) CA() string { return string(m.ca.certificate) }

// ServerTLS is how a NATS server of this mesh proves itself under hosts: DNS
// names and IP addresses, at least one. The certificate is kept in the folder;
// it is made anew when hosts are not what it says, or when only a third of its
// year is left, also while the server runs. The server takes TLS 1.3 and nothing
// less.
func (m *Mesh) ServerTLS(hosts []string, now func() time.Time) (*tls.Config, error) {
	if len(hosts) == 0 {
		return nil, fault.New(fault.Invalid, "server certificate", "", errors.New("no host name or address"))
	}
	s := &serving{mesh: m, hosts: slices.Clone(hosts), now: now}
	if err := s.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificate}, nil
}

// serving is the certificate of a server that runs.
type serving struct {
	mesh  *Mesh
	hosts []string
	now   func() time.Time

	mu   sync.Mutex
	pair *tls.Certificate
}

// certificate is what a client that connects is shown. When a new one is due and
// cannot be written, the old one goes on.
func (s *serving) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); !s.mesh.serves(s.pair.Leaf, s.hosts, now) {
		if err := s.load(); err != nil && now.After(s.pair.Leaf.NotAfter) {
			return nil, err
		}
	}
	return s.pair, nil
}

// load takes the certificate of the folder, or makes one that is not there or
// will not do.
func (s *serving) load() error {
	path := filepath.Join(s.mesh.dir, serverFile)
	text, err := readOwn(path)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil || !s.mesh.serves(pair.Leaf, s.hosts, s.now()) {
		if text, err = s.mesh.issue(s.hosts, s.now()); err != nil {
			return err
		}
		if err := replace.File(path, text, 0o600); err != nil {
			return err
		}
		if pair, err = tls.X509KeyPair(text, text); err != nil {
			return fault.New(fault.Internal, "server certificate", path, err)
		}
	}
	s.pair = &pair
	return nil
}

func (m *Mesh) serves(c *x509.Certificate, hosts []string, now time.Time) bool {
	if c.CheckSignatureFrom(m.ca.cert) != nil || now.Before(c.NotBefore) || now.After(c.NotAfter.Add(-serverLife/3)) {
		return false
	}
	for _, h := range hosts {
		if c.VerifyHostname(h) != nil {
			return false
		}
	}
	return len(c.DNSNames)+len(c.IPAddresses) == len(hosts)
}

func (m *Mesh) issue(hosts []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.New(fault.Internal, "make key", "server", err)
	}
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "stead controller"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	certificate, err := sign(t, m.ca.cert, key.Public(), m.ca.signer)
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(key)
	return append(certificate, text...), err
}

func sign(t, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fault.New(fault.Internal, "sign certificate", t.Subject.CommonName, err)
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, signer)
	if err != nil {
		return nil, fault.New(fault.Invalid, "sign certificate", t.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.New(fault.Internal, "make key", "", fmt.Errorf("encode: %w", err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
