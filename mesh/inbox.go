package mesh

import (
	"crypto/rand"
	"sync"

	"github.com/nats-io/nats.go"
)

// mostUnheard is how many answers to one call may have come that were not looked
// at; further ones are dropped.
const mostUnheard = 16

// inboxes are where answers come in on one connection. All calls have one
// subscription: one for each would cost the server as much again as the call.
type inboxes struct {
	mu   sync.Mutex // guards what follows
	root string     // "" before the first call
	open map[string]chan *nats.Msg
}

// inbox returns a subject for the answers to one call, and where they come. The
// caller calls the function when it waits no longer.
func (s *Session) inbox() (to string, came <-chan *nats.Msg, leave func(), err error) {
	in := &s.inboxes
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.root == "" {
		root := s.nc.NewInbox() + "."
		sub, err := s.nc.Subscribe(root+"*", in.take)
		if err == nil {
			err = sub.SetPendingLimits(receivedMessages, receivedBytes)
		}
		if err != nil {
			return "", nil, nil, err
		}
		in.root, in.open = root, map[string]chan *nats.Msg{}
	}
	to, answers := in.root+rand.Text(), make(chan *nats.Msg, mostUnheard)
	in.open[to] = answers
	return to, answers, func() { in.close(to) }, nil
}

func (in *inboxes) close(to string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.open, to)
}

// take hands an answer to who waits for it, and never waits itself.
func (in *inboxes) take(m *nats.Msg) {
	in.mu.Lock()
	defer in.mu.Unlock()
	select {
	case in.open[m.Subject] <- m:
	default: // nobody waits, or it has not looked for long
	}
}
