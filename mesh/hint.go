package mesh

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh/identity"
)

// hints bounds how many a listener has not taken yet. Later ones are lost, which
// a hint may be.
const hints = 64

// Hint is a message that nobody answers. It says "look again", and nothing that
// it holds is to be relied on; it may be lost, late, or come twice.
type Hint struct {
	Subject string
	Caller  identity.Caller
	Payload []byte
}

// Publish sends a hint, and waits for nothing. Unavailable: there is no
// connection, and it will not be sent later.
func (c *Conn) Publish(subject string, payload []byte) error {
	s := c.session()
	if s == nil {
		return c.absent()
	}
	if err := s.nc.Publish(subject, payload); err != nil {
		err = sendFault(err)
		return fault.New(fault.ClassOf(err), "publish", subject, err)
	}
	return nil
}

// Listen hands the hints on subject to take, one after the other, until ctx
// ends, across every loss of the connection; then it returns nil. An error means that
// the connection was closed for good. Those that the
// server does not say the sender of, or whose sender is in none of accounts, are
// passed over. Hints of the time without a connection are lost: whoever listens
// looks again when Notify wakes it.
func (c *Conn) Listen(ctx context.Context, subject string, accounts []identity.Account, take func(Hint)) error {
	accounts = slices.Clone(accounts)
	for ctx.Err() == nil {
		s, err := c.Session(ctx)
		if err != nil {
			if ctx.Err() == nil {
				return err
			}
			break
		}
		sub, err := s.nc.SubscribeSync(subject)
		if err == nil {
			err = sub.SetPendingLimits(hints, identity.MaxPayload)
		}
		if err == nil {
			err = c.listen(ctx, s, sub, func(m *nats.Msg) {
				if caller, err := c.caller(m, accounts); err == nil {
					take(Hint{Subject: m.Subject, Caller: caller, Payload: m.Data})
				}
			})
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot listen", "subject", subject, "error", err)
			c.pause(delay(1))
		}
	}
	return nil
}

func (c *Conn) listen(ctx context.Context, s *Session, sub *nats.Subscription, take func(*nats.Msg)) error {
	defer func() { _ = sub.Unsubscribe() }()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case err == nil:
			take(m)
		case errors.Is(err, nats.ErrSlowConsumer):
		case s.nc.IsClosed() && ctx.Err() == nil:
			<-s.lost.Done()
			return nil
		default:
			return err
		}
	}
}
