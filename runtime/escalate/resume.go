package escalate

import (
	"context"
	"time"

	"stead/host/unit"
)

// interrupted are the acts that a helper before this one was ended in, before it
// knew of a job, and how to do them, by id. Links are gone on with at once: what
// was changed already is changed by nobody else, and stays so. A job may be in the
// queue, or have been, and is looked for first.
func (s *Server) interrupted(life context.Context, began time.Time, resumed map[string]bool) map[string]func() {
	all := map[string]func(){}
	for _, e := range s.book.all(func(e *entry) bool { return e.End == nil && e.Job == 0 && e.Began.Before(began) }) {
		again := func() {
			resumed[e.ID] = true
			s.o.Logger.Info("act gone on with", "act", e.Act, "unit", e.Unit, "for", e.For)
			s.wg.Go(func() { s.resume(life, &e) })
		}
		_, is := e.Act.job()
		switch {
		case resumed[e.ID]:
		case is:
			all[e.ID] = again
		default:
			again()
		}
	}
	return all
}

// resume does an act of an earlier helper.
func (s *Server) resume(life context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(life, actFor)
	defer cancel()
	s.do(ctx, e)
}

// untouched reports whether a unit stands as it did before a job: nothing was
// asked of systemd.
func untouched(e entry, st unit.Status) bool {
	return st.Job.ID == 0 && st.Active.Up() == e.Before.Up && st.Invocation == e.Before.Invocation
}
