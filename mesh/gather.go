package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
)

const (
	// gatherMessages and gatherBytes bound the answers that were received and
	// not yet taken.
	gatherMessages = 16 << 10
	gatherBytes    = 64 << 20
)

// Reply is one answer to a scattered call.
type Reply struct {
	// From is the name that the service gives itself. It is what the answering
	// side claims, not what the server vouches for.
	From    string
	Payload []byte
	Err     error // that the handler answered with
}

// CallAll sends payload to everybody who serves subject and hands each answer to
// take, in the order in which they come, in the calling goroutine. It ends
// without an error at the deadline (Options.Timeout when ctx has none) or when
// take returns false: the caller knows whom it asked, and so who was silent.
//
// Errors: those of Call, but no timeout for want of answers; timeout when the
// connection was lost, failed when answers came faster than take took them and
// some were dropped. What take was given before stands.
func (c *Conn) CallAll(ctx context.Context, subject string, payload []byte, take func(Reply) bool) error {
	ctx, cancel := c.patience(ctx)
	defer cancel()
	s := c.session()
	if s == nil {
		return c.absent()
	}
	ctx, end := s.Within(ctx)
	defer end()
	ctx, end = c.asks.begin(ctx, subject)
	defer end()
	if err := gather(ctx, s.nc, &nats.Msg{Subject: subject, Data: payload, Header: patienceOf(ctx)}, take); err != nil {
		return fault.New(fault.ClassOf(err), "call", subject, err)
	}
	return nil
}

func gather(ctx context.Context, nc *nats.Conn, m *nats.Msg, take func(Reply) bool) error {
	m.Reply = nc.NewInbox()
	sub, err := nc.SubscribeSync(m.Reply)
	if err != nil {
		return sendFault(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(gatherMessages, gatherBytes); err != nil {
		return sendFault(err)
	}
	if err := nc.PublishMsg(m); err != nil {
		return sendFault(err)
	}
	for {
		reply, err := sub.NextMsgWithContext(ctx)
		switch {
		case err == nil:
			if !take(Reply{From: reply.Header.Get(nameHeader), Payload: reply.Data, Err: faultIn(reply)}) {
				return nil
			}
		case errors.Is(err, nats.ErrSlowConsumer):
			n, _ := sub.Dropped()
			return fault.New(fault.Failed, "", "", fmt.Errorf("%d answers were dropped", n))
		case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			return nil
		default:
			return callFault(ctx, err)
		}
	}
}
