package follow

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"stead/host/accept"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// rounds is how often a turn begins anew because what it fetches was changed
// meanwhile.
const rounds = 3

// turn asks once and takes over what it may. It returns when to ask again; the
// error is that of Options.Declare, all others are told. A panic is a defect of
// stead that costs this turn.
func (f *Follower) turn(ctx context.Context) (next time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			f.log.Error("turn ended by a defect", "defect", p, "stack", string(debug.Stack()))
			next = f.wrong(fault.New(fault.Internal, "follow the mesh", "", fmt.Errorf("a defect of stead: %v", p)))
		}
	}()
	t := f.o.Trust()
	f.stand(t)
	f.mu.Lock()
	least := f.hinted
	f.anyhow = false
	f.mu.Unlock()
	d, err := f.renew(ctx, t, least)
	if d != nil {
		if err := f.declare(ctx); err != nil {
			return 0, err
		}
		f.stand(t) // now, since whoever reads the source goes by it for reports
	}
	switch {
	case ctx.Err() != nil:
		return 0, nil
	case err != nil:
		return f.wrong(err), nil
	}
	if next = f.well(least); d != nil && d.Begins() && len(f.holding.Kept(t)) > 0 {
		next = min(next, jitter(retry)) // somebody may have withdrawn what is kept now
	}
	return next, nil
}

// renew brings what is held to what controllers say. The decision is nil when
// nothing was accepted, or nothing new.
func (f *Follower) renew(ctx context.Context, t accept.Trust, least uint64) (*accept.Decision, error) {
	for range rounds {
		nonce := rand.Text()
		reply, err := f.sync(ctx, t, least, nonce)
		if err != nil {
			return nil, err
		}
		if reply.Profile {
			f.o.Introduce()
		}
		if reply.Same {
			// Nothing is fetched of an index that was taken back.
			f.tell(func(s *Source) { s.Fetching, s.Same = 0, reply.Since })
			return nil, nil
		}
		d, err := accept.Decide(t, f.holding, *reply.Signed)
		if err == nil && d.Index.Nonce != nonce {
			err = replayed()
		}
		if err != nil {
			return nil, err
		}
		moved, err := f.fetch(ctx, d.Lack)
		if err != nil {
			return nil, err
		}
		if !moved {
			return f.accept(t, d)
		}
	}
	return nil, fault.New(fault.Conflict, "fetch declarations", "", errors.New("they change faster than they can be fetched"))
}

// replayed is the error of an index that is right, and was asked for by another
// question: what it says may be no longer true.
func replayed() error {
	return fault.New(fault.Refused, "accept index", "", errors.New("it answers another question than the one that was asked")).
		WithHint("an answer of before was replayed, or the controller is of an older version of stead")
}

// accept makes d durable, and then the state in memory.
func (f *Follower) accept(t accept.Trust, d accept.Decision) (*accept.Decision, error) {
	change, next, err := d.Complete(f.bodies, time.Now())
	if err != nil || change.Empty() {
		return nil, err
	}
	if err := f.o.Ledger.Accept(change); err != nil {
		return nil, err
	}
	before := f.holding.Under(t)
	f.holding = next
	clear(f.bodies)
	facts := []any{"revision", d.Index.Revision, "declarations", len(d.Index.Entries), "changed", len(change.Put), "withdrawn", d.Withdrawn}
	if before == nil || before.Epoch != d.Index.Epoch {
		facts = append(facts, "mesh", d.Index.Mesh, "epoch", d.Index.Epoch, "kept", next.Kept(t))
	}
	f.log.Info("accepted", facts...)
	return &d, nil
}

// sync asks what is declared. The answer says Same, or holds an index.
func (f *Follower) sync(ctx context.Context, t accept.Trust, least uint64, nonce string) (wire.SyncReply, error) {
	request := f.holding.Request(t)
	request.Least, request.Nonce, request.Trouble = least, nonce, f.Source().Trouble
	if f.o.Machine != nil {
		request.Machine, request.Boot = f.o.Machine()
	}
	var reply wire.SyncReply
	err := f.ask(ctx, subject.Sync, request, &reply)
	if err == nil && reply.Prove {
		if request.Digest == "" {
			return reply, misled("it asks for a proof of what this node does not hold")
		}
		request.Proof, reply = &f.holding.Signed, wire.SyncReply{}
		err = f.ask(ctx, subject.Sync, request, &reply)
	}
	f.heard(least, reply.Revision, err)
	switch {
	case err != nil:
		return reply, err
	case reply.Prove:
		return reply, misled("it does not take the proof that it asks for")
	case reply.Same && request.Digest == "":
		return reply, misled("it says that nothing changed, and nothing is held yet")
	case !reply.Same && reply.Signed == nil:
		return reply, misled("it holds no index")
	}
	return reply, nil
}

// misled is the error of an answer that makes no sense.
func misled(why string) error {
	return fault.New(fault.Failed, "read the controller's answer", "", errors.New(why))
}

// heard notes that a question was answered, or why not. A hint is dropped when a
// controller answered, whatever the revision, or when none answered in time: a
// revision that is never reached must not hold up every question.
func (f *Follower) heard(least, revision uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.answered = revision
	}
	if !fault.Is(err, fault.Unavailable) && f.hinted == least {
		f.hinted = 0
	}
}

// ask sends one question and reads its answer.
func (f *Follower) ask(ctx context.Context, topic subject.Topic, request, reply any) error {
	payload, err := json.Marshal(request)
	if err != nil {
		return fault.New(fault.Internal, "ask", string(topic), err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	answer, err := f.o.Mesh.Ask(ctx, topic, payload)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fault.New(fault.Failed, "read the controller's answer", string(topic), err)
	}
	f.tell(func(s *Source) { s.Answered, s.Silence = time.Now(), "" })
	return nil
}

// well notes a good turn and returns when the next one is.
func (f *Follower) well(least uint64) time.Duration {
	f.fails = 0
	before, next := f.Source(), f.o.Interval
	f.tell(func(s *Source) { s.Trouble, s.Accepted = "", time.Now() })
	if before.Trouble != "" {
		f.log.Info("mesh is followed again", "revision", before.Revision)
	}
	f.mu.Lock()
	if f.answered < least {
		next = min(next, retry) // that controller was behind
	}
	f.mu.Unlock()
	return jitter(next)
}

// wrong tells why a turn did not succeed and returns when the next one is. What
// was accepted before stays in force.
func (f *Follower) wrong(err error) time.Duration {
	next := f.delay()
	before := f.Source()
	switch fault.ClassOf(err) {
	case fault.Unavailable, fault.Timeout, fault.Canceled:
		f.tell(func(s *Source) { s.Silence = text(err) })
		if before.Silence == "" {
			f.log.Warn("no controller answers, what is declared stays in force", "error", err, "retry", next)
		}
	default:
		f.tell(func(s *Source) { s.Trouble = text(err) })
		if before.Trouble != text(err) {
			f.log.Warn("not accepted, what is declared stays in force", "error", err, "hint", fault.HintOf(err), "retry", next)
		}
	}
	return next
}
