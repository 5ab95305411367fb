package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/shape"
	"stead/host/unit"
)

// diskSteps adds what must be put on disk and taken off it: old links go before
// new content comes, new links after it.
func diskSteps(in Input, d *Decision) {
	wanted := make(map[string]bool, len(in.Disk.Wants))
	var puts, takes []Step
	for _, w := range in.wants() {
		wanted[w.Path] = true
		if in.Disk.At[w.Path] == w.Entry {
			continue
		}
		puts = append(puts, Step{Action: put(w.Entry), Path: w.Path, Want: w.Entry, Content: w.Content,
			Reason: whyPut(in, w)})
	}
	takes = append(takes, giveBack(in, wanted, "it is no longer declared")...)
	takes = append(append(takes, in.disables()...), in.unmasks(wanted)...)
	slices.SortStableFunc(takes, func(a, b Step) int { return strings.Compare(a.Path, b.Path) })
	takes = slices.CompactFunc(takes, func(a, b Step) bool { return a.Path == b.Path })
	d.Steps = append(append(d.Steps, takes...), puts...)
}

// giveBack makes the steps that put every remembered path which is not wanted
// back to what stood there before stead.
func giveBack(in Input, wanted map[string]bool, reason string) []Step {
	var steps []Step
	for _, p := range slices.Sorted(maps.Keys(in.Memory.Found)) {
		found, now := in.found(p), in.Disk.At[p]
		if wanted[p] || now == found {
			continue
		}
		if in.off() != "" && in.away(p) {
			continue // a link that stood there before, and that enabled: false keeps away
		}
		s := Step{Action: put(found), Path: p, Want: found, Reason: reason}
		if found.Kind == Absent {
			if now.Kind == Absent || now.Kind == "" {
				continue
			}
			s.Action = take(now)
		}
		steps = append(steps, s)
	}
	return steps
}

// take is how e is taken away.
func take(e Entry) Action {
	if e.Kind == Link {
		return Unlink
	}
	return Remove
}

func put(e Entry) Action {
	if e.Kind == Link {
		return MakeLink
	}
	return Write
}

func whyPut(in Input, w Want) string {
	now := in.Disk.At[w.Path]
	wrote, before := in.Memory.Wrote[w.Path]
	before = before && in.Track.blocked == 0 // what is remembered may not have been written
	switch {
	case now.Kind == Absent || now.Kind == "":
		if before && wrote == w.Entry {
			return w.Why + " was removed outside"
		}
		return "new"
	case before && wrote == w.Entry && now.Kind == w.Entry.Kind && now.Digest == w.Entry.Digest && now.Target == w.Entry.Target:
		return "mode or owner was changed outside"
	case before && wrote == w.Entry:
		return w.Why + " was changed outside"
	}
	return w.Why + " differs"
}

// Definition fingerprints the files that systemd would read for the unit now.
func Definition(k Disk) string {
	h := sha256.New()
	h.Write([]byte(k.Fragment + "\x00" + strings.Join(k.DropIns, "\x00") + "\x00" + k.Loaded + "\x00" + k.Mask))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// NeedsReload says why the manager's picture of the unit is not that of the
// disk, "" when nothing speaks for it. It asks once for one state of the disk:
// a flag that stays on after a reload is not obeyed twice.
func NeedsReload(in Input) string {
	st, k := in.Status, in.Disk
	if in.Owes != "" {
		return in.Owes
	}
	if in.Track.ReloadedFor == Definition(k) {
		return ""
	}
	switch {
	case in.Service != nil && in.Service.Unit.IsTemplate():
		return ""
	case st.Load == unit.Masked && k.Mask == "":
		return "the manager takes it for masked still"
	case st.Load == unit.Masked:
		return ""
	case k.Mask != "" && st.Load != "":
		return "the manager does not take it for masked yet"
	case k.Fragment != st.Fragment && !samePlace(k.Fragment, st.Fragment):
		if k.Fragment == "" {
			return "its unit file is gone"
		}
		return "the manager has not read " + k.Fragment
	case !slices.EqualFunc(k.DropIns, st.DropIns, samePlace):
		return "the manager has read other drop-ins"
	case in.Memory.Loaded.Digest != "" && k.Loaded != in.Memory.Loaded.Digest:
		return "its files changed"
	case st.NeedReload:
		return "the manager says that its files changed"
	}
	return ""
}

// samePlace tells whether two paths name one file on a system whose /lib is a
// link to /usr/lib.
func samePlace(a, b string) bool {
	return strings.TrimPrefix(a, "/usr") == strings.TrimPrefix(b, "/usr")
}

// UnitOfPath tells which unit a path below a unit folder speaks of: the file
// itself, or the unit whose drop-in folder it is in. A link in a .wants folder
// is named for the unit that it pulls in.
func UnitOfPath(path string) string {
	dir := filepath.Base(filepath.Dir(path))
	if u, ok := strings.CutSuffix(dir, ".d"); ok {
		return u
	}
	return strings.TrimSuffix(filepath.Base(path), ".d")
}

// restarts tells whether a change of its definition restarts a unit of this
// type. A timer takes its new times in by the reload, a restart could fire it;
// a slice or target would take all that it holds along.
func restarts(n unit.Name) bool {
	switch n.Type() {
	case "timer", "slice", "target":
		return false
	}
	return true
}

// ensure is in which of three ways the unit is kept: running, stopped, or not.
func ensure(in Input) shape.Ensure {
	switch {
	case in.Service == nil:
		return shape.Unmanaged
	case in.masked():
		return shape.Stopped
	case in.Service.Ensure == shape.Restarted:
		return shape.Running
	}
	return in.Service.Ensure
}
