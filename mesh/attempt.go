package mesh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"stead/host/fault"
	"stead/mesh/identity"
)

// flow is the caller's end of one attempt at a stream.
type flow struct {
	window int64
	wake   chan struct{} // capacity one: there is something to take, or the end
	grant  chan struct{} // capacity one: there is something to grant

	mu     sync.Mutex
	queue  []Chunk
	came   int64 // chunks that came
	held   int64 // cost of those in queue
	taken  int64 // cost of those that were taken
	told   int64 // what was granted by the last control message
	heard  time.Time
	begun  bool // the handler was heard
	closed bool // the handler said the end
	err    error
}

// attempt asks for the stream behind the cursor, once, and takes what comes until
// its end. Nil is the end of the stream.
func (f *follower) attempt(ctx context.Context) error {
	s, err := f.session(ctx)
	if err != nil {
		return err
	}
	token := rand.Text()
	to, err := controlOf(f.subject, token)
	if err != nil {
		return err
	}
	ctx, end := s.Within(ctx)
	defer end()
	ctx, end = f.c.asks.begin(ctx, f.subject)
	defer end()
	ctx, end = f.c.asks.begin(ctx, to)
	defer end()
	fl := &flow{window: int64(f.o.Window), wake: make(chan struct{}, 1), grant: make(chan struct{}, 1), heard: time.Now()}
	inbox := s.nc.NewInbox()
	sub, err := s.nc.Subscribe(inbox, fl.receive)
	if err != nil {
		return sendFault(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	// What comes is looked at without waiting; this is for a burst.
	if err := sub.SetPendingLimits(f.o.Window/chunkCost+hints, f.o.Window+2*identity.MaxPayload); err != nil {
		return sendFault(err)
	}
	header := nats.Header{streamHeader: []string{token}, grantHeader: []string{strconv.FormatInt(fl.window, 10)}}
	if err := s.nc.PublishMsg(&nats.Msg{Subject: f.subject, Reply: inbox, Data: f.o.Request(f.cursor), Header: header}); err != nil {
		return sendFault(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); fl.speak(s, to, f.c.timeout, stop) }()
	err = f.take(ctx, fl)
	close(stop)
	<-stopped
	if fl.lives() {
		f.good = time.Now()
	}
	return err
}

// take hands on what comes until the attempt ends.
func (f *follower) take(ctx context.Context, fl *flow) error {
	for {
		chunk, ok, err := fl.next()
		switch {
		case ok:
			if err := f.o.Take(chunk); err != nil {
				return takerError{err}
			}
			f.cursor = chunk.Cursor
			fl.took(chunk)
			if ctx.Err() == nil {
				continue
			}
		case err != nil && errors.Is(err, errEnd):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-fl.wake:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errLost) {
				return fault.New(fault.Unavailable, "", "", errLost)
			}
			return callFault(ctx, ctx.Err())
		}
	}
}

// errEnd is why a flow ended whose handler is done.
var errEnd = errors.New("the end")

// next is the next chunk, or, when there is none any more, why.
func (fl *flow) next() (Chunk, bool, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if len(fl.queue) == 0 {
		return Chunk{}, false, fl.err
	}
	c := fl.queue[0]
	fl.queue[0] = Chunk{}
	fl.queue = fl.queue[1:]
	return c, true, nil
}

func (fl *flow) lives() bool {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	return fl.begun
}

// took grants anew what a chunk had taken, a quarter of the window at a time.
func (fl *flow) took(c Chunk) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.held -= cost(c)
	fl.taken += cost(c)
	if fl.taken+fl.window-fl.told >= fl.window/4 {
		poke(fl.grant)
	}
}

func cost(c Chunk) int64 { return int64(len(c.Payload)) + chunkCost }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receive takes what the handler says, and never waits.
func (fl *flow) receive(m *nats.Msg) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.err != nil {
		return
	}
	fl.heard = time.Now()
	seq, counted := number(m, seqHeader)
	kind := m.Header.Get(kindHeader)
	c := Chunk{Payload: m.Data, Cursor: m.Header.Get(cursorHeader)}
	switch {
	case len(m.Data) == 0 && m.Header.Get("Status") == "503":
		fl.stop(fault.New(fault.Unavailable, "", "", errors.New("nobody serves it")))
	case kind == "" && m.Header.Get(micro.ErrorCodeHeader) != "":
		fl.stop(faultIn(m)) // it was not taken
	case !counted || kind == "":
		fl.stop(fault.New(fault.Unsupported, "", "", errors.New("the answer is no stream")))
	case seq != fl.came:
		fl.stop(fault.New(fault.Unavailable, "", "", fmt.Errorf("%d chunks were lost on the way", seq-fl.came)))
	case kind == kindBeat:
		fl.begun = true
		poke(fl.wake)
	case kind == kindChunk && (checkCursor(c.Cursor) != nil || fl.held >= fl.window):
		fl.stop(fault.New(fault.Failed, "", "", fmt.Errorf("the node breaks the rules of a stream: cursor %q, %d bytes ahead", c.Cursor, fl.held)))
	case kind == kindChunk:
		fl.begun = true
		fl.came++
		fl.held += cost(c)
		fl.queue = append(fl.queue, c)
		poke(fl.wake)
	default:
		fl.finish(kind, m)
	}
}

// finish takes the handler's last word. The lock is held.
func (fl *flow) finish(kind string, m *nats.Msg) {
	fl.begun, fl.closed = true, true
	err := faultIn(m)
	switch {
	case kind == kindAgain:
		err = fault.New(fault.Unavailable, "", "", errAgain)
	case err == nil && kind == kindEnd:
		err = errEnd
	case err == nil:
		err = fault.New(fault.Unsupported, "", "", fmt.Errorf("an answer of the kind %q", kind))
	}
	fl.stop(err)
}

// stop notes why nothing more comes. The lock is held.
func (fl *flow) stop(err error) {
	if fl.err == nil {
		fl.err = err
		poke(fl.wake)
	}
}

// speak grants and says that the caller lives until stop is closed, and then
// cancels, unless the handler was first. It notices when the handler is silent.
func (fl *flow) speak(s *Session, to string, first time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(grantEvery)
	defer tick.Stop()
	for {
		if text := fl.word(first); text != nil {
			_ = s.nc.Publish(to, text) // a connection that is lost ends the attempt
		}
		select {
		case <-tick.C:
		case <-fl.grant:
		case <-stop:
			if text := fl.farewell(); text != nil {
				_ = s.nc.Publish(to, text)
			}
			return
		}
	}
}

// word is what the caller says now; nil when there is nobody to hear it.
func (fl *flow) word(first time.Duration) []byte {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	patience := handlerSilence
	if !fl.begun {
		patience = first
	}
	if fl.err == nil && time.Since(fl.heard) > patience {
		fl.stop(fault.New(fault.Timeout, "", "", fmt.Errorf("nothing was heard for %s", patience)))
	}
	if fl.err != nil {
		return nil
	}
	fl.told = fl.taken + fl.window
	return control{Grant: fl.told}.encode()
}

func (fl *flow) farewell() []byte {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.closed {
		return nil
	}
	return control{Grant: fl.told, Cancel: true}.encode()
}
