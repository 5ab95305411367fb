package reconcile

import (
	"cmp"
	"context"
	"slices"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// A socket cannot be started while the service runs that it is for ("already active,
// refusing"): the service holds what the socket is to listen on. So where a socket is
// started or restarted, its service is restarted with it. Both jobs are queued at
// once, that of the service first: systemd then stops the service, restarts the
// socket, and starts the service, because a service is ordered after its socket. A
// try-restart of one that does not run does nothing.

// freed has the services restarted that run and whose sockets are about to be started
// or restarted. It returns the batch with those that are declared, and the jobs of
// those that are not.
func (l *Loop) freed(ctx context.Context, batch []*managed) ([]*managed, []work) {
	var foreign []work
	for _, m := range batch {
		service, is := m.opens()
		if !is {
			continue
		}
		s := l.units[service]
		_, protected := shape.Protected(l.o.Scope, service)
		switch {
		case protected:
		case s == nil:
			foreign = append(foreign, work{m: m, step: plan.Step{Action: plan.Restart, Unit: service, Reason: becauseOf(m)}})
		case s.decl != nil && s.status.Active.Up():
			s.restartFor(m)
			if !slices.Contains(batch, s) {
				batch = append(slices.Clip(batch), s)
			}
		}
	}
	if len(foreign) == 0 {
		return batch, nil
	}
	names := make([]unit.Name, len(foreign))
	for i, w := range foreign {
		names[i] = w.step.Unit
	}
	all, err := l.o.Manager.Observe(ctx, names)
	if err != nil {
		return batch, nil // the socket's own job tells what is in its way
	}
	var up []work
	for i, w := range foreign {
		if all[i].Active.Up() {
			up = append(up, w)
		}
	}
	return batch, up
}

func becauseOf(socket *managed) string {
	return string(socket.name) + " is started anew, which cannot be while its service runs"
}

// opens returns the service of a socket that is about to be started or restarted, and
// that has one of its own.
func (m *managed) opens() (unit.Name, bool) {
	if m.ofFile() || m.name.Type() != "socket" || m.disk.Text.Accepts || m.decl == nil {
		return "", false
	}
	begins := slices.ContainsFunc(m.plan.Steps, func(s plan.Step) bool {
		return s.Action == plan.Start || s.Action == plan.Restart || s.Action == plan.ReloadOrRestart
	})
	name := unit.Name(m.disk.Text.Serves)
	if name == "" {
		name = unit.Name(m.name.Stem() + ".service")
	}
	_, err := unit.ParseName(string(name))
	return name, begins && err == nil
}

// restartFor has a service restarted with its socket, unless it is about to be stopped.
func (m *managed) restartFor(socket *managed) {
	jobless := make([]plan.Step, 0, len(m.plan.Steps)+1)
	for _, s := range m.plan.Steps {
		switch s.Action {
		case plan.Restart, plan.Stop:
			return
		case plan.ReloadUnit, plan.ReloadOrRestart, plan.Start:
		default:
			jobless = append(jobless, s)
		}
	}
	m.plan.Steps = append(jobless, plan.Step{Action: plan.Restart, Unit: m.name, Reason: becauseOf(socket)})
}

// asQueued sorts jobs into the order in which they are queued: restarts of services
// whose sockets go along, then what starts others (sockets, timers, paths,
// automounts), then those others. What is queued together systemd orders itself; it
// may begin with the first before it has heard of the last.
func asQueued(all []work) {
	opened := make(map[unit.Name]bool)
	for _, w := range all {
		if name, is := w.m.opens(); is {
			opened[name] = true
		}
	}
	rank := func(w work) int {
		switch {
		case w.step.Action == plan.Restart && opened[w.step.Unit]:
			return 0
		case starter(w.step.Unit):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b work) int { return cmp.Compare(rank(a), rank(b)) })
}

// starter reports whether a unit is there to start another one.
func starter(n unit.Name) bool {
	return slices.Contains([]string{"socket", "timer", "path", "automount"}, n.Type())
}
