package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// The pause before a question is asked again grows from one to the other.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// question is one request to whichever controller takes it.
type question struct {
	class   subject.Class
	op      subject.Operation
	wait    time.Duration // for one answer
	request any
}

// ask asks q until it is answered, something other than patience is missing, or
// ctx ends.
func ask[T any](ctx context.Context, c *Client, q question) (T, error) {
	var reply T
	payload, err := encode(q.request)
	if err != nil {
		return reply, fault.New(fault.Internal, string(q.op), "", err)
	}
	if _, bound := ctx.Deadline(); !bound {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	answer, err := c.insist(ctx, q, payload)
	if err != nil {
		return reply, err
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return reply, fault.New(fault.Internal, string(q.op), "", errors.New("the controller's answer cannot be read: "+err.Error()))
	}
	return reply, nil
}

// encode writes JSON in which "<", ">" and "&" of unit files stay as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// insist asks again for as long as ctx allows. When one attempt may have been
// done, that is what the error says, whatever became of the later ones.
func (c *Client) insist(ctx context.Context, q question, payload []byte) ([]byte, error) {
	var perhaps error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		answer, err := c.once(ctx, q, payload)
		if err == nil || !again(err) {
			return answer, err
		}
		if fault.Is(err, fault.Timeout) {
			perhaps = err
		}
		if !sleep(ctx, pause/2+rand.N(pause)) {
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil, fault.New(fault.Canceled, string(q.op), "", context.Cause(ctx))
			}
			if perhaps != nil && q.class == subject.Write {
				return nil, perhaps
			}
			return nil, err
		}
	}
}

// once asks once, in parts when that is needed.
func (c *Client) once(ctx context.Context, q question, payload []byte) ([]byte, error) {
	if len(payload) > wire.MaxPart {
		return c.upload(ctx, q, payload)
	}
	return c.call(ctx, q, q.op, payload)
}

func (c *Client) call(ctx context.Context, q question, to subject.Operation, payload []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	return c.conn.Call(ctx, subject.ForOperation(q.class, to), payload)
}

// again reports whether the same question may be answered later. Conflicts of
// what people declare are answers, no errors.
func again(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)
}

// sleep returns false when ctx ends before d is over.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
