package folder

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"stead/host/fault"
)

// Run watches the folder until ctx ends, and returns nil then. It wakes at once
// and after every change. The folder may be missing, come, go and be replaced
// meanwhile. Where watching is not to be had, it says so in the log and wakes
// every Options.Poll; a reading that finds nothing changed is cheap. A change of
// a file that is only reached over several links outside of the folder may pass
// unseen until the next look.
func (s *Source) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.o.Logger.Warn("folder cannot be watched", "folder", s.o.Dir, "error", err, "poll", s.o.Poll)
		s.loop(ctx, notifier{sync: func() bool { return false }})
		return nil
	}
	v := &watches{s: s, w: w, at: map[string]inode{}}
	s.loop(ctx, notifier{w.Events, w.Errors, v.relevant, func() bool { return v.sync(ctx) }})
	if err := w.Close(); err != nil {
		return fault.New(fault.Failed, "stop watching", s.o.Dir, err)
	}
	return nil
}

// notifier is where the loop hears of changes.
type notifier struct {
	events   <-chan fsnotify.Event
	errors   <-chan error
	relevant func(fsnotify.Event) bool
	sync     func() bool // brings the watches up to what is there; false: not all of it is watched
}

// loop wakes the reader, at once and then when there is cause.
func (s *Source) loop(ctx context.Context, n notifier) {
	burst := still{quiet: s.o.Quiet, max: s.o.Max}
	var retry time.Time
	poll := s.look(n)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, _ := burst.due()
		timer.Stop()
		if next := earliest(due, retry, poll); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case e := <-n.events:
			if n.relevant(e) {
				burst.note(time.Now())
			}
		case err := <-n.errors: // events were lost, or a watch
			s.o.Logger.Debug("watch of folder", "folder", s.o.Dir, "error", err)
			burst.note(time.Now())
		case d := <-s.again:
			retry = time.Now().Add(d)
		case <-timer.C:
			burst.reset()
			retry, poll = time.Time{}, s.look(n)
		}
	}
}

// look wakes the reader, and before that brings the watches up to date, so that
// what the reader finds is watched. It returns when to look again without any
// event: zero is never.
func (s *Source) look(n notifier) (poll time.Time) {
	if !n.sync() {
		poll = time.Now().Add(s.o.Poll)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return poll
}

// earliest returns the first of the times that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
