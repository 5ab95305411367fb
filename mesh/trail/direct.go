package trail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh"
)

// ask is a direct read of several messages, as ADR-31 of NATS has it.
type ask struct {
	from  uint64
	node  string    // "" is every node
	since time.Time // stored since then; in place of from. Zero: from
	count int
}

// maxRead is how many bytes one read brings, and a message more.
const maxRead = 1 << 20

// read reads events, in their order; fewer than were asked for when there are no
// more, or when they are large. The server sends each as a message of its own.
func read(ctx context.Context, s *mesh.Session, a ask) ([]stored, error) {
	of := subject + "*"
	if a.node != "" {
		of = subject + a.node
	}
	request := map[string]any{"batch": a.count, "max_bytes": maxRead, "next_by_subj": of, "seq": a.from}
	if !a.since.IsZero() {
		delete(request, "seq")
		request["start_time"] = a.since
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fault.New(fault.Internal, "", "", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ctx, end := s.Within(ctx)
	defer end()
	sub, err := s.NATS().SubscribeSync(s.NATS().NewInbox())
	if err != nil {
		return nil, fault.New(fault.Unavailable, "", "", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := s.NATS().PublishRequest("$JS.API.DIRECT.GET."+stream, sub.Subject, text); err != nil {
		return nil, fault.New(fault.Unavailable, "", "", err)
	}
	var all []stored
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, fault.New(fault.Unavailable, "", "", fmt.Errorf("no answer: %w", context.Cause(ctx)))
		}
		done, err := ended(m)
		if done || err != nil {
			return all, err
		}
		sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil {
			return nil, fault.New(fault.Failed, "", "", fmt.Errorf("an answer without a sequence: %w", err))
		}
		if sequence >= a.from {
			all = append(all, parse(m.Data, sequence))
		}
	}
}

// ended reports whether m is the word that ends a read.
func ended(m *nats.Msg) (bool, error) {
	status := m.Header.Get("Status")
	switch {
	case status == "" || len(m.Data) > 0:
		return false, nil
	case status == "204", status == "404": // the end, and nothing there
		return true, nil
	case status == "503":
		return true, fault.New(fault.Unavailable, "", "", errors.New("the stream is not there"))
	}
	return true, fault.New(fault.Failed, "", "", fmt.Errorf("the server ended the reading: %s %s", status, m.Header.Get("Description")))
}
