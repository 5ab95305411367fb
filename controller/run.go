package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"stead/host/fault"
)

// run is what a controller started, in its order.
type run struct {
	ctx  context.Context // ends when the controller is to end, or a part of it did
	stop context.CancelCauseFunc
	log  *slog.Logger
	ends []func() error
}

func newRun(ctx context.Context, log *slog.Logger) *run {
	r := &run{log: log}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	return r
}

// begin runs a part of the controller beside the others. The part is ended in its
// turn, not when r.ctx is; when it ends by itself, so does everything.
func (r *run) begin(what string, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.ctx))
	done := make(chan error, 1)
	go func() {
		err := part(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = fault.New(fault.Internal, "run", what, errors.New("it ended by itself"))
			}
			r.stop(err)
		}
		done <- err
	}()
	r.ends = append(r.ends, func() error {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// after has something done when the controller ends, in its turn.
func (r *run) after(do func()) {
	r.ends = append(r.ends, func() error { do(); return nil })
}

// end stops everything, the last first, and returns why: err, or what ended by
// itself, or nil when it was asked for. What goes wrong meanwhile is logged.
func (r *run) end(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		err = context.Cause(r.ctx)
	}
	r.stop(nil)
	for i := len(r.ends) - 1; i >= 0; i-- {
		if problem := r.ends[i](); problem != nil && !errors.Is(problem, err) {
			r.log.Warn("stop", "error", problem)
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
