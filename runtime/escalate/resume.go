package escalate

import (
	"context"

	"stead/host/unit"
)

// interrupted are the acts that a helper before this one was ended in, before it
// knew of a job, and how to do them, by id. Links are gone on with at once: what
// was changed already is changed by nobody else, and stays so. A job may be in the
// queue, or have been, and is looked for first.
func (sd *side) interrupted(life context.Context) map[string]func() {
	all := map[string]func(){}
	for _, e := range sd.s.book.all(func(e *entry) bool { return e.End == nil && e.Job == 0 && sd.mine(e) && e.Began.Before(sd.s.began) }) {
		again := func() {
			if _, before := sd.s.resumed.LoadOrStore(e.ID, true); before {
				return
			}
			sd.s.o.Logger.Info("act gone on with", e.about()...)
			sd.s.wg.Go(func() { sd.resume(life, &e) })
		}
		_, is := e.Act.job()
		_, before := sd.s.resumed.Load(e.ID)
		switch {
		case before:
		case is:
			all[e.ID] = again
		default:
			again()
		}
	}
	return all
}

// resume does an act of an earlier helper.
func (sd *side) resume(life context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(life, actFor)
	defer cancel()
	sd.do(ctx, e)
}

// untouched reports whether a unit stands as it did before a job: nothing was
// asked of systemd.
func untouched(e entry, st unit.Status) bool {
	return st.Job.ID == 0 && st.Active.Up() == e.Before.Up && st.Invocation == e.Before.Invocation
}
