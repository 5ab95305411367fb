package escalate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	// maxCalls is how many calls are under way, jobs that hang included.
	maxCalls = 512
	// maxUserCalls is how many of user scope are, besides: jobs there hang as the account
	// has it.
	maxUserCalls = 128
	// maxActs is how many calls are looked at and begun at one time, in each scope.
	maxActs = 64
	// actFor bounds everything of an act but the wait for its job.
	actFor = 60 * time.Second
	// afterFor bounds a look at how a unit stands behind its job.
	afterFor = 2 * time.Second
	// stopFor bounds how long a helper that ends waits for acts that it began.
	stopFor = 5 * time.Second
	// fresh is how long PID 1's word holds against those who are not the main
	// process, so that they cannot keep PID 1 busy by knocking.
	fresh = 20 * time.Millisecond
)

// manager is PID 1: host/systemd.Manager of the system scope.
type manager interface {
	units
	processes
	Mark(name unit.Name) unit.Mark
}

// Options of a Server.
type Options struct {
	Listener *net.UnixListener
	Manager  manager
	Unit     unit.Name // whose main process may ask; "" is Runtime
	// Calls is the file of the calls under way: it must outlive the process and not
	// the boot. "" keeps none, and then what was under way when the helper ends is
	// not known.
	Calls  string
	Logger *slog.Logger

	// Users makes the connections to the manager of an account, and has dialed told how
	// each try of the Manager's to connect ended; nil: user scope is not served.
	Users func(g *Guard, dialed func(error)) (Users, error)
	// Login is the uid of a login of this machine; NotFound when there is none. It is
	// required with Users.
	Login func(name string) (uid uint32, err error)
	// Account is the file with the account; "" is AccountPath.
	Account string
}

// Server is the root helper.
type Server struct {
	o        Options
	book     *book
	began    time.Time     // what was begun before was by an earlier helper
	acts     chan struct{} // taken while a call is looked at and begun
	userActs chan struct{} // those of user scope
	reads    *reads
	system   *side
	tenants  *tenants // nil: user scope is not served
	resumed  sync.Map // ids of acts of an earlier helper that this one went on with
	wg       sync.WaitGroup

	mu      sync.Mutex // guards what follows
	current *conn      // the runtime's newest connection; nil while there is none
	refused int        // connections
}

// New checks the options, reads the calls of the helper before, and starts
// nothing. The server closes the listener.
func New(o Options) (*Server, error) {
	if o.Unit == "" {
		o.Unit = Runtime
	}
	if o.Account == "" {
		o.Account = AccountPath
	}
	if o.Listener == nil || o.Manager == nil || o.Logger == nil || o.Users != nil && o.Login == nil {
		return nil, fault.New(fault.Internal, "new root helper", "", errors.New("listener, manager and logger are required, and with users logins"))
	}
	b, err := openBook(o.Calls)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, book: b, began: time.Now(), acts: make(chan struct{}, maxActs), userActs: make(chan struct{}, maxActs), reads: newReads()}
	s.system = newSide(s, o.Manager, owner{})
	if o.Users != nil {
		s.tenants = &tenants{s: s, known: accounts{o.Account, o.Login}, keep: tenantIdle, wake: make(chan struct{}, 1)}
	}
	return s, nil
}

// Run serves until ctx ends, and then returns nil. Acts that were begun are
// finished, for five seconds at most; jobs go on, and the next helper tells their
// end. It may run once, while the manager runs.
func (s *Server) Run(ctx context.Context) error {
	// Acts outlive the context that ends the server.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s.system.reloads.life = life
	s.wg.Go(func() { s.system.watch(ctx, life) })
	if s.tenants != nil {
		s.tenants.life = life
		s.wg.Go(func() { s.tenants.tend(ctx) })
	}
	stop := context.AfterFunc(ctx, func() { _ = s.o.Listener.Close() })
	defer stop()
	err := s.accept(ctx, life)
	s.disconnect()
	done := make(chan struct{})
	go func() { defer close(done); s.wg.Wait() }()
	late := time.NewTimer(stopFor)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		end()
		<-done
	}
	if s.tenants != nil {
		s.tenants.close()
	}
	return errors.Join(err, s.book.close())
}

// accept takes connections, one after the other.
func (s *Server) accept(ctx, life context.Context) error {
	var word unit.Process
	var mark unit.Mark
	var asked time.Time
	for number := 1; ; number++ {
		nc, err := s.o.Listener.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return fault.New(fault.Failed, "accept", s.o.Listener.Addr().String(), err)
			}
			s.o.Logger.Error("no connection can be accepted", "error", err, "retry", time.Second)
			pause(ctx, time.Second)
			continue
		}
		from, err := connector(nc)
		if err != nil {
			s.refuse(nc, from, err.Error())
			continue
		}
		if from.is(word) || time.Since(asked) > fresh {
			mark = s.o.Manager.Mark(s.o.Unit)
			if word, err = s.process(life); err != nil {
				s.refuse(nc, from, err.Error())
				continue
			}
			asked = time.Now()
		}
		if !from.is(word) {
			s.refuse(nc, from, "it is not the main process of "+string(s.o.Unit))
			continue
		}
		c := &conn{s: s, number: number, nc: nc, from: from, word: word, told: map[string]bool{}}
		at := mark
		c.mark.Store(&at)
		s.wg.Go(func() { c.serve(life) })
	}
}

// process is PID 1's word on who may ask.
func (s *Server) process(ctx context.Context) (unit.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, actFor)
	defer cancel()
	return s.o.Manager.Process(ctx, s.o.Unit)
}

// refuse tells a peer why it is not served. The log has the first, the second,
// the fourth and so on, so it is not filled from outside.
func (s *Server) refuse(nc *net.UnixConn, from process, why string) {
	s.mu.Lock()
	s.refused++
	n := s.refused
	s.mu.Unlock()
	if n&(n-1) == 0 {
		s.o.Logger.Warn("connection refused", "pid", from.pid, "uid", from.uid, "reason", why, "refused", n)
	}
	if line, err := json.Marshal(answered{Refused: why}); err == nil {
		_ = nc.SetWriteDeadline(time.Now().Add(time.Millisecond)) // it fits into the socket's buffer, or is lost
		_, _ = nc.Write(append(line, '\n'))
	}
	_ = nc.Close()
}

// become makes c the connection, in place of the one before. One that was greeted
// behind a newer one is closed.
func (s *Server) become(c *conn) {
	s.mu.Lock()
	old := s.current
	if old == nil || old.number < c.number {
		s.current = c
	} else {
		old = c
	}
	s.mu.Unlock()
	if old != nil {
		_ = old.nc.Close()
	}
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.current = nil
	}
}

func (s *Server) disconnect() {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c != nil {
		_ = c.nc.Close()
	}
}

// tell tells the runtime of a call, when there is one.
func (s *Server) tell(e *entry) {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c != nil {
		c.tell(e)
	}
}

// conn is one connection of the runtime.
type conn struct {
	s      *Server
	number int // in the order in which they were made
	nc     *net.UnixConn
	from   process
	word   unit.Process              // PID 1's, when it connected
	mark   atomic.Pointer[unit.Mark] // behind which PID 1 said nothing new of who may ask

	mu   sync.Mutex      // guards writes and what follows
	told map[string]bool // calls whose end was told here and that are not forgotten
}

// serve reads from a connection until it ends.
func (c *conn) serve(life context.Context) {
	log := c.s.o.Logger.With("pid", c.from.pid)
	defer func() { _ = c.nc.Close() }()
	in := newLines(c.nc, c.from)
	if err := c.greet(in); err != nil {
		log.Warn("connection ended before it began", "error", err)
		return
	}
	c.s.become(c)
	defer c.s.leave(c)
	log.Info("the runtime is connected")
	for {
		line, err := in.line()
		var stranger *strangerError
		switch {
		case errors.As(err, &stranger):
			log.Warn("connection closed: it was not the runtime that sent", "sender", stranger.sender.pid, "uid", stranger.sender.uid)
			return
		case err != nil:
			log.Info("the runtime is gone", "reason", err)
			return
		}
		var a asked
		if err := json.Unmarshal(line, &a); err != nil {
			log.Warn("connection closed: a line is no request", "error", err)
			return
		}
		c.take(life, a)
	}
}

// greet wants an answer that was made after PID 1 said who the main process is.
func (c *conn) greet(in *lines) error {
	nonce := rand.Text()
	if err := c.send(answered{Hello: version, Nonce: nonce, Users: c.s.tenants != nil}); err != nil {
		return err
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(helloFor)); err != nil {
		return err
	}
	line, err := in.line()
	if err != nil {
		return err
	}
	var a asked
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Nonce != nonce {
		return errors.New("the peer does not repeat what it was told")
	}
	return c.nc.SetReadDeadline(time.Time{})
}

// take looks at one line.
func (c *conn) take(life context.Context, a asked) {
	switch {
	case len(a.Told) > 0:
		if err := c.s.book.told(a.Told); err != nil {
			c.s.o.Logger.Error("calls are not noted", "error", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, id := range a.Told {
			delete(c.told, id)
		}
	case a.Read != "":
		c.s.read(life, c, a)
	case a.About != "":
		_ = c.send(answered{ID: a.ID, About: a.About, Begun: c.s.book.about(a.About)})
	case a.Adopt:
		for _, e := range c.s.book.all(func(e *entry) bool { return e.End != nil }) {
			c.tell(&e)
		}
	default:
		c.s.call(life, c, a)
	}
}

// tell tells of a call; its end once.
func (c *conn) tell(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.End != nil {
		if c.told[e.ID] {
			return
		}
		c.told[e.ID] = true
	}
	_ = c.write(e.answer())
}

func (c *conn) send(a answered) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(a)
}

// write writes a line; c.mu is held. A peer that does not read is given up.
func (c *conn) write(a answered) error {
	line, err := json.Marshal(a)
	if err == nil && len(line) >= maxAnswered && a.ID != "" {
		long := failed(fault.New(fault.Failed, string(a.Act), string(a.Unit), errors.New("what systemd says is too long for an answer")))
		short := answered{ID: a.ID, Act: a.Act, Unit: a.Unit, Scope: a.Scope, For: a.For, Began: a.Began, Job: a.Job}
		if a.Piece != nil || a.Last {
			short.Last, short.Fault = true, long.Fault
		} else {
			short.End = long
		}
		line, err = json.Marshal(short)
	}
	if err == nil && len(line) >= maxAnswered {
		err = errors.New("an answer is too long")
	}
	if err == nil {
		_ = c.nc.SetWriteDeadline(time.Now().Add(writeFor))
		_, err = c.nc.Write(append(line, '\n'))
	}
	if err != nil {
		_ = c.nc.Close()
	}
	return err
}
