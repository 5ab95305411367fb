package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"stead/host/fault"
	"stead/mesh/wire"
)

const (
	// rolloutText is how long --wait waits when it is not said.
	rolloutText = "5m"
	// The time from one question about progress to the next, at first and later.
	firstLook, lastLook = 100 * time.Millisecond, time.Second
	// calm is the least time between two lines of progress where there is no
	// terminal.
	calm = 10 * time.Second
)

// progressor says how far declarations have come.
type progressor interface {
	Progress(ctx context.Context, r wire.ProgressRequest) (wire.ProgressReply, error)
}

// rollout waits until declarations have come to all their nodes.
type rollout struct {
	of     progressor
	bound  time.Duration
	answer time.Duration // how long the first answer may take, whatever bound is
	out    screen        // shows progress in place on a terminal
	log    io.Writer     // takes a line now and then where there is none
	now    func() time.Time
}

// wait asks until everything is done, nothing but refusals is left, or the time
// is over; it returns the last answer. One it waits for also when the time is less.
func (r rollout) wait(ctx context.Context, names []string, least uint64) (wire.ProgressReply, error) {
	whole, start := ctx, r.now()
	ctx, cancel := context.WithTimeout(ctx, r.bound)
	defer cancel()
	ask, over := context.WithTimeout(whole, max(r.bound, r.answer)) // for the first answer
	defer over()
	var last wire.ProgressReply
	told, paint := tale{}, painter{w: r.out}
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		reply, err := r.of.Progress(ask, wire.ProgressRequest{Names: names, Least: least})
		switch {
		case whole.Err() != nil:
			return last, fault.New(fault.Canceled, "wait", "", errors.New("interrupted before all was converged; what was asked for stays so"))
		case err != nil && (ctx.Err() == nil || last.Names == nil):
			return last, err
		case err == nil:
			last, ask = reply, ctx
			r.tell(&paint, &told, last, r.now().Sub(start))
		}
		if a := advanceOf(last.Names); a.done() || a.stuck() || !pauseFor(ctx, pause) && whole.Err() == nil {
			break
		}
	}
	if r.out.width == 0 {
		fmt.Fprintln(r.out, strings.Join(r.out.progress(last.Names, r.now().Sub(start)), "\n"))
	}
	return last, nil
}

// tell shows progress as it is made.
func (r rollout) tell(p *painter, told *tale, reply wire.ProgressReply, elapsed time.Duration) {
	if r.out.width > 0 {
		p.paint(r.out.progress(reply.Names, elapsed))
		return
	}
	if line := advanceOf(reply.Names).String(); elapsed-told.at >= calm && line != told.line {
		*told = tale{elapsed, line}
		fmt.Fprintln(r.log, r.out.outcome(reply.Names, elapsed))
	}
}

// tale is what was told last.
type tale struct {
	at   time.Duration // after the beginning
	line string
}

// pauseFor returns false when ctx ends before d is over.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// verdict is the end of a command that waited.
func verdict(r wire.ProgressReply) error {
	a := advanceOf(r.Names)
	switch {
	case len(a.silent) > 0:
		return errSilent
	case !a.done():
		return errNotWanted
	}
	return nil
}

// concerned are the names in changes, each once.
func concerned(all []wire.Change) []string {
	var names []string
	for _, c := range all {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
