package mesh

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"stead/host/fault"
	"stead/mesh/identity"
)

// dial makes one attempt at each server that the credentials name, with the
// credentials as they are now.
func (c *Conn) dial() (*Session, error) {
	who, err := c.credentials()
	if err != nil {
		return nil, err
	}
	s := &Session{c: c, closed: make(chan struct{})}
	options, err := c.options(s, who)
	if err != nil {
		return nil, err
	}
	if s.nc, err = options.Connect(); err != nil {
		return nil, dialFault(err)
	}
	return s, nil
}

func (c *Conn) options(s *Session, who identity.Credentials) (nats.Options, error) {
	secure, err := who.TLS()
	if err != nil {
		return nats.Options{}, err
	}
	o := nats.GetDefaultOptions()
	o.Servers = who.URLs
	o.Name = c.name
	o.InboxPrefix = who.Inbox()
	o.Secure = true
	o.TLSConfig = secure
	o.CustomDialer = dialer{c.life}
	o.UserJWT = func() (string, error) { return who.JWT, nil }
	o.SignatureCB = func(nonce []byte) ([]byte, error) { return sign(who, nonce) }

	o.AllowReconnect = false // see run
	o.Timeout = dialTimeout
	o.FlusherTimeout = dialTimeout // of one write
	o.PingInterval = c.ping
	o.MaxPingsOut = 1
	o.PermissionErrOnSubscribe = true

	o.ClosedCB = func(*nats.Conn) { close(s.closed) }
	o.AsyncErrorCB = c.hear
	return o, nil
}

// sign proves to the server that this user holds the key.
func sign(who identity.Credentials, nonce []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(who.Seed))
	if err != nil {
		return nil, fault.New(fault.Invalid, "sign", who.Name, err)
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}

// dialer ends an attempt when the connection is closed.
type dialer struct{ life context.Context }

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	n := net.Dialer{Timeout: dialTimeout}
	return n.DialContext(d.life, network, address)
}

// hear takes what the server says outside of any answer.
func (c *Conn) hear(_ *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		// It never says to which request it belongs (there are no ids in the
		// protocol), but to which subject.
		c.log.Error("server refused a subject", "name", c.name, "error", err)
		c.asks.deny(quoted(err.Error()), err)
	case errors.Is(err, nats.ErrSlowConsumer) && sub != nil:
		c.log.Warn("messages were dropped", "name", c.name, "subject", sub.Subject, "error", err)
	default:
		c.log.Warn("server reported", "name", c.name, "error", err)
	}
}

// quoted is what stands between the first and the last quotation mark of s.
func quoted(s string) string {
	from, to := strings.IndexByte(s, '"'), strings.LastIndexByte(s, '"')
	if from < 0 || to <= from {
		return ""
	}
	return s[from+1 : to]
}

// dialFault says why there is no connection. Denied: this server does not take
// these credentials, or is not the one that they were made for.
func dialFault(err error) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var known *fault.Error
	switch {
	case err == nil:
		return errClosed()
	case errors.As(err, &known):
		return err
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired),
		errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return fault.New(fault.Denied, "", "", err)
	}
	if errors.Is(err, nats.ErrNoServers) {
		err = errors.New("connection refused") // the only error of dialing that nats.go does not pass on
	}
	return fault.New(fault.Unavailable, "", "", err)
}
