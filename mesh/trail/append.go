package trail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/wire"
)

// MaxAppend is how many events one Append may hold.
const MaxAppend = 1000

// Bounds of what an event says, in bytes; what is longer is cut.
const (
	maxWord = 256
	maxText = 2 << 10
)

// Append stores events in their order. One whose node and id were stored in the
// last two minutes is not stored again; readers leave out others that come twice
// in one page. So whatever was not acknowledged is sent again whole. Texts that
// are too long are cut.
//
// Errors: invalid for more than MaxAppend events, one without an id, or a node
// that is none; unavailable when nothing was done; timeout when some of it may
// have been.
func (t *Trail) Append(ctx context.Context, events ...wire.Event) error {
	if len(events) > MaxAppend {
		return fault.New(fault.Invalid, "append events", stream, fmt.Errorf("%d of them; at most %d", len(events), MaxAppend))
	}
	messages := make([]*nats.Msg, 0, len(events))
	for _, e := range events {
		m, err := message(e)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil
	}
	s, err := t.conn.Current()
	if err != nil {
		return err
	}
	if err := send(ctx, s, messages); err != nil {
		return fault.New(fault.ClassOf(err), "append events", stream, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.moved)
	t.moved = make(chan struct{})
	return nil
}

// message is what is stored of an event.
func message(e wire.Event) (*nats.Msg, error) {
	of, err := subjectOf(e.Node)
	if err == nil && (e.ID == "" || len(e.ID) > maxWord || strings.ContainsAny(e.ID, "\r\n")) {
		err = fault.New(fault.Invalid, "append event", strconv.Quote(e.ID), errors.New("it has no id"))
	}
	if err != nil {
		return nil, err
	}
	for _, s := range []*string{&e.Source, &e.Who, &e.Kind, &e.Declaration, &e.Unit, &e.Scope, &e.Outcome, &e.Reason} {
		*s = cut(*s, maxWord)
	}
	e.Text = cut(e.Text, maxText)
	text, err := json.Marshal(e)
	if err == nil && len(text) > maxEvent {
		e.Text = ""
		text, err = json.Marshal(e)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "append event", strconv.Quote(e.ID), err)
	}
	m := &nats.Msg{Subject: of, Data: text, Header: nats.Header{}}
	m.Header.Set(jetstream.ExpectedStreamHeader, stream)
	m.Header.Set(jetstream.MsgIDHeader, e.Node+"/"+e.ID) // a node's ids are its own: it can hide nobody else's event
	return m, nil
}

// subjectOf is the subject of the events of a node.
func subjectOf(node string) (string, error) {
	if node == "" {
		return subject + nobody, nil
	}
	if strings.Trim(node, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(node) > 63 {
		return "", fault.New(fault.Invalid, "events of node", strconv.Quote(node), errors.New("it is no name of a node"))
	}
	return subject + node, nil
}

// send publishes all messages, one behind the other, and waits until each is
// acknowledged. One connection keeps their order.
func send(ctx context.Context, s *mesh.Session, messages []*nats.Msg) error {
	ctx, end := s.Within(ctx)
	defer end()
	inbox := s.NATS().NewInbox()
	sub, err := s.NATS().SubscribeSync(inbox)
	if err != nil {
		return fault.New(fault.Unavailable, "", "", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	const ahead = 64 // that many are on their way
	for sent, acknowledged := 0, 0; acknowledged < len(messages); acknowledged++ {
		for ; sent < len(messages) && sent-acknowledged < ahead; sent++ {
			messages[sent].Reply = inbox
			if err := s.NATS().PublishMsg(messages[sent]); err != nil {
				return fault.New(fault.Timeout, "", "", fmt.Errorf("some of it may have been done: %w", err))
			}
		}
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return fault.New(fault.Timeout, "", "", fmt.Errorf("%d of %d were acknowledged: %w", acknowledged, len(messages), context.Cause(ctx)))
		}
		var ack struct {
			Stream string `json:"stream"`
		}
		if len(m.Data) == 0 {
			return fault.New(fault.Unavailable, "", "", errors.New("the stream is not there"))
		}
		if err := decode(m.Data, &ack); err != nil {
			return err
		}
		if ack.Stream != stream {
			return fault.New(fault.Failed, "", "", fmt.Errorf("acknowledged by stream %q", ack.Stream))
		}
	}
	return nil
}

// cut is s, and no more than n bytes of it.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
