// Package server runs the NATS server that a controller brings along, with the
// settings that stead's mesh state needs and no others.
//
// New checks and starts nothing, Run serves until its context ends, Ready tells
// when URL answers. The server believes only the claims that it was given
// (mesh/identity renders them), listens with TLS 1.3 alone, lets nobody in
// without credentials, and syncs every write of JetStream to the disk before it
// is acknowledged. It stands alone: it is never part of a cluster, since a store
// that was written by a server alone is deleted by one in a cluster.
//
// One process owns the store; a second one is refused. Update changes who may
// do what while the server runs. All errors are *fault.Error; methods are safe
// for concurrent use.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	nats "github.com/nats-io/nats-server/v2/server"

	"stead/host/fault"
	"stead/mesh/identity"
)

// startFor is how long the server may take until it answers: it reads its whole
// store first (57 ms with 10,000 keys).
const startFor = time.Minute

// startStep is how often it is asked meanwhile.
const startStep = 100 * time.Millisecond

// Options are what a server is made of. All but Cluster must be given.
type Options struct {
	// Name is the server's own; it stays the same over restarts and is no other
	// server's.
	Name string
	// Listen is HOST:PORT. Port 0 takes a free one.
	Listen string
	// Store is the folder of JetStream's files, on a local disk. It is made when
	// it is missing.
	Store string
	// MaxStore bounds JetStream's files, in bytes.
	MaxStore int64
	// Trust is who may do what.
	Trust identity.Trust
	// TLS is the server's certificate.
	TLS *tls.Config
	// Cluster names the cluster that the server would join. This server joins
	// none: a name is refused, with what would be lost.
	Cluster string
	Logger  *slog.Logger
}

// Server is one embedded NATS server.
type Server struct {
	options  *nats.Options
	resolver *nats.MemAccResolver
	store    store
	log      *slog.Logger
	ready    chan struct{}

	mu  sync.Mutex
	ran bool
	ns  *nats.Server // while it serves
	url string
}

// New checks the options and the store. It is refused when the store was
// written in a cluster, or when a cluster is named; conflict when the store is
// another mesh's.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{
		store: store{dir: o.Store, mesh: o.Trust.System}, log: o.Logger, ready: make(chan struct{}), resolver: &nats.MemAccResolver{},
	}
	if err := s.store.check(o.Cluster); err != nil {
		return nil, err
	}
	for key, claims := range o.Trust.Accounts {
		if err := s.resolver.Store(key, claims); err != nil {
			return nil, fault.New(fault.Internal, "load account", key, err)
		}
	}
	var err error
	s.options, err = settings(o, s.resolver)
	return s, err
}

func (o Options) check() error {
	missing := ""
	switch {
	case o.Name == "":
		missing = "Name"
	case o.Store == "":
		missing = "Store"
	case o.MaxStore <= 0:
		missing = "MaxStore"
	case o.TLS == nil || len(o.TLS.Certificates) == 0 && o.TLS.GetCertificate == nil:
		missing = "TLS"
	case o.Logger == nil:
		missing = "Logger"
	case len(o.Trust.Accounts) == 0:
		missing = "Trust"
	default:
		return nil
	}
	return fault.New(fault.Invalid, "server options", missing, errors.New("must be given"))
}

// Run serves until ctx ends, and returns when every connection and file is
// closed. It returns nil after an end that ctx asked for. It runs once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.ran
	s.ran = true
	s.mu.Unlock()
	if again {
		return fault.New(fault.Internal, "run NATS server", s.options.ServerName, errors.New("it ran already"))
	}
	release, err := s.store.take(s.options.ServerName)
	if err != nil {
		return err
	}
	defer release()
	ns, err := nats.NewServer(s.options)
	if err != nil {
		return fault.New(fault.Invalid, "run NATS server", s.options.ServerName, err)
	}
	log := &logger{to: s.log}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	defer func() {
		s.mu.Lock()
		s.ns = nil
		s.mu.Unlock()
		ns.Shutdown()
		ns.WaitForShutdown()
	}()
	err = started(ctx, ns, log)
	if ctx.Err() != nil {
		return nil // it is to end, whether it started or not
	}
	if err != nil {
		return fault.New(fault.Failed, "start NATS server", s.options.ServerName, err)
	}
	s.mu.Lock()
	s.ns, s.url = ns, "tls://"+ns.Addr().String()
	s.mu.Unlock()
	close(s.ready)
	<-ctx.Done()
	return nil
}

// started waits until the server answers, says that it cannot, or ctx ends.
func started(ctx context.Context, ns *nats.Server, log *logger) error {
	for left := startFor; left > 0 && ctx.Err() == nil; left -= startStep {
		if ns.ReadyForConnections(startStep) {
			return nil
		}
		if err := log.fatal(); err != nil {
			return err
		}
	}
	return errSilent
}

// Ready is closed when the server answers.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// URL is where the server listens, with the port that it was given; "" before
// Ready. When it listens on every address the host in it is no address to dial.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Update puts new claims in force at once: who lost a right or was revoked is
// cut off. Users of a role whose row changed are cut off too, and may come back.
// It is unavailable while the server does not serve.
func (s *Server) Update(t identity.Trust) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ns == nil {
		return fault.New(fault.Unavailable, "update accounts", s.options.ServerName, errors.New("the server does not serve"))
	}
	for key, text := range t.Accounts {
		claims, err := jwt.DecodeAccountClaims(text)
		if err != nil {
			return fault.New(fault.Invalid, "update account", key, err)
		}
		if err := s.resolver.Store(key, text); err != nil {
			return fault.New(fault.Internal, "update account", key, err)
		}
		account, err := s.ns.LookupAccount(key)
		if err != nil {
			return fault.New(fault.Invalid, "update account", key, err)
		}
		s.ns.UpdateAccountClaims(account, claims)
	}
	return nil
}

// hostPort splits an address to listen on.
func hostPort(listen string) (string, int, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fault.New(fault.Invalid, "listen", fmt.Sprintf("%q", listen), err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, fault.New(fault.Invalid, "listen", fmt.Sprintf("%q", listen), errors.New("the port is no number from 0 to 65535"))
	}
	if n == 0 {
		return host, nats.RANDOM_PORT, nil
	}
	return host, int(n), nil
}
