package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"stead/host/report"
	"stead/host/unit"
)

// OfFile reports whether n is no unit's name but the path by which a declared file
// is known, as it is declared.
func OfFile(n unit.Name) bool {
	return strings.HasPrefix(string(n), "/") || strings.HasPrefix(string(n), "~")
}

// Denial is why a declared file is not written on this machine: nothing of it is.
type Denial struct {
	Reason report.Reason
	Text   string
	Hint   string
}

// Why a declared file is not written on a machine.
const (
	DeniedTarget    = report.BadTarget
	DeniedLogin     = report.NoLogin
	DeniedProtected = report.Protected
)

// ofFile reports whether the input is of a declared file, or of one that is given back.
func (in Input) ofFile() bool {
	if in.Service != nil {
		return in.Service.File != nil
	}
	return OfFile(in.Memory.Unit)
}

// file decides about a declared file. It has no unit: nothing is reloaded or queued
// for it.
func file(in Input, d *Decision) {
	if in.Service == nil {
		d.wait(report.Withdrawing, "putting back what stood there before")
		steps := giveBack(in, nil, "withdrawn")
		if len(steps) == 0 {
			d.Done = true
		} else if !in.Track.held(d, in.Clock.Wall) {
			d.Steps = steps
		}
		return
	}
	if denied(in, d) {
		return
	}
	diskSteps(in, d)
	fought := in.Track.Fought > 0
	switch {
	case len(d.Steps) == 0:
		d.converge()
	case in.Track.held(d, in.Clock.Wall):
		d.Steps = nil
	case fought && !in.Track.free(in.Clock.Wall):
		d.Steps = nil
	default:
		d.wait(report.Writing, "it is being written")
		return
	}
	if fought && d.Outcome != report.Failed {
		d.contested(in)
	}
}

// denied states what forbids a declared file on this node.
func denied(in Input, d *Decision) bool {
	if in.Owner.Name != "" {
		d.refuse(report.OwnedBy, "conflict with %s: %s is declared by it already", in.Owner.Name, in.Owner.Unit)
		return true
	}
	if no := in.Disk.Denied; no.Reason != "" {
		d.refuse(no.Reason, "%s", no.Text)
		d.Hint = no.Hint
		d.by(in.Clock.Wall.Add(lookAgain)) // a login or a folder may come without a word
		return true
	}
	return false
}

// Cites reports whether one of the triggers of k leads to a path at which something
// was written.
func (k Disk) Cites(written map[string]bool) bool {
	for p, c := range k.Triggers {
		if written[p] || written[c.Path] || written[c.Real] || c.Folder && (folderOf(written, p) || folderOf(written, c.Real)) {
			return true
		}
	}
	return false
}

// folderOf reports whether something was written in the folder p.
func folderOf(written map[string]bool, p string) bool {
	for w := range written {
		if filepath.Dir(w) == p {
			return true
		}
	}
	return false
}

// waitsForOthers reports whether the manager is not reloaded for the unit: that is
// left to somebody else.
func (in Input) waitsForOthers() bool { return in.Service != nil && in.Service.DaemonReload != "" }

// reload asks for a reload of the manager, or waits for one.
func (d *Decision) reload(in Input, why string) {
	if in.waitsForOthers() {
		d.wait(report.OwedReload, "%s, and daemon_reload: never is declared: it waits for somebody else's reload", why)
		d.Hint = "systemctl daemon-reload, in the manager's scope"
		d.by(in.Clock.Wall.Add(lookAgain))
		return
	}
	d.Steps = append(d.Steps, reloadStep(why))
	d.wait(report.OwedReload, "%s", why)
}

// Writes reports whether a decision asks for changes of the disk.
func (d Decision) Writes() bool { return slices.ContainsFunc(d.Steps, Step.OnDisk) }
