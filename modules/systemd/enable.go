package systemd

import (
	"context"

	"stead/host/fault"
	"stead/host/unit"
	"stead/runtime/escalate"
	"stead/seats"
)

// Enable is the verb: it makes the links that a unit's [Install] section asks for.
func (m *Module) Enable(ctx context.Context, a seats.EnableArguments) (seats.EnableReply, error) {
	return m.relink(ctx, escalate.Enable, a)
}

// Disable is the verb: it removes all links to a unit, as systemctl does.
func (m *Module) Disable(ctx context.Context, a seats.EnableArguments) (seats.EnableReply, error) {
	return m.relink(ctx, escalate.Disable, a)
}

// relink does a verb that changes links, and then the job that goes with it.
func (m *Module) relink(ctx context.Context, act escalate.Act, a seats.EnableArguments) (seats.EnableReply, error) {
	v := m.in(a.Scope)
	reply := seats.EnableReply{Scope: string(v.scope)}
	n, err := named(string(act), a.Unit)
	if err != nil {
		return reply, err
	}
	reply.Unit = string(n)
	d, err := v.linked(ctx, act, n, a.Now)
	if err != nil {
		return reply, err
	}
	of, err := v.begun(ctx, jobWith(act)) // once links are changed nothing may say that nothing was done
	if err != nil {
		return reply, err
	}
	links, err := v.links(ctx, act, n)
	// Links of a unit that is gone are removed all the same.
	gone := !exists(d.Load, d.Active)
	if fault.Is(err, fault.NotFound) || err == nil && gone && len(links.Made)+len(links.Removed) == 0 {
		err = v.unknown(ctx, string(act), string(n))
	}
	if err != nil {
		return reply, err
	}
	for _, l := range links.Made {
		reply.Made = append(reply.Made, seats.Link{Path: l.Path, To: l.To})
	}
	reply.Removed, reply.NoInstall, reply.Passed = links.Removed, links.NoInstall, links.Notes
	reply.DeclaredBy = m.owners(v.scope).of(namesOf(d)...)
	reply.Note = undone(act, reply.DeclaredBy)
	if a.Now {
		reply.Acted = v.now(ctx, act, d, of)
	}
	return reply, nil
}

// links asks for the links to be changed.
func (v view) links(ctx context.Context, act escalate.Act, n unit.Name) (unit.Linking, error) {
	ctx, cancel := context.WithTimeout(ctx, linkFor)
	defer cancel()
	out, err := v.m.o.Acts.Do(ctx, escalate.Request{Act: act, Unit: n, Scope: v.asked()})
	return out.Links, err
}

// linked is the unit whose links are to be changed, once nothing forbids that or
// the job behind it. A template has no state, and a unit that systemd does not
// know may have a file since.
func (v view) linked(ctx context.Context, act escalate.Act, n unit.Name, now bool) (unit.Details, error) {
	d := unit.Details{ID: n, Names: []unit.Name{n}, Load: unit.Loaded}
	if n.IsTemplate() {
		if now {
			return d, about(fault.Invalid, string(act), n, "it is a template, and only its instances can be started and stopped")
		}
		return d, v.guard(act, string(n), []unit.Details{d})
	}
	d, err := v.Details(ctx, n)
	if err != nil {
		return d, err
	}
	d.Names = append(d.Names, n)
	if err := v.guard(act, string(n), []unit.Details{d}); err != nil || !now {
		return d, err
	}
	return d, v.guard(jobWith(act), string(n), []unit.Details{d})
}

// jobWith is the job that goes with a change of links.
func jobWith(act escalate.Act) escalate.Act {
	if act == escalate.Enable {
		return escalate.Start
	}
	return escalate.Stop
}

// now starts or stops the unit whose links were changed. The links stand whatever
// becomes of that, so what fails is told in the answer.
func (v view) now(ctx context.Context, act escalate.Act, d unit.Details, of begun) *seats.Acted {
	jobs := v.run(ctx, jobWith(act), []unit.Details{d}, order{wait: jobFor, of: of})
	v.after(ctx, jobWith(act), jobs)
	return &jobs[0].acted
}
