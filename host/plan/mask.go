package plan

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// mask is what holds a unit that is declared masked: a link, in the place of its
// unit file.
var mask = Entry{Kind: Link, Target: "/dev/null"}

// empty is the digest of a file without bytes, which systemd takes for a mask.
const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func isMask(e Entry) bool {
	return e.Kind == Link && filepath.Clean(e.Target) == mask.Target || e.Kind == File && e.Digest == empty
}

func (in Input) masked() bool { return in.Service != nil && in.Service.IsMasked() }

// unmasked reports whether the unit is declared not to be masked.
func (in Input) unmasked() bool {
	return in.Service != nil && in.Service.Masked != nil && !*in.Service.Masked
}

// wants are all files and links that shall stand, the mask of a masked unit last.
func (in Input) wants() []Want {
	if !in.masked() {
		return in.Disk.Wants
	}
	e := mask
	if at := in.Disk.At[in.Disk.Place]; at.Kind == Link && isMask(at) {
		e = at // written another way
	}
	return append(slices.Clip(in.Disk.Wants), Want{Path: in.Disk.Place, Entry: e, Why: "masked"})
}

// unmasks makes the steps that take away what masks the unit, but for what is to
// be overwritten.
func (in Input) unmasks(wanted map[string]bool) []Step {
	if !in.unmasked() {
		return nil
	}
	var steps []Step
	for _, p := range in.Disk.Masks {
		if !wanted[p] {
			steps = append(steps, Step{Action: take(in.Disk.At[p]), Path: p, Want: Entry{Kind: Absent}, Reason: "masked: false"})
		}
	}
	return steps
}

// disables makes the steps that take away the links by which the unit is enabled,
// where it is declared not to be, or masked: also those that came back.
func (in Input) disables() []Step {
	why := in.off()
	if why == "" {
		return nil
	}
	var steps []Step
	for _, p := range in.Disk.OwnLinks {
		steps = append(steps, Step{Action: Unlink, Path: p, Want: Entry{Kind: Absent}, Reason: why})
	}
	if !in.masked() {
		return steps
	}
	for _, p := range slices.Sorted(maps.Keys(in.Memory.Found)) {
		if in.away(p) && in.Disk.At[p].Kind == Link && p != in.Disk.Place {
			steps = append(steps, Step{Action: Unlink, Path: p, Want: Entry{Kind: Absent}, Reason: why})
		}
	}
	return steps
}

// off says why the unit is not to be enabled; "" when it may be.
func (in Input) off() string {
	switch {
	case in.Service == nil:
	case in.masked():
		return "masked: true"
	case in.Service.Enabled != nil && !*in.Service.Enabled:
		return "enabled: false"
	}
	return ""
}

// away reports whether a link that stood at p before stead was taken away by it.
func (in Input) away(p string) bool {
	return in.Memory.Found[p].Kind == Link && in.Memory.Wrote[p].Kind == Absent
}

// found is what is to be given back at p, as far as what is declared allows.
func (in Input) found(p string) Entry {
	found := in.Memory.Found[p]
	if in.unmasked() && isMask(found) && filepath.Base(p) == string(in.Service.Unit) {
		return Entry{Kind: Absent}
	}
	return found
}

// lifted reports whether the mask that holds the unit is one that stead takes away:
// masked: false is declared, or stead has put it there itself.
func (in Input) lifted() bool {
	p := in.Disk.Mask
	if in.unmasked() && slices.Contains(in.Disk.Masks, p) {
		return true
	}
	found, touched := in.Memory.Found[p]
	return touched && (isMask(in.Memory.Wrote[p]) || isMask(in.Memory.Before[p])) && !isMask(found)
}

// maskWords is the path of a mask, and says of an empty file, which systemd takes
// for one, that it is that: few know.
func (in Input) maskWords() string {
	if in.Disk.At[in.Disk.Mask].Kind == File {
		return in.Disk.Mask + ", which is an empty file"
	}
	return in.Disk.Mask
}

// wantsUnmasked reports whether what is declared cannot be while the unit is masked:
// to be stopped, and not enabled, it can be.
func (in Input) wantsUnmasked() bool {
	s, e := in.Service, ensure(in)
	return s.Content != nil || len(s.DropIns) > 0 || s.Enabled != nil && *s.Enabled || e == shape.Running || e == shape.Restarted
}

// unmaskHint is how a mask that stead leaves alone is lifted.
func (in Input) unmaskHint() string {
	switch {
	case slices.Contains(in.Disk.Masks, in.Disk.Mask):
		return "masked: false"
	case in.Service.Content == nil:
		return "declare its content, which comes before " + in.Disk.Mask
	}
	return "rm " + in.Disk.Mask
}

// stopsFirst brings a unit down that is about to be masked: a mask stops nothing,
// and with it in place systemd knows no more how the unit is stopped. One that
// somebody starts again meanwhile is masked all the same, and stopped after that.
func stopsFirst(in Input, d *Decision) bool {
	st, t := in.Status, in.Track
	if !in.masked() || in.Service.Unit.IsTemplate() || isMask(in.Disk.At[in.Disk.Place]) || st.Active.Down() && st.Job.ID == 0 {
		return false
	}
	if t.Tries > 0 && t.Job.Type == unit.StopJob && t.Job.ID == 0 {
		return false
	}
	if st.Job.ID == 0 || !queued(in, d) {
		stopped(in, d)
	}
	return true
}

// maskFails states why the manager does not take the unit for masked.
func maskFails(in Input, d *Decision) bool {
	fragment, is := in.Status.Fragment, in.Status.Load == unit.Masked
	if in.Service.Unit.IsTemplate() {
		fragment, is = in.Disk.Fragment, in.Disk.Mask != ""
	}
	switch {
	case is:
		return false
	case fragment != "" && fragment != in.Disk.Place:
		d.fail(report.Shadowed, "%s wins over the mask %s", fragment, in.Disk.Place)
		d.Hint = "rm " + fragment
	default:
		d.fail(report.BadUnit, "systemd does not take it for masked (%s)", in.Status.Load)
	}
	return true
}

// whyStop says why a unit is stopped.
func whyStop(in Input) string {
	if in.masked() {
		return fmt.Sprintf("it is %s; masked: true", in.Status.Active)
	}
	return fmt.Sprintf("it is %s; ensure: stopped", in.Status.Active)
}
