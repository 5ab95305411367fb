package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/seats"
)

// MaxArguments is how many bytes the arguments of a call may have.
const MaxArguments = 64 << 10

// Margins by which a tool has to be done ahead of its caller's deadline, so that
// the answer still arrives: a tenth of the time, within these bounds.
const (
	leastMargin = 10 * time.Millisecond
	mostMargin  = 250 * time.Millisecond
)

// Options of a Dispatcher.
type Options struct {
	Node subject.Node
	// Record is told of every call, after its answer; it must return at once.
	Record func(Record)
	Logger *slog.Logger
	// CheckReplies holds every reply to its schema too, and answers internal when
	// it breaks it. For tests.
	CheckReplies bool
}

// Dispatcher hands calls to tools. See the package comment.
type Dispatcher struct {
	o Options

	mu      sync.Mutex // guards what follows
	tools   map[address]*served
	running sync.WaitGroup // handlers and streams; added to under mu
	closed  bool
}

// address is what a call names.
type address struct {
	seat subject.Seat
	verb subject.Verb
}

// served is a Tool with what was made of it.
type served struct {
	Tool
	arguments, reply *schema
	places           chan struct{}
}

// New returns a Dispatcher that serves nothing yet.
func New(o Options) (*Dispatcher, error) {
	if o.Node == "" || o.Record == nil || o.Logger == nil {
		return nil, fault.New(fault.Internal, "new dispatcher", string(o.Node), errors.New("node, record and logger are required"))
	}
	return &Dispatcher{o: o, tools: map[address]*served{}}, nil
}

// Serve makes tools what is served from now on, in place of all others. Calls
// that run go on. Nothing changes when it returns an error: a tool that cannot be
// served, or two of one name.
func (d *Dispatcher) Serve(tools []Tool) error {
	next := make(map[address]*served, len(tools))
	for _, t := range tools {
		s, err := d.make(t)
		if err != nil {
			return err
		}
		at := address{t.Seat, t.Is.Name}
		if old := next[at]; old != nil {
			return fault.New(fault.Conflict, "serve", fmt.Sprintf("%s.%s", at.seat, at.verb),
				fmt.Errorf("module %q serves it, and module %q does", old.Module, t.Module))
		}
		next[at] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tools = next
	return nil
}

func (d *Dispatcher) make(t Tool) (*served, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.Most == 0 {
		t.Most = DefaultMost
	}
	if t.Together == 0 {
		t.Together = 16
	}
	s := &served{Tool: t, places: make(chan struct{}, t.Together)}
	name := string(t.Seat) + "." + string(t.Is.Name)
	var err error
	if s.arguments, err = compile(name+" arguments", t.Is.Arguments); err != nil {
		return nil, err
	}
	if s.reply, err = compile(name+" reply", t.Is.Reply); err != nil {
		return nil, err
	}
	return s, nil
}

// Served are the verbs of a seat that are served now, sorted.
func (d *Dispatcher) Served(seat subject.Seat) []subject.Verb {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []subject.Verb
	for at := range d.tools {
		if at.seat == seat {
			all = append(all, at.verb)
		}
	}
	slices.Sort(all)
	return all
}

// Call answers one call. It returns by the deadline of ctx, whatever the tool
// does; the audit has it then.
func (d *Dispatcher) Call(ctx context.Context, r Request) ([]byte, error) {
	c := d.begin(r)
	reply, err := d.call(ctx, c)
	c.end(err)
	return reply, err
}

// Follow answers one call with a stream: it runs until the tool is at its end,
// fails, or heeds the end of ctx.
func (d *Dispatcher) Follow(ctx context.Context, r Request, s Stream) error {
	c := d.begin(r)
	c.record.Streamed = true
	err := d.follow(ctx, c, s)
	c.end(err)
	return err
}

// Turned records a call that was answered before it came here.
func (d *Dispatcher) Turned(r Request, streamed bool, err error) {
	c := d.begin(r)
	c.record.Streamed = streamed
	c.end(err)
}

// Wait closes the dispatcher, which then answers every call with unavailable,
// and waits for the tools that run until ctx ends. The error is of class timeout.
func (d *Dispatcher) Wait(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); d.running.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Timeout, "wait for tools", "", ctx.Err())
	}
}

// call is one call under way.
type call struct {
	d      *Dispatcher
	r      Request
	t      *served
	record Record
}

func (d *Dispatcher) begin(r Request) *call {
	if len(bytes.TrimSpace(r.Payload)) == 0 {
		r.Payload = []byte("{}")
	}
	return &call{d: d, r: r, record: newRecord(d.o.Node, r)}
}

func (c *call) object() string { return string(c.r.Seat) + "." + string(c.r.Verb) }

func (c *call) end(err error) {
	c.record.Took = time.Since(c.record.Began)
	c.record.Class, c.record.Text = fault.ClassOf(err), ""
	if err != nil {
		c.record.Text = err.Error()
	}
	c.d.o.Record(c.record)
}

// admit finds the tool, and holds the arguments to its schema. The caller calls
// the function when the tool has returned.
func (d *Dispatcher) admit(c *call) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fault.New(fault.Unavailable, "call", c.object(), errors.New("the runtime is stopping"))
	}
	t := d.tools[address{c.r.Seat, c.r.Verb}]
	if t == nil {
		return nil, d.unknown(c.r)
	}
	if len(c.r.Payload) > MaxArguments {
		return nil, fault.New(fault.Invalid, "arguments", c.object(), fmt.Errorf("%d bytes; at most %d", len(c.r.Payload), MaxArguments))
	}
	c.t = t
	d.running.Add(1)
	return d.running.Done, nil
}

// unknown says what of the name is not served; d.mu is held.
func (d *Dispatcher) unknown(r Request) error {
	var all, verbs []string
	for at := range d.tools {
		all = append(all, string(at.seat))
		if at.seat == r.Seat {
			verbs = append(verbs, string(at.verb))
		}
	}
	slices.Sort(all)
	if len(verbs) > 0 {
		return seats.Unknown("verb of seat "+string(r.Seat), string(r.Verb), verbs)
	}
	if slices.ContainsFunc(seats.Seeded(), func(s seats.Seat) bool { return s.Name == r.Seat }) {
		return fault.New(fault.NotFound, "call", string(r.Seat)+"."+string(r.Verb),
			fmt.Errorf("no module holds seat %q on node %q", string(r.Seat), string(d.o.Node)))
	}
	return seats.Unknown("seat", string(r.Seat), slices.Compact(all))
}

func (d *Dispatcher) call(ctx context.Context, c *call) ([]byte, error) {
	leave, err := d.admit(c)
	if err != nil {
		return nil, err
	}
	if err := c.check(false); err != nil {
		leave()
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, callerKey{}, c.r.Caller), c.deadline(ctx))
	defer cancel()
	if err := c.place(ctx); err != nil {
		leave()
		return nil, err
	}
	type answer struct {
		reply []byte
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer leave()
		defer func() { <-c.t.places }()
		var a answer
		a.err = c.guard(func() (err error) { a.reply, err = c.handle(ctx); return err })
		done <- a
	}()
	select {
	case a := <-done:
		return a.reply, c.explain(ctx, a.err)
	case <-ctx.Done():
	}
	// A tool that heeds its context knows better what became of the call.
	grace := time.NewTimer(leastMargin)
	defer grace.Stop()
	select {
	case a := <-done:
		return a.reply, c.explain(ctx, a.err)
	case <-grace.C:
		return nil, c.explain(ctx, ctx.Err())
	}
}

func (d *Dispatcher) follow(ctx context.Context, c *call, s Stream) error {
	leave, err := d.admit(c)
	if err != nil {
		return err
	}
	defer leave()
	if c.t.Stream == nil {
		return fault.New(fault.Unsupported, "call", c.object(), errors.New("the verb gives one answer and no stream"))
	}
	if err := c.check(true); err != nil {
		return err
	}
	return c.explain(ctx, c.guard(func() error { return c.t.Stream(ctx, c.r.Payload, s) }))
}

// check holds the arguments to the schema.
func (c *call) check(stream bool) error {
	if all := c.t.arguments.check(c.r.Payload); len(all) > 0 {
		return invalid(c.object(), all)
	}
	if !c.t.Is.Follows || stream {
		return nil
	}
	var asked struct {
		Follow bool `json:"follow"`
	}
	if err := json.Unmarshal(c.r.Payload, &asked); err != nil || asked.Follow {
		return invalid(c.object(), []problem{{"follow", "a call gets one answer; what follows is asked for as a stream", ""}})
	}
	return nil
}

// deadline is when the tool has to be done.
func (c *call) deadline(ctx context.Context) time.Time {
	most := time.Now().Add(c.t.Most)
	until, ok := ctx.Deadline()
	if !ok {
		return most
	}
	margin := min(max(time.Until(until)/10, leastMargin), mostMargin)
	if until = until.Add(-margin); until.Before(most) {
		return until
	}
	return most
}

// place waits for a place among the calls that run.
func (c *call) place(ctx context.Context) error {
	select {
	case c.t.places <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.t.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "call", c.object(), fmt.Errorf("busy: %d calls of it run", cap(c.t.places)))
	}
}

// guard runs a tool. A panic is an error of class internal.
func (c *call) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.d.o.Logger.Error("tool panicked", "tool", c.object(), "module", c.t.Module, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "call", c.object(), errors.New("the tool panicked"))
		}
	}()
	return f()
}

func (c *call) handle(ctx context.Context) ([]byte, error) {
	answer, err := c.t.Handle(ctx, c.r.Payload)
	if err != nil {
		return nil, err
	}
	var reply []byte
	if own, ok := answer.(interface{ JSON() []byte }); ok {
		reply = own.JSON()
	} else if reply, err = json.Marshal(answer); err != nil {
		return nil, fault.New(fault.Internal, "write the answer", c.object(), err)
	}
	if c.d.o.CheckReplies {
		if all := c.t.reply.check(reply); len(all) > 0 {
			return nil, fault.New(fault.Internal, "reply", c.object(), errors.New(all[0].String()))
		}
	}
	return reply, nil
}

// explain gives an error of a tool its class when it has none.
func (c *call) explain(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Timeout, "call", c.object(), errors.New("the tool was not done by the deadline; it may still be"))
	case ctx.Err() != nil:
		return fault.New(fault.Canceled, "call", c.object(), context.Cause(ctx))
	}
	return fault.New(fault.Internal, "call", c.object(), err)
}
