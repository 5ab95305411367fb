package escalate

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	version     = 1
	maxAsked    = 256 << 10 // a question may have many patterns
	maxAnswered = 256 << 10
	writeFor    = 5 * time.Second // after which a peer that does not read is given up
	helloFor    = 5 * time.Second
	firstRedial = 20 * time.Millisecond
	lastRedial  = 2 * time.Second
	connectWait = 5 * time.Second
)

// ClientOptions of a Client.
type ClientOptions struct {
	Path string // of the socket; "" is SocketPath
	// Late is told of calls that ended when nobody waited for them any more, each
	// once or, when the runtime is killed at that moment, by the next one again. It
	// must return soon: nothing else is read meanwhile. May be nil.
	Late   func(Late)
	Logger *slog.Logger
}

// Client is the runtime's end of the connection to the helper.
type Client struct {
	o ClientOptions

	mu      sync.Mutex // guards what follows, and writes
	nc      net.Conn   // nil while there is none
	users   bool       // the helper at its end serves user scope
	why     error      // why there is none
	changed chan struct{}
	pending map[string]*pending
}

// pending is a call that somebody waits for.
type pending struct {
	id      string
	line    []byte
	user    bool // it is about user scope
	pieces  []*piece
	sent    bool
	job     uint32
	stood   *Stood
	waiting int // who waits: a call that comes twice is one
	ended   chan struct{}
	end     answered // once ended is closed
}

// NewClient checks the options and starts nothing.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Path == "" {
		o.Path = SocketPath
	}
	if o.Logger == nil {
		return nil, fault.New(fault.Internal, "new client", o.Path, errors.New("no logger"))
	}
	return &Client{o: o, changed: make(chan struct{}), pending: map[string]*pending{}, why: errors.New("not connected yet")}, nil
}

// Run keeps the connection until ctx ends, and then returns nil. It may run once.
func (c *Client) Run(ctx context.Context) error {
	for delay := time.Duration(0); ctx.Err() == nil; pause(ctx, delay) {
		began := time.Now()
		why := c.connection(ctx)
		c.lost(why)
		if time.Since(began) > time.Second {
			delay = 0
		}
		if delay == 0 && ctx.Err() == nil {
			c.o.Logger.Warn("no connection to the root helper", "socket", c.o.Path, "error", why)
		}
		delay = min(max(2*delay, firstRedial), lastRedial)
	}
	return nil
}

// Do asks for one act and waits for its end, or with NoWait until its job is
// queued. Whatever the connection does meanwhile, it is done at most once. When
// ctx ends first the act goes on, and Late is told of its end; the Outcome then
// names the job if there is one.
//
// Errors, besides those of the helper: unavailable when it could not be asked
// within five seconds, or before ctx ended, and nothing was done; timeout and
// canceled when ctx ended.
func (c *Client) Do(ctx context.Context, r Request) (Outcome, error) {
	of := callOf(ctx)
	p, err := c.put(asked{ID: of.id(r), Call: of.ID, Since: of.since(), Act: r.Act, Unit: string(r.Unit), Scope: r.Scope, NoWait: r.NoWait, For: forWhom(ctx), Before: cut(r.Before, maxSay)})
	if err != nil {
		return Outcome{}, err
	}
	a, err := c.wait(ctx, p, r)
	if err != nil {
		return Outcome{Job: a.Job, Before: a.Stood}, err
	}
	out := a.End.Outcome // others may wait for the same end
	out.Before = a.Stood
	return out, a.End.err()
}

// asking stands for a question in errors.
const asking Act = "ask the root helper"

// Known are the acts that the helper took of the call that ctx is of, when that may
// have been asked before: whatever stands now, Do only tells their end. Errors are
// those of Do.
func (c *Client) Known(ctx context.Context) ([]Begun, error) {
	of := callOf(ctx)
	if of.ID == "" || of.Asked == 0 {
		return nil, nil
	}
	p, err := c.put(asked{ID: rand.Text(), About: of.ID})
	if err != nil {
		return nil, err
	}
	a, err := c.wait(ctx, p, Request{Act: asking})
	return a.Begun, err
}

// put sends what is asked, or joins those who wait for it.
func (c *Client) put(a asked) (*pending, error) {
	line, err := json.Marshal(a)
	if err != nil || len(line) >= maxAsked {
		return nil, fault.New(fault.Invalid, string(a.Act), a.Unit, errors.New("it cannot be written"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.Scope == unit.User && c.nc != nil && !c.users {
		return nil, fault.New(fault.Unsupported, string(a.Act), a.Unit, errors.New("the root helper is of a version that serves no user scope")).
			WithHint("systemctl restart stead-escalate.service")
	}
	p := c.pending[a.ID]
	if p == nil {
		p = &pending{id: a.ID, user: a.Scope == unit.User, line: append(line, '\n'), ended: make(chan struct{})}
		c.pending[a.ID] = p
		c.write(p)
	}
	p.waiting++
	return p, nil
}

// wait returns the answer, or an error with the job that is known.
func (c *Client) wait(ctx context.Context, p *pending, r Request) (answered, error) {
	patience := time.NewTimer(connectWait)
	defer patience.Stop()
	for {
		select {
		case <-p.ended:
			return p.end, nil
		case <-patience.C:
			if c.unsent(p) {
				return c.leave(ctx, p, r)
			}
		case <-ctx.Done():
			return c.leave(ctx, p, r)
		}
	}
}

func (c *Client) unsent(p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !p.sent
}

// leave is the answer when the caller waits no longer. From here on Late is told
// of the end.
func (c *Client) leave(ctx context.Context, p *pending, r Request) (answered, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-p.ended:
		return p.end, nil
	default:
	}
	if p.waiting--; p.waiting == 0 {
		delete(c.pending, p.id)
	}
	fail := func(class fault.Class, format string, args ...any) (answered, error) {
		return answered{Job: p.job, Stood: p.stood}, fault.New(class, string(r.Act), string(r.Unit), fmt.Errorf(format, args...))
	}
	class := fault.Timeout
	if errors.Is(ctx.Err(), context.Canceled) {
		class = fault.Canceled
	}
	switch {
	case !p.sent:
		return fail(fault.Unavailable, "the root helper was not asked: %w", c.why)
	case p.job != 0:
		return fail(class, "job %d has not ended; it goes on", p.job)
	}
	if r.Act == asking {
		return fail(class, "the root helper has not answered")
	}
	return fail(class, "the root helper has not answered; it may have been done")
}

// write sends a call; c.mu is held. One that does not get through is sent again
// by the next connection: the helper knows its id.
func (c *Client) write(p *pending) {
	if c.nc == nil || p.user && !c.users { // an older helper would take it for one of the system scope
		return
	}
	p.sent, p.pieces = true, nil
	c.send(p.line)
}

// send writes a line; c.mu is held.
func (c *Client) send(line []byte) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(writeFor))
	if _, err := c.nc.Write(line); err != nil {
		_ = c.nc.Close() // half a line may be out
	}
}

// connection makes one and reads from it until it is lost.
func (c *Client) connection(ctx context.Context) error {
	d := net.Dialer{Timeout: helloFor}
	nc, err := d.DialContext(ctx, "unix", c.o.Path)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	in := bufio.NewReaderSize(nc, maxAnswered)
	users, err := c.greet(nc, in)
	if err != nil {
		return err
	}
	c.attach(nc, users)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		var a answered
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		c.take(a)
	}
}

// greet waits until the helper says that it serves us, and whether user scope too.
// The nonce says that what we send was sent after it looked who we are.
func (c *Client) greet(nc net.Conn, in *bufio.Reader) (users bool, err error) {
	_ = nc.SetDeadline(time.Now().Add(helloFor))
	line, err := in.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	var a answered
	if err := json.Unmarshal(line, &a); err != nil {
		return false, err
	}
	switch {
	case a.Refused != "":
		return false, fault.New(fault.Denied, "connect", c.o.Path, errors.New(a.Refused))
	case a.Hello != version:
		return false, fault.New(fault.Unsupported, "connect", c.o.Path, fmt.Errorf("the root helper speaks version %d, and this is %d", a.Hello, version)).
			WithHint("restart stead-escalate.service and stead-runtime.service: they are of different versions")
	}
	answer, err := json.Marshal(asked{Nonce: a.Nonce})
	if err != nil {
		return false, err
	}
	if _, err := nc.Write(append(answer, '\n')); err != nil {
		return false, err
	}
	return a.Users, nc.SetDeadline(time.Time{})
}

// attach makes nc the connection, asks for what became of earlier calls, and
// sends what waits.
func (c *Client) attach(nc net.Conn, users bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.users, c.why = nc, users, nil
	c.send([]byte(`{"adopt":true}` + "\n"))
	for _, p := range c.pending {
		c.write(p)
	}
	close(c.changed)
	c.o.Logger.Info("connected to the root helper", "socket", c.o.Path)
}

func (c *Client) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nc != nil {
		c.changed = make(chan struct{})
	}
	c.nc, c.why = nil, err
}

// Wait waits until there is a connection, or ctx ends; the error is of class
// unavailable and says why there is none.
func (c *Client) Wait(ctx context.Context) error {
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fault.New(fault.Unavailable, "connect", c.o.Path, c.why)
	}
}

// take looks at one line of the helper's. Whoever asks for the same call again
// either gets this end or asks behind the word that it is known: in between the
// helper would hold it for told, and say nothing.
func (c *Client) take(a answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[a.ID]
	if p == nil && a.End != nil && c.o.Late != nil {
		c.mu.Unlock()
		c.o.Late(Late{ID: a.ID, Act: a.Act, Unit: a.Unit, Scope: a.Scope, For: a.For, Began: a.Began, Outcome: a.End.Outcome, Err: a.End.err()})
		c.mu.Lock()
		p = c.pending[a.ID]
	}
	if p != nil && a.Job != 0 {
		p.job, p.stood = a.Job, a.Stood
	}
	if p != nil && a.Piece != nil {
		p.pieces = append(p.pieces, a.Piece)
	}
	if p != nil && (a.End != nil || a.About != "" || a.Last) {
		p.end = a
		close(p.ended)
		delete(c.pending, a.ID)
	}
	if a.End == nil || c.nc == nil {
		return
	}
	if told, err := json.Marshal(asked{Told: []string{a.ID}}); err == nil {
		c.send(append(told, '\n'))
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
