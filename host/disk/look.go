package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"

	"stead/host/plan"
	"stead/host/unit"
)

// look is one Look.
type look struct {
	*Disk
	now    *search // the disk as it is
	then   *search // with everything that is declared in place
	vendor map[string][]string
}

// Look says what the disk has of each unit, in the order of qs. It fails as a
// whole only when ctx ends; what cannot be read is in the Errs of its unit.
func (d *Disk) Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := newFolders(d)
	defer f.close()
	l := &look{Disk: d, now: newSearch(f, d.o)}
	for _, p := range d.o.UnitPath {
		f.dir(p)
	}
	over := make(map[string]*thing)
	for _, q := range qs {
		if q.Service != nil {
			dec := d.declaredOf(q.Service)
			for i, w := range dec.wants {
				over[w.Path] = dec.things[i]
			}
		}
	}
	l.then = l.now.with(over)
	all := make([]plan.Disk, len(qs))
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return nil, canceled("look at unit folders", err)
		}
		all[i] = l.unit(q)
	}
	return all, nil
}

// unit looks at one unit.
func (l *look) unit(q plan.Query) plan.Disk {
	u := &one{look: l, q: q, d: plan.Disk{At: make(map[string]plan.Entry)}}
	var gone bool
	u.d.Fragment, gone = l.now.fragment(q.Unit)
	names := l.now.names(q.Unit, u.d.Fragment)
	if hasDropIns(q, u.d.Fragment, gone) {
		u.d.DropIns = l.now.dropins(names)
	}
	u.d.Mask = u.mask()
	u.d.Loaded = u.loaded()
	text := u.text()
	if q.Service != nil {
		u.d.Wants = append(u.d.Wants, l.declaredOf(q.Service).wants...)
		u.links(text, names)
	}
	for _, w := range u.d.Wants {
		u.at(w.Path)
	}
	for _, m := range []map[string]plan.Entry{q.Memory.Found, q.Memory.Wrote} {
		for _, p := range slices.Sorted(maps.Keys(m)) {
			u.at(p)
		}
	}
	return u.d
}

// hasDropIns reports whether systemd looks for drop-ins of a unit: most have to
// have a fragment, and some are made of something else.
func hasDropIns(q plan.Query, fragment string, gone bool) bool {
	if gone {
		return false
	}
	switch q.Unit.Type() {
	case "slice", "device", "scope":
		return true
	case "mount", "swap": // it exists, and nobody wrote a unit for it
		return fragment != "" || q.Status.Load == unit.Loaded && q.Status.Fragment == ""
	}
	return fragment != ""
}

// one is one unit of a look.
type one struct {
	*look
	q plan.Query
	d plan.Disk
}

// at puts down what stands at a path.
func (u *one) at(p string) *thing {
	t := u.now.at(p)
	if _, done := u.d.At[p]; !done {
		u.d.At[p] = t.entry
		u.seen[p] = sight{t.entry, t.stamp}
		if t.err != nil {
			u.d.Errs = append(u.d.Errs, failure("read", p, t.err))
		}
	}
	return t
}

// mask is the mask that holds the unit. One that the declared unit file will win
// over holds nothing.
func (u *one) mask() string {
	p := u.d.Fragment
	if p == "" || !u.now.through(p).null {
		return ""
	}
	wins, _ := u.then.fragment(u.q.Unit)
	if path.Dir(p) != u.o.ConfigDir && wins != p && u.q.Service != nil && u.q.Service.Content != nil {
		return ""
	}
	return p
}

// loaded is the digest of what the manager has loaded, as it is on disk now.
func (u *one) loaded() string {
	if u.q.Status.Fragment == "" {
		return ""
	}
	h := sha256.New()
	for _, p := range append([]string{u.q.Status.Fragment}, u.q.Status.DropIns...) {
		t := u.now.through(p)
		if t.err != nil {
			u.d.Errs = append(u.d.Errs, failure("read", p, t.err))
		}
		h.Write([]byte(p + "\x00" + string(t.entry.Kind) + t.entry.Digest + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
