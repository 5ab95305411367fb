package escalate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"stead/host/fault"
	"stead/host/unit"
)

// units is a manager: host/systemd.Manager.
type units interface {
	looker
	jobber
	linker
}

// side is one manager whose units are acted on, with what is under way there.
type side struct {
	s       *Server
	m       units
	of      owner
	account Account // the zero one for the system's
	ends    *ends
	reloads *reloads
	explain func(op, object string, err error) error // words that the manager could not be asked
	blind   string                                   // why jobs could not be looked for at last; of watch alone
}

func newSide(s *Server, m units, of owner) *side {
	return &side{s: s, m: m, of: of, ends: newEnds(), reloads: newReloads(m, &s.wg), explain: func(_, _ string, err error) error { return err }}
}

// mine reports whether a call is about this manager.
func (sd *side) mine(e *entry) bool { return e.Of == sd.of }

// systemctl is a command for a person on this machine.
func (sd *side) systemctl(what string) string {
	if sd.account.Name == "" {
		return "systemctl " + what
	}
	return fmt.Sprintf("systemctl --user -M %s@ %s", sd.account.Name, what)
}

// about is what the log says of an act.
func about(a Act, name, who string, scope unit.Scope) []any {
	all := []any{"act", a, "unit", name, "for", who}
	if scope == unit.User {
		all = append(all, "scope", scope)
	}
	return all
}

// mostLinks bounds in bytes of JSON what is told of links: an answer fits into a line
// whatever a manager says.
const mostLinks = 128 << 10

// fewer leaves out what is too much of links.
func fewer(l unit.Linking) unit.Linking {
	text, err := json.Marshal(l)
	if err == nil && len(text) <= mostLinks {
		return l
	}
	return unit.Linking{NoInstall: l.NoInstall, Notes: []string{fmt.Sprintf(
		"%d links were made, %d removed, %d passed over: they are too many to be listed", len(l.Made), len(l.Removed), len(l.Notes))}}
}

// ends are the last jobs that ended: the end of one can be there before its
// caller has seen its id.
type ends struct {
	mu     sync.Mutex
	result map[uint32]unit.JobResult
	order  []uint32
}

// maxEnds is more than jobs can end while a call is looked at.
const maxEnds = 8192

func newEnds() *ends { return &ends{result: map[uint32]unit.JobResult{}} }

func (e *ends) add(j unit.JobEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, old := e.result[j.ID]; !old {
		e.order = append(e.order, j.ID)
	}
	e.result[j.ID] = j.Result
	if len(e.order) > maxEnds {
		delete(e.result, e.order[0])
		e.order = e.order[1:]
	}
}

func (e *ends) of(id uint32) (unit.JobResult, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok := e.result[id]
	return r, ok
}

// reloads makes one reload serve all who came before it began.
type reloads struct {
	m    linker
	life context.Context // of reloads: that of the side, and not of a call
	wg   *sync.WaitGroup // of the server

	mu      sync.Mutex
	running bool
	next    *reload // for those who came since the one that runs began
}

type reload struct {
	done chan struct{}
	err  error
}

func newReloads(m linker, wg *sync.WaitGroup) *reloads { return &reloads{m: m, wg: wg} }

// do returns when a reload that began after do was called has ended.
func (r *reloads) do(ctx context.Context) error {
	r.mu.Lock()
	if r.next == nil {
		r.next = &reload{done: make(chan struct{})}
	}
	mine := r.next
	if !r.running {
		r.running = true
		r.wg.Go(func() { r.run(r.life) })
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fault.New(fault.Timeout, "reload", "", errors.New("it goes on"))
	}
}

// run reloads for as long as somebody waits for one. The manager bounds each.
func (r *reloads) run(ctx context.Context) {
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		r.running = now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		_, now.err = r.m.Reload(ctx)
		close(now.done)
	}
}
