package host

import (
	"context"
	"slices"
	"sync"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/unit"
)

// loop is what keeps the units of one scope, as far as the others here have to do
// with it.
type loop interface {
	declarer
	planner
	Reports() []*report.Report
	Published() <-chan struct{}
}

// scopes hands each declaration to the loop of its scope, and answers for both.
// What is wrong with the user scope holds up nothing of the system scope: its loop
// is told by a goroutine of its own, and so perhaps later.
type scopes struct {
	system, user loop
	told         chan struct{} // has a token when one of them published reports
	news         chan struct{} // has a token when the user scope is to be told a set

	mu  sync.Mutex    // guards what follows
	set reconcile.Set // of the user scope, the last
}

func newScopes(system, user loop) *scopes {
	return &scopes{system: system, user: user, told: make(chan struct{}, 1), news: make(chan struct{}, 1)}
}

// run passes on what the loops say, and what the user scope is told, until ctx
// ends.
func (s *scopes) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.tell(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.system.Published():
		case <-s.user.Published():
		}
		token(s.told)
	}
}

// tell hands sets to the user scope, the newest.
func (s *scopes) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		s.mu.Lock()
		set := s.set
		s.mu.Unlock()
		if s.user.Declare(ctx, set) != nil {
			return // ctx has ended
		}
	}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Declare implements declarer. It returns when the system scope has taken its part
// in.
func (s *scopes) Declare(ctx context.Context, set reconcile.Set) error {
	s.mu.Lock()
	s.set = of(set, unit.User)
	s.set.Files = reconcile.Files(of(set, unit.System).Declared) // which a user's units may cite
	s.mu.Unlock()
	token(s.news)
	return s.system.Declare(ctx, of(set, unit.System))
}

// of is what of a set is of one scope.
func of(set reconcile.Set, scope unit.Scope) reconcile.Set {
	var one reconcile.Set
	for _, d := range set.Declared {
		if d.Service.Scope == scope {
			one.Declared = append(one.Declared, d)
		}
	}
	for _, l := range set.Leave {
		if (l.Scope == unit.User) == (scope == unit.User) {
			one.Leave = append(one.Leave, l)
		}
	}
	for _, p := range set.Pauses {
		if p.Scope == scope {
			one.Pauses = append(one.Pauses, p)
		}
	}
	return one
}

// Reports returns how every declaration stands, the system scope's first.
func (s *scopes) Reports() []*report.Report {
	system, user := s.system.Reports(), s.user.Reports()
	if len(user) == 0 {
		return system
	}
	return append(slices.Clip(system), user...)
}

// Published has a token when reports were published since the last one was taken.
func (s *scopes) Published() <-chan struct{} { return s.told }

// asked is what one scope is asked about.
type asked struct {
	declared  []reconcile.Declared
	withdrawn []string
}

func (a asked) nothing() bool { return len(a.declared)+len(a.withdrawn) == 0 }

// Plan implements planner: the previews of the system scope come first. A scope of
// which nothing is asked is not asked; what the user scope cannot say is said of
// its declarations.
func (s *scopes) Plan(ctx context.Context, declared []reconcile.Declared, withdrawn []string) ([]plan.Preview, error) {
	system, user := s.apart(declared, withdrawn)
	var all []plan.Preview
	if !system.nothing() || user.nothing() {
		previews, err := s.system.Plan(ctx, system.declared, system.withdrawn)
		if err != nil {
			return nil, err
		}
		all = previews
	}
	if !user.nothing() {
		previews, err := s.user.Plan(ctx, user.declared, user.withdrawn)
		if err != nil {
			previews = unforeseen(user.declared, err)
		}
		all = append(all, previews...)
	}
	return all, nil
}

// apart parts a question by scope. A name that goes over from one to the other is
// withdrawn from the first.
func (s *scopes) apart(declared []reconcile.Declared, withdrawn []string) (system, user asked) {
	inSystem, inUser := named(s.system.Reports()), named(s.user.Reports())
	for _, d := range declared {
		to, from, was := &system, &user, inUser
		if d.Service.Scope == unit.User {
			to, from, was = &user, &system, inSystem
		}
		to.declared = append(to.declared, d)
		if was[d.Service.Name] {
			from.withdrawn = append(from.withdrawn, d.Service.Name)
		}
	}
	for _, n := range withdrawn {
		if inUser[n] {
			user.withdrawn = append(user.withdrawn, n)
		}
		if inSystem[n] || !inUser[n] {
			system.withdrawn = append(system.withdrawn, n)
		}
	}
	return system, user
}

// named are the names of reports.
func named(reports []*report.Report) map[string]bool {
	all := make(map[string]bool, len(reports))
	for _, r := range reports {
		all[r.Name] = true
	}
	return all
}

// unforeseen says of declarations that nobody could say what would be done.
func unforeseen(declared []reconcile.Declared, err error) []plan.Preview {
	var all []plan.Preview
	for _, d := range declared {
		all = append(all, plan.Preview{Name: d.Service.Name, UID: d.UID, Generation: d.Generation, Scope: d.Service.Scope, Unit: d.Service.Object(),
			Outcome: report.Waiting, Reason: report.Unreachable, Text: err.Error(), Hint: fault.HintOf(err)})
	}
	return all
}
