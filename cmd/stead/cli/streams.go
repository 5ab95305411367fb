package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"stead/mesh/client"
	"stead/mesh/subject"
)

// streams follows v on every node at once, and hands chunks to take one after the
// other. A node that is not there, or whose stream ends, holds up no other one.
func (t *tour) streams(ctx context.Context, v client.Verb, arguments func(cursor string) any, take func(subject.Node, json.RawMessage) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var one sync.Mutex // of output, log and what t keeps
	var all sync.WaitGroup
	for _, node := range t.nodes {
		all.Go(func() {
			a := t.verbs.Follow(ctx, v, client.Stream{Node: node, Arguments: arguments,
				Take: func(text json.RawMessage) error {
					one.Lock()
					defer one.Unlock()
					err := take(node, text)
					if err != nil {
						stop(err)
					}
					return err
				},
				Lost: func(err error) {
					one.Lock()
					defer one.Unlock()
					warn(t.log, []string{fmt.Sprintf("%s on %s was lost (%v); asking on", v.Name, node, rootCause(err))})
				}})
			one.Lock()
			defer one.Unlock()
			if ctx.Err() == nil {
				t.ended(v, a)
			}
		})
	}
	all.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if err := t.known(ctx); err != nil {
		return err
	}
	return t.verdict(false)
}

// ended takes down how the stream of one node ended, and says so at once: others
// may go on for long.
func (t *tour) ended(v client.Verb, a client.Answer) {
	if a.Silent != "" {
		fmt.Fprintf(t.log, "error: %s on %s: %s\n", v.Name, a.Node, a.Silent)
	}
	// It has no reply to be taken.
	_ = t.note(v, a, func(subject.Node, json.RawMessage) error { return nil })
}
