package delegate

import (
	"context"
	"errors"
	"slices"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/shape"
)

// ask has the child answer. Where the caller goes first the answer is still waited
// for, beside: the next call has its turn after it. Nil callers do not go.
func (d *Delegate) ask(gone <-chan struct{}, question func(*process) (ask, []byte)) (reply, []byte, error) {
	p, done, err := d.turnOf(gone, "ask")
	if err != nil {
		return reply{}, nil, err
	}
	type outcome struct {
		r   reply
		raw []byte
		err error
	}
	back := make(chan outcome, 1)
	a, raw := question(p)
	go func() {
		defer done()
		r, raw, err := p.call(a, raw, d.o.Answer)
		back <- outcome{r, raw, err}
	}()
	select {
	case o := <-back:
		return o.r, o.raw, o.err
	case <-gone:
		return reply{}, nil, fault.New(fault.Canceled, string(a.Op), d.o.Login.Name, errGone)
	}
}

var errGone = errors.New("the caller went away")

// Look says what the disk has of each unit, in the order of qs; see disk.Look.
func (d *Delegate) Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error) {
	return d.look(ctx, opLook, qs, nil)
}

// LookAfter is Look as it would be after changes; see disk.LookAfter.
func (d *Delegate) LookAfter(ctx context.Context, qs []plan.Query, changes []plan.Change) ([]plan.Disk, error) {
	return d.look(ctx, opLookAfter, qs, changes)
}

func (d *Delegate) look(ctx context.Context, o op, qs []plan.Query, changes []plan.Change) ([]plan.Disk, error) {
	cs, raw := packed(changes)
	r, _, err := d.ask(ctx.Done(), func(p *process) (ask, []byte) {
		a := ask{Op: o, Changes: cs, Queries: make([]query, len(qs)), Services: make(map[string]*shape.Service)}
		if a.Anew = len(p.sent) > mostSent; a.Anew {
			clear(p.sent)
		}
		for i, q := range qs {
			a.Queries[i] = query{Query: q}
			if q.Service == nil {
				continue
			}
			digest := q.Service.Digest()
			a.Queries[i].Declared, a.Queries[i].Service = digest, nil
			if !p.sent[digest] {
				p.sent[digest], a.Services[digest] = true, q.Service
			}
		}
		return a, raw
	})
	if err == nil {
		err = r.Err.Err()
	}
	if err != nil {
		return nil, d.told(err)
	}
	if len(r.Disks) != len(qs) {
		return nil, d.broken("it looked at %d units, asked about %d", len(r.Disks), len(qs))
	}
	all := make([]plan.Disk, len(qs))
	for i := range qs {
		if all[i], err = d.judge(qs[i], r.Disks[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mostSent is of how many services a child keeps the declaration, those of one look
// aside.
const mostSent = 4096

// packed are changes whose contents are put behind each other.
func packed(changes []plan.Change) ([]change, []byte) {
	var raw []byte
	cs := make([]change, len(changes))
	for i, c := range changes {
		cs[i] = change{Change: c, Size: -1}
		if cs[i].Content = nil; c.Content != nil {
			cs[i].Size = len(c.Content)
			raw = append(raw, c.Content...)
		}
	}
	return cs, raw
}

// Snapshot returns what stands at p; see disk.Snapshot.
func (d *Delegate) Snapshot(p string) (plan.Entry, []byte, error) { return d.standing(opSnapshot, p) }

// Peek is Snapshot for those who only want to know; see disk.Peek.
func (d *Delegate) Peek(p string) (plan.Entry, []byte, error) { return d.standing(opPeek, p) }

func (d *Delegate) standing(o op, path string) (plan.Entry, []byte, error) {
	r, data, err := d.ask(nil, func(*process) (ask, []byte) { return ask{Op: o, Paths: []string{path}}, nil })
	switch {
	case err != nil:
		return plan.Entry{}, nil, d.told(err)
	case r.Err != nil:
		return r.Entry, nil, d.told(r.Err.Err())
	case clean(r.Entry.Target, maxText) != r.Entry.Target:
		return plan.Entry{}, nil, fault.New(fault.Refused, "read", path, errors.New("it leads to a name that holds bytes that are no text")).
			WithHint("rm " + path)
	case r.Entry.Kind != plan.File:
		return r.Entry, nil, nil
	case r.Entry.Digest != digestOf(data):
		// The ledger has bytes by their digest, also those of other accounts.
		return plan.Entry{}, nil, d.broken("the bytes of %q are not those that it states", path)
	}
	return r.Entry, data, nil
}

// Apply makes the changes; see disk.Apply.
func (d *Delegate) Apply(ctx context.Context, changes []plan.Change) plan.Applied {
	cs, raw := packed(changes)
	r, _, err := d.ask(ctx.Done(), func(*process) (ask, []byte) { return ask{Op: opApply, Changes: cs}, raw })
	if err == nil && len(r.Errs) != len(changes) {
		err = d.broken("it made %d changes, asked for %d", len(r.Errs), len(changes))
	}
	done := plan.Applied{Errs: make([]error, len(changes)), Made: d.below(r.Made), Kept: make(map[string]string)}
	for i, c := range changes {
		switch {
		case err != nil:
			done.Errs[i] = fault.New(fault.ClassOf(err), "write", c.Path, err)
		case r.Errs[i] != nil:
			done.Errs[i] = d.told(r.Errs[i].Err())
		}
		if as := r.Kept[c.Path]; as != "" && err == nil {
			done.Kept[c.Path] = clean(as, maxText)
		}
	}
	return done
}

// Missing returns the folders that Apply would have to make; see disk.Missing.
// Without an answer there are none that are known.
func (d *Delegate) Missing(paths []string) []string { return d.folders(opMissing, paths) }

// RemoveDirs removes those of the folders that are empty; see disk.RemoveDirs.
func (d *Delegate) RemoveDirs(paths []string) []string { return d.folders(opRemove, paths) }

func (d *Delegate) folders(o op, paths []string) []string {
	r, _, err := d.ask(nil, func(*process) (ask, []byte) { return ask{Op: o, Paths: paths}, nil })
	if err != nil {
		d.o.Logger.Warn("folders are not known", "account", d.o.Login.Name, "op", string(o), "error", err)
		return nil
	}
	if o == opRemove {
		return slices.DeleteFunc(r.Paths, func(p string) bool { return !slices.Contains(paths, p) })
	}
	return d.below(r.Paths)
}

// KeptAs is where Apply tells that it kept what stood at p.
func (d *Delegate) KeptAs(p string, e plan.Entry) string {
	return keptAs(Config{Home: d.o.Login.Home}.Kept(), p, e)
}

// told is an error that the child told, or that of having none, as one of ours.
func (d *Delegate) told(err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return err
	}
	cause := known.Cause
	if cause != nil {
		cause = errors.New(clean(cause.Error(), maxText))
	}
	class := known.Class
	if !class.Known() {
		class = fault.Failed
	}
	object := clean(known.Object, maxText)
	if object == "" {
		object = d.o.Login.Name
	}
	return fault.New(class, clean(known.Op, maxText), object, cause).WithHint(clean(known.Hint, maxText))
}
