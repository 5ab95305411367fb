package mesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
)

// takeStream looks at a call that wants a stream, as take does, and never waits.
func (e *endpoint) takeStream(session *Session, j *job) {
	token := j.m.Header.Get(streamHeader)
	control, err := controlOf(j.m.Subject, token)
	switch {
	case e.Stream == nil:
		err = fault.New(fault.Unsupported, "follow", e.Name, errors.New("it cannot be followed"))
	case err == nil && j.r.Caller.User == "":
		err = fault.New(fault.Denied, "follow", e.Name, errors.New("the server does not say which user calls"))
	}
	if err != nil {
		e.turn(j, err)
		return
	}
	select {
	case e.flows <- struct{}{}:
		go e.flow(session, j, control)
	default:
		e.count(func(c *counts) { c.busy++ })
		e.turn(j, fault.New(fault.Unavailable, "follow", e.Name, fmt.Errorf("busy: %d streams run", len(e.flows))))
	}
}

// flow runs one stream from the first word to the last.
func (e *endpoint) flow(session *Session, j *job, control string) {
	defer func() { <-e.flows }()
	ctx, end := context.WithCancelCause(e.streaming)
	defer end(nil)
	stop := context.AfterFunc(session.lost, func() { end(errLost) })
	defer stop()
	s := &Stream{e: e, j: j, ctx: ctx, end: end, more: make(chan struct{}, 1), heard: time.Now()}
	e.mu.Lock()
	j.stream = s
	e.mu.Unlock()
	first, _ := number(j.m, grantHeader)
	s.grant(first)

	sub, err := session.nc.Subscribe(control, s.hear)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = sub.SetPendingLimits(hints, hints*maxControl*32) // the server's word about the caller comes with each
	}
	if err != nil {
		e.turn(j, fault.New(fault.Unavailable, "follow", e.Name, err))
		return
	}
	s.mu.Lock()
	_ = s.publish(kindBeat, nil, "") // it was taken
	s.mu.Unlock()
	watched := make(chan struct{})
	go func() { defer close(watched); s.watch() }()

	start := time.Now()
	err = e.guard(j.r, func() error { return e.Stream(ctx, j.r, s) })
	e.count(func(c *counts) { c.spent += time.Since(start) })
	if ctx.Err() != nil {
		err = nil // what ended it is no fault of the handler's, and the end says what to do
	}
	e.answer(j, nil, err)
	end(nil)
	<-watched
}
