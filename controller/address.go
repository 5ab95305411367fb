package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/server"
)

// loopback is where the controller itself reaches a server that listens on every
// address.
const loopback = "127.0.0.1"

// serve starts the NATS server, unless there are some already, and returns where
// this controller reaches it.
func (c *Controller) serve(r *run, keys *identity.Mesh) ([]string, error) {
	if len(c.o.Servers) > 0 {
		c.setURLs(c.o.Servers)
		return c.o.Servers, nil
	}
	own := dialHost(c.o.Listen)
	named := slices.Clone(c.o.Hosts)
	if !slices.Contains(named, own) {
		named = append(named, own)
	}
	trust, err := keys.Trust(identity.Permissions(), nil)
	if err != nil {
		return nil, err
	}
	tls, err := keys.ServerTLS(named, time.Now)
	if err != nil {
		return nil, err
	}
	s, err := server.New(server.Options{
		Name: c.o.Name, Listen: c.o.Listen, Store: filepath.Join(c.o.Dir, storeDir), MaxStore: c.o.MaxStore,
		Trust: trust, TLS: tls, Logger: c.log,
	})
	if err != nil {
		return nil, err
	}
	r.begin("NATS server", s.Run)
	select {
	case <-s.Ready():
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "tls://"))
	if err != nil {
		return nil, fault.New(fault.Internal, "listen", s.URL(), err)
	}
	var urls []string
	for _, host := range c.o.Hosts {
		urls = append(urls, "tls://"+net.JoinHostPort(host, port))
	}
	c.setURLs(urls)
	return []string{"tls://" + net.JoinHostPort(own, port)}, nil
}

func (c *Controller) setURLs(urls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.urls = urls
}

// connect connects as a user that is made now and that nobody else ever is.
func (c *Controller) connect(r *run, keys *identity.Mesh, urls []string) (*mesh.Conn, error) {
	who, err := keys.Mint(identity.Request{Role: identity.Controller, Name: c.o.Name, URLs: urls})
	if err != nil {
		return nil, err
	}
	conn, err := mesh.Connect(context.WithoutCancel(r.ctx), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil },
		Name:        "controller " + c.o.Name, Logger: c.log,
	})
	if err != nil {
		return nil, err
	}
	r.after(conn.Close)
	return conn, conn.Wait(r.ctx)
}

// dialHost is the host of the address to listen on, or the loopback when it is
// every address.
func dialHost(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "" {
		return loopback
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return loopback
	}
	return host
}

// dnsName is a name that a certificate can be for.
var dnsName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?$`)
})

// checkListen returns an error when listen is no address to listen on: whoever
// writes it into a unit wants to know before.
func checkListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host != "" && net.ParseIP(host) == nil && !dnsName().MatchString(host) {
		return fault.New(fault.Invalid, "listen", fmt.Sprintf("%q", listen), errors.New("must be HOST:PORT, with a port from 0 to 65535")).
			WithHint("such as " + DefaultListen)
	}
	return nil
}

// hosts are the names under which the server is reached, without double ones, in
// their order: those that are given, or all that this machine has.
func hosts(given []string) ([]string, error) {
	if len(given) == 0 {
		return machineHosts(), nil
	}
	var all []string
	for _, host := range given {
		if net.ParseIP(host) == nil && (len(host) > 253 || !dnsName().MatchString(host)) {
			return nil, fault.New(fault.Invalid, "host", fmt.Sprintf("%q", host), fmt.Errorf("must be a DNS name or an IP address, without a port"))
		}
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all, nil
}

// machineHosts are the machine's name and every address of it that another
// machine could reach; the loopback when there is none.
func machineHosts() []string {
	var all []string
	if name, err := os.Hostname(); err == nil && dnsName().MatchString(name) {
		all = append(all, name)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		addresses = nil
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return append(all, "localhost", loopback)
}

// machineName is the first label of the machine's name.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return "controller"
	}
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if name = strings.Trim(name, "-"); name == "" {
		return "controller"
	}
	return name
}
