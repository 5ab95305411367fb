// Package controller assembles the process that owns mesh state: the mesh
// folder, the NATS server that comes with it, a connection of its own, the copy
// of mesh state, and the services that nodes and people ask.
//
// New checks and starts nothing; Run blocks until its context ends, and stops in
// reverse order what it started. Ready is closed when nodes and people are
// answered. What is decided is decided by pure packages (controller/assign,
// controller/admit) on a state that was read; what is written goes through
// controller/state, where every commit expects the state that it was decided on.
// So any number of controllers answer side by side, each call by whichever takes
// it, and nothing that must not be lost is in the memory of one.
//
// The mesh folder holds keys (mesh/identity), store (JetStream's files),
// epoch.json, which says which state this controller saw last, and servers.json,
// which says where it was last reached.
//
// Errors of Run are those after which a controller cannot go on: the folder is
// another's or not to be read, the store is not the one that this controller
// knows, the address is taken. Each names its cure.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/notify"
	"stead/mesh/subject"
	"stead/mesh/trail"
	"stead/modules"
	"stead/seats"
)

const (
	// DefaultListen is where the NATS server listens.
	DefaultListen = "0.0.0.0:4222"
	// DefaultDir is the mesh folder of the unit file's state directory.
	DefaultDir = "/var/lib/stead-controller"
	// DefaultStore is the bound of JetStream's files, in bytes.
	DefaultStore = 4 << 30
)

// Options are what a Controller is made of. Dir and Logger must be given.
type Options struct {
	Dir  string // the mesh folder; made when it is missing, its parent must exist
	Name string // of this controller, a DNS label; default: of the machine
	// Listen is HOST:PORT of the NATS server; port 0 takes a free one.
	Listen string
	// Hosts are the DNS names and IP addresses under which nodes and people reach
	// the server: its certificate is for them, URLs are made of them. Default: the
	// machine's name and addresses.
	Hosts []string
	// Servers are tls://HOST:PORT of NATS servers of this mesh that run already;
	// with them the controller runs none, and Listen and Hosts are not looked at.
	Servers []string
	// BeginEpoch begins a new epoch when the store is not the one that this
	// controller knows, or is not sound.
	BeginEpoch bool
	MaxStore   int64 // default DefaultStore
	// Seats and Modules are what comes with this version of stead; nil: all that is
	// built in.
	Seats   []seats.Seat
	Modules []modules.Manifest
	Version string // of stead
	Logger  *slog.Logger
	Clock   func() time.Time // default time.Now
}

// Controller is one controller. Make it with New and run it once.
type Controller struct {
	o     Options
	log   *slog.Logger
	ready chan struct{}

	mu   sync.Mutex
	urls []string
}

// New checks the options. It makes and starts nothing.
func New(o Options) (*Controller, error) {
	if o.Dir == "" || o.Logger == nil {
		return nil, fault.New(fault.Internal, "make controller", "", errors.New("folder and logger are required"))
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fault.New(fault.Invalid, "mesh folder", o.Dir, err)
	}
	o.Dir = dir
	if o.Name == "" {
		o.Name = machineName()
	}
	if err := subject.CheckLabel("controller", o.Name); err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if err := checkListen(o.Listen); err != nil {
		return nil, err
	}
	if o.MaxStore == 0 {
		o.MaxStore = DefaultStore
	}
	if o.Seats == nil {
		o.Seats = seats.Seeded()
	}
	if o.Modules == nil {
		o.Modules = modules.Catalogue()
	}
	if err := o.catalogue().Check(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if len(o.Servers) == 0 {
		if o.Hosts, err = hosts(o.Hosts); err != nil {
			return nil, err
		}
	}
	return &Controller{o: o, log: o.Logger, ready: make(chan struct{})}, nil
}

// Ready is closed when the controller answers.
func (c *Controller) Ready() <-chan struct{} { return c.ready }

// URLs are where nodes and people reach the mesh, the port that the server was
// given included; none before Ready.
func (c *Controller) URLs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.urls
}

// Run answers until ctx ends, and returns nil then.
func (c *Controller) Run(ctx context.Context) error {
	keys, err := openKeys(c.o.Dir, time.Now())
	if err != nil {
		return err
	}
	r := newRun(ctx, c.log)
	err = c.start(r, keys)
	if err == nil {
		close(c.ready)
		notify.Ready()
		c.log.Info("ready", "mesh", keys.ID(), "controller", c.o.Name, "urls", c.URLs())
		<-r.ctx.Done()
	}
	notify.Stopping()
	err = r.end(err)
	if err := lend(c.o.Dir); err != nil { // systemd may have given it away meanwhile, for a try of its own
		c.log.Warn("give folder back", "error", err)
	}
	return err
}

// start brings everything up, one on another.
func (c *Controller) start(r *run, keys *identity.Mesh) error {
	urls, err := c.serve(r, keys)
	if err != nil {
		return err
	}
	if err := writeServers(c.o.Dir, c.URLs()); err != nil {
		return err
	}
	conn, err := c.connect(r, keys, urls)
	if err != nil {
		return err
	}
	nodes, err := c.connect(r, keys, urls)
	if err != nil {
		return err
	}
	store, audit, err := c.open(r, keys, conn)
	if err != nil {
		return err
	}
	r.begin("mesh state", store.Run)
	d := newDesk(means{r.ctx, keys, conn, store, audit, c.o.catalogue(), "controller " + c.o.Name, c.log, c.o.Clock})
	r.begin("audit", func(ctx context.Context) error { return d.audit.run(ctx, store.Now()) })
	if err := d.seeding(r); err != nil {
		return err
	}
	for _, of := range []struct {
		what string
		on   *mesh.Conn
		ends []mesh.Endpoint
	}{{"people", conn, d.ofPeople()}, {"nodes", nodes, d.ofNodes()}} {
		if err := c.answer(r, of.what, of.on, of.ends); err != nil {
			return err
		}
	}
	r.begin("watchdog", func(ctx context.Context) error { return notify.Watchdog(ctx, c.alive(conn)) })
	return nil
}

// answer begins to answer on a connection, and returns when calls get through.
func (c *Controller) answer(r *run, what string, conn *mesh.Conn, ends []mesh.Endpoint) error {
	service, err := mesh.NewService(conn, mesh.ServiceOptions{
		Name: "controller-" + what, Version: c.o.Version, Endpoints: ends, Drain: drainFor, Logger: c.log,
	})
	if err != nil {
		return err
	}
	r.begin("service for "+what, service.Run)
	select {
	case <-service.Ready():
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// alive asks a NATS server of this controller's own: one that hangs gets it
// restarted. That of somebody else does not, since that would cure nothing.
func (c *Controller) alive(conn *mesh.Conn) func(context.Context) error {
	if len(c.o.Servers) > 0 {
		return func(context.Context) error { return nil }
	}
	return conn.Wait
}

// open reads mesh state. A NATS server that is somebody else's may not have
// what it needs yet: that is waited for.
func (c *Controller) open(r *run, keys *identity.Mesh, conn *mesh.Conn) (*state.Store, *trail.Trail, error) {
	for {
		store, audit, err := c.openOnce(r.ctx, keys, conn)
		if err == nil || len(c.o.Servers) == 0 || !fault.ClassOf(err).Retry() || r.ctx.Err() != nil {
			return store, audit, err
		}
		c.log.Warn("mesh state cannot be opened", "error", err, "retry", openPause)
		select {
		case <-time.After(openPause):
		case <-r.ctx.Done():
		}
	}
}

const openPause = time.Second

func (c *Controller) openOnce(ctx context.Context, keys *identity.Mesh, conn *mesh.Conn) (*state.Store, *trail.Trail, error) {
	store, err := state.Open(ctx, state.Options{
		Conn: conn, Mesh: keys.ID(), Key: keys.DeclarationKey(), Marker: filepath.Join(c.o.Dir, markerFile),
		BeginEpoch: c.o.BeginEpoch, By: "controller " + c.o.Name, Logger: c.log, Clock: c.o.Clock,
	})
	if err != nil {
		return nil, nil, err
	}
	audit, err := trail.Open(ctx, conn, trail.Options{Logger: c.log})
	return store, audit, err
}
