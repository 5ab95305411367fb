package server

import (
	"context"
	"sync"
	"time"

	"stead/mesh"
	"stead/mesh/subject"
)

// line is the way to the controllers.
type line struct {
	conn *mesh.Conn
	node subject.Node

	mu    sync.Mutex // guards what follows
	wakes []chan struct{}
}

// connecting is how long a question waits for a connection: that of a process
// that has just begun is there in some ten milliseconds.
const connecting = time.Second

// Ask asks the controllers about a topic of this node.
func (l *line) Ask(ctx context.Context, t subject.Topic, payload []byte) ([]byte, error) {
	bound, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	if err := l.conn.Wait(bound); err != nil {
		return nil, err
	}
	return l.conn.Call(ctx, subject.ForNode(l.node, t), payload)
}

// tell asks a controller to store a batch of the audit.
func (l *line) tell(ctx context.Context, payload []byte) error {
	_, err := l.Ask(ctx, subject.Event, payload)
	return err
}

// news has a token whenever a connection may have come or gone.
func (l *line) news() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake := make(chan struct{}, 1)
	l.wakes = append(l.wakes, wake)
	return wake
}

// pass passes on the news of a connection until ctx ends.
func (l *line) pass(ctx context.Context, c *mesh.Conn) error {
	news, stop := c.Notify()
	defer stop()
	for {
		select {
		case <-news:
			l.wake()
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *line) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wakes {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}
