package mesh

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh/identity"
)

// maxNonces bounds the signed calls that are remembered. One costs some 150 bytes.
const maxNonces = 1 << 16

// nonces are the signed calls of the last minutes: each is answered once.
type nonces struct {
	mu   sync.Mutex
	seen map[string]time.Time // until when it is remembered
	next time.Time            // when the old ones are forgotten
}

// take notes a call; an error when it was made before.
func (n *nonces) take(s identity.Signed, now time.Time) error {
	key := s.User + " " + s.Nonce
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.After(n.next) || len(n.seen) >= maxNonces {
		for key, until := range n.seen {
			if now.After(until) {
				delete(n.seen, key)
			}
		}
		n.next = now.Add(identity.SignedFor / 5)
	}
	switch _, was := n.seen[key]; {
	case was:
		return fault.New(fault.Denied, "signature of the call", "", errors.New("the same call was made before"))
	case len(n.seen) >= maxNonces:
		return fault.New(fault.Unavailable, "signature of the call", "", fmt.Errorf("busy: %d signed calls in %s", len(n.seen), identity.SignedFor))
	}
	if n.seen == nil {
		n.seen = map[string]time.Time{}
	}
	n.seen[key] = s.At.Add(identity.SignedFor)
	return nil
}

// signed returns an error unless m was signed, once and not long ago, by whom the
// server says that it is from.
func (s *Service) signed(m *nats.Msg, caller identity.Caller) error {
	now := time.Now()
	by, err := s.c.who.Load().Signer(m, now)
	if err != nil {
		return err
	}
	if by.Caller != caller {
		return fault.New(fault.Denied, "signature of the call", "", fmt.Errorf("%s %s signed it, and %s %s sent it", by.Role, by.Name, caller.Role, caller.Name))
	}
	// What was answered before the service began nobody here remembers.
	if by.At.Before(s.started) {
		return fault.New(fault.Unavailable, "signature of the call", "",
			fmt.Errorf("it was signed at %s, before this service began: call again", by.At.UTC().Format(time.RFC3339)))
	}
	return s.nonces.take(by, now)
}
