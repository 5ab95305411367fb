package duty

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// asker asks controllers about this node.
type asker interface {
	Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error)
}

// Options are what a Keeper is made of. All but Held, Reconnected and the times
// are required.
type Options struct {
	Trust func() Trust // called for every turn
	Mesh  asker
	// Keep makes what was accepted durable.
	Keep func(wire.Signed) error
	// Serve takes over what is to be served from now on. It is called in the
	// goroutine of Run, at the start when something is held, and on every change.
	Serve func(*wire.Tools)
	Held  *wire.Signed // what was kept; nil for nothing
	// Reconnected has a token whenever the connection may have come or gone.
	Reconnected <-chan struct{}
	Logger      *slog.Logger

	Interval time.Duration // between questions when all is well; default 30 s, a fifth more or less
	Patience time.Duration // with one question; default 15 s
}

const (
	gap   = 100 * time.Millisecond // between two turns, at least
	retry = time.Second            // the first delay after an error; it doubles up to the interval
)

// Standing is how a Keeper stands.
type Standing struct {
	Tools *wire.Tools // in force; nil for none. It is not changed
	// Trouble says why the last answer was not accepted, or that there was none; ""
	// when all is well.
	Trouble string
	// Refused are claims that controllers refused, with the reason.
	Refused []string
}

// Keeper keeps what a runtime is to serve. Make it with New.
type Keeper struct {
	o     Options
	wake  chan struct{}
	fails int
	ended time.Time

	mu       sync.Mutex // guards what follows
	standing Standing
	hinted   uint64
}

// New reads what was kept, and starts nothing. What cannot be read, or is of
// another mesh or node than the credentials now, counts as nothing.
func New(o Options) *Keeper {
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 15 * time.Second
	}
	k := &Keeper{o: o, wake: make(chan struct{}, 1)}
	if o.Held != nil {
		tools, err := Judge(o.Trust(), nil, *o.Held)
		if err != nil {
			o.Logger.Warn("what was kept is not served", "error", err)
		}
		k.standing.Tools = tools
	}
	return k
}

// Hint says that there may be something new at a revision; 0 is any.
func (k *Keeper) Hint(revision uint64) {
	k.mu.Lock()
	k.hinted = max(k.hinted, revision)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Standing returns how the keeper stands.
func (k *Keeper) Standing() Standing {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.standing
	s.Refused = slices.Clone(s.Refused)
	return s
}

// Run keeps what is served until ctx ends, and returns nil then.
func (k *Keeper) Run(ctx context.Context) error {
	if t := k.Standing().Tools; t != nil {
		k.o.Serve(t)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
			timer.Reset(k.soon())
			continue
		case <-k.o.Reconnected:
			k.fails = 0
			timer.Reset(k.soon())
			continue
		case <-timer.C:
		}
		next := k.turn(ctx)
		k.ended = time.Now()
		timer.Reset(next)
	}
}

func (k *Keeper) soon() time.Duration { return max(0, gap-time.Since(k.ended)) }

// turn asks once, files the claims that are open, asks again when one was
// accepted, and returns when to do it again.
func (k *Keeper) turn(ctx context.Context) time.Duration {
	err := k.ask(ctx)
	var refused []string
	if err == nil {
		var accepted bool
		if accepted, refused, err = k.claim(ctx); accepted && err == nil {
			err = k.ask(ctx)
		}
	}
	if ctx.Err() != nil {
		return time.Hour
	}
	k.tell(err, refused)
	d := k.o.Interval
	if err == nil {
		k.fails = 0
		return jitter(d)
	}
	if k.fails < 16 {
		d = min(d, retry<<k.fails)
	}
	k.fails++
	return jitter(d)
}

func jitter(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5+1) }

// ask takes over what controllers say now.
func (k *Keeper) ask(ctx context.Context) error {
	trust, held := k.o.Trust(), k.Standing().Tools
	q := wire.ToolsRequest{Wire: wire.Version, Mesh: trust.Mesh, Least: k.least()}
	if held != nil && held.Mesh == trust.Mesh && held.Node == trust.Node {
		q.Epoch, q.Revision, q.Digest = held.Epoch, held.Revision, held.Digest()
	}
	var reply wire.ToolsReply
	if err := k.call(ctx, subject.Tools, q, &reply); err != nil || reply.Signed == nil {
		return err
	}
	tools, err := Judge(trust, held, *reply.Signed)
	if err != nil {
		return err
	}
	if err := k.o.Keep(*reply.Signed); err != nil {
		return err
	}
	k.mu.Lock()
	k.standing.Tools = tools
	k.mu.Unlock()
	k.o.Logger.Info("accepted", "revision", tools.Revision, "modules", names(tools.Modules), "held", len(tools.Held), "units", len(tools.Units))
	k.o.Serve(tools)
	return nil
}

// least is the highest revision that was told, once: one that never comes is not
// waited for again.
func (k *Keeper) least() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	least := k.hinted
	k.hinted = 0
	return least
}

// claim files the claims of assigned modules whose seats they do not hold.
func (k *Keeper) claim(ctx context.Context) (accepted bool, refused []string, err error) {
	tools := k.Standing().Tools
	if tools == nil {
		return false, nil, nil
	}
	q := wire.ClaimRequest{Wire: wire.Version, Least: tools.Revision}
	for _, m := range tools.Modules {
		for _, seat := range m.Claims {
			if !slices.ContainsFunc(tools.Held, func(h seats.Holder) bool { return h.Seat == seat && h.Module == m.Name }) {
				q.Claims = append(q.Claims, m.Claim(seat, subject.Node(tools.Node)))
			}
		}
	}
	if q.Claims == nil {
		return false, nil, nil
	}
	q.Claims = q.Claims[:min(len(q.Claims), wire.MaxClaims)]
	var reply wire.ClaimReply
	if err := k.call(ctx, subject.Claim, q, &reply); err != nil {
		return false, nil, err
	}
	for _, v := range reply.Verdicts {
		if v.Refused == "" {
			accepted = true
			continue
		}
		refused = append(refused, v.Refused)
	}
	return accepted, refused, nil
}

func (k *Keeper) call(ctx context.Context, topic subject.Topic, q, reply any) error {
	payload, err := json.Marshal(q)
	if err != nil {
		return fault.New(fault.Internal, "ask controllers", string(topic), err)
	}
	bound, cancel := context.WithTimeout(ctx, k.o.Patience)
	defer cancel()
	answer, err := k.o.Mesh.Ask(bound, topic, payload)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fault.New(fault.Failed, "read answer", string(topic), err)
	}
	return nil
}

// tell makes visible how a turn went, and logs what is new.
func (k *Keeper) tell(err error, refused []string) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	k.mu.Lock()
	before := k.standing
	k.standing.Trouble = trouble
	if err == nil {
		k.standing.Refused = refused
	}
	now := k.standing
	k.mu.Unlock()
	if trouble != "" && before.Trouble != trouble {
		k.o.Logger.Warn("what is served stays as it is", "error", err)
	}
	if trouble == "" && before.Trouble != "" {
		k.o.Logger.Info("controllers answer again")
	}
	for _, r := range now.Refused {
		if !slices.Contains(before.Refused, r) {
			k.o.Logger.Warn("claim refused", "reason", r)
		}
	}
}

func names(all []modules.Manifest) []string {
	list := make([]string, 0, len(all))
	for _, m := range all {
		list = append(list, m.Name)
	}
	return list
}
