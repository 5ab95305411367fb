// Package plan decides, purely, what is to be done about one unit: from the
// declaration, what the manager and the disk say, what the ledger remembers and
// what the loop has seen lately, it makes the steps with their reasons and the
// outcome as it stands.
//
// Decide is called at least twice in a pass: before anything is written, and
// again after the reload, on a fresh look. It asks for jobs only when nothing is
// left to write and no reload is owed, so a caller acts on the steps in order
// and asks again. For dry runs the package also says what a manager would answer
// after acts that nobody has done (Reread, Obeyed), what would change in a file
// (Diff), and holds the words for it (Preview). The package touches nothing: no disk, no manager, no clock.
// All of it is safe for concurrent use; values are not shared.
package plan

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// Action is what a step does.
type Action string

// The actions, in the order of a pass.
const (
	Write       Action = "write"  // a file
	MakeLink    Action = "link"   // a symbolic link
	Remove      Action = "remove" // a file
	Unlink      Action = "unlink" // a symbolic link
	Reload      Action = "reload" // the manager
	ResetFailed Action = "reset-failed"
	Start       Action = "start"
	Stop        Action = "stop"
	Restart     Action = "restart" // only if it runs: a try-restart job
	ReloadUnit  Action = "reload-unit"
	// ReloadOrRestart reloads a unit that can be reloaded, and else restarts it; it
	// starts nothing.
	ReloadOrRestart Action = "reload-or-restart"
)

// Step is one action and why it is taken.
type Step struct {
	Action Action
	Path   string // of disk steps
	Want   Entry  // what shall stand at Path; Absent for Remove and Unlink
	// Content is what a Write puts down. A Write without it puts back the bytes
	// that the ledger keeps for Want.Digest.
	Content []byte
	Unit    unit.Name // of jobs and reset-failed
	Yield   bool      // of a stop: not in place of a start that is in the queue
	Reason  string
}

// OnDisk reports whether s changes the disk.
func (s Step) OnDisk() bool {
	switch s.Action {
	case Write, MakeLink, Remove, Unlink:
		return true
	}
	return false
}

// Job returns the job that s asks for; false for a step that is not a job.
func (s Step) Job() (unit.JobRequest, bool) {
	switch s.Action {
	case Start:
		return unit.JobRequest{Name: s.Unit, Type: unit.StartJob}, true
	case Stop:
		return unit.JobRequest{Name: s.Unit, Type: unit.StopJob, Yield: s.Yield}, true
	case Restart:
		return unit.JobRequest{Name: s.Unit, Type: unit.TryRestartJob}, true
	case ReloadUnit:
		return unit.JobRequest{Name: s.Unit, Type: unit.ReloadJob}, true
	case ReloadOrRestart:
		return unit.JobRequest{Name: s.Unit, Type: unit.ReloadOrTryRestartJob}, true
	}
	return unit.JobRequest{}, false
}

// Input is all that a decision depends on.
type Input struct {
	Service    *shape.Service // nil: the unit is being given back
	Generation uint64         // of the declaration
	Status     unit.Status
	Disk       Disk
	Memory     Memory
	Track      Track
	Clock      Clock
	Owner      Owner                     // who has the unit, when it is another declaration
	Rival      string                    // a unit that runs as declared, and that a start of this one would stop (Conflicts=); "" when there is none
	Pullers    map[unit.Name]unit.Status // how those stand that shall pull the unit in, as far as it is known
	Reloaded   time.Duration             // when the unit last reloaded with success, CLOCK_MONOTONIC, where that is Unsure; 0 when it is not known
	Owes       string                    // why the manager owes the unit a reload from an earlier act; "" when it does not
}

// Owner is another declaration, and the unit in which two meet.
type Owner struct {
	Name string
	Unit unit.Name
}

// Decision is what is to be done and how the declaration stands.
type Decision struct {
	Steps    []Step
	Outcome  report.Outcome
	Reason   report.Reason
	Text     string
	Hint     string // what a person can do about it; "" when that is not known
	Warnings []string
	Again    time.Time // look again by then; zero: only when something happens
	Right    bool      // seen as declared, in all that a step could change, whatever the outcome says besides
	Done     bool      // of a unit that is given back: nothing is left to do
}

// lookAgain is when a path that could not be looked at is looked at again.
const lookAgain = 30 * time.Second

// Settle is how long a unit must hold a state before it counts.
const Settle = time.Second

// Decide makes the plan for one unit.
func Decide(in Input) Decision {
	d := &Decision{}
	if in.Service == nil && in.Memory.OnWithdraw == shape.Release {
		d.Done = true
		return *d
	}
	if len(in.Disk.Errs) > 0 {
		// What stands there is not known, so it could not be given back later.
		d.failBy(report.DiskError, in.Disk.Errs[0])
		d.by(in.Clock.Wall.Add(lookAgain))
		return *d
	}
	if in.ofFile() {
		file(in, d)
		return *d
	}
	if in.Service == nil {
		withdraw(in, d)
		return *d
	}
	if refuse(in, d) || stopsFirst(in, d) {
		return *d
	}
	diskSteps(in, d)
	switch {
	case len(d.Steps) > 0:
		if in.Track.held(d, in.Clock.Wall) {
			d.Steps = nil
			return *d
		}
		if in.Track.Fought > 0 && !in.Track.free(in.Clock.Wall) {
			d.Steps = nil
			d.contested(in)
			return *d
		}
		d.reload(in, "its files changed")
		return *d
	case NeedsReload(in) != "":
		d.reload(in, NeedsReload(in))
		return *d
	}
	if unloadable(in, d) {
		return *d
	}
	activity(in, d)
	d.links(in)
	d.shadowed(in)
	d.noted(in)
	if in.Track.Fought > 0 && d.Outcome != report.Failed && d.Outcome != report.Refused {
		d.contested(in)
	}
	return *d
}

func reloadStep(reason string) Step { return Step{Action: Reload, Reason: reason} }

func (d *Decision) set(o report.Outcome, r report.Reason, format string, args ...any) {
	d.Outcome, d.Reason, d.Text, d.Hint = o, r, fmt.Sprintf(format, args...), ""
}

func (d *Decision) converge() {
	d.Outcome, d.Reason, d.Text, d.Hint, d.Right = report.Converged, "", "", "", true
}

func (d *Decision) wait(r report.Reason, format string, args ...any) {
	d.set(report.Waiting, r, format, args...)
}

func (d *Decision) fail(r report.Reason, format string, args ...any) {
	d.set(report.Failed, r, format, args...)
}

// failBy states an error and the cure that it knows.
func (d *Decision) failBy(r report.Reason, err error) {
	d.fail(r, "%s", err)
	d.Hint = fault.HintOf(err)
}

func (d *Decision) refuse(r report.Reason, format string, args ...any) {
	d.set(report.Refused, r, format, args...)
}

func (d *Decision) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

func (d *Decision) job(a Action, in Input, reason string) {
	yield := a == Stop && in.Status.Active != unit.Activating && in.Track.pathTriggered() // a start that is under way would keep it away
	d.Steps = append(d.Steps, Step{Action: a, Unit: in.Status.Asked, Yield: yield, Reason: reason})
}

// by asks for another look at t, or at an earlier time that was asked for.
func (d *Decision) by(t time.Time) {
	if d.Again.IsZero() || t.Before(d.Again) {
		d.Again = t
	}
}

func (d *Decision) contested(in Input) {
	t := in.Track
	n := len(t.Undone)
	text := fmt.Sprintf("undone %d times lately (%s); put right with growing delay", n, t.UndoneHow)
	if !t.free(in.Clock.Wall) {
		text += ", next " + t.NotBefore.Format("15:04:05")
		d.by(t.NotBefore)
	} else {
		d.by(t.quietAt())
	}
	d.Outcome, d.Reason, d.Text, d.Hint = report.Contested, "", text, ""
}

// refuse states what forbids the whole declaration on this node.
func refuse(in Input, d *Decision) bool {
	s, st := in.Service, in.Status
	if in.Owner.Name != "" {
		d.refuse(report.OwnedBy, "conflict with %s: %s is declared by it already", in.Owner.Name, in.Owner.Unit)
		return true
	}
	if why, is := shape.Protected(s.Scope, st.ID); is {
		d.refuse(report.Protected, "%s is protected: %s", st.ID, why)
		return true
	}
	if path, why := reaches(s.Scope, in.Disk.Wants); path != "" {
		d.refuse(report.Protected, "its [Install] section asks for %s, which reaches a protected unit: %s", path, why)
		return true
	}
	if deadly := in.Disk.Text.Deadly; deadly != "" && (s.Content != nil || len(s.DropIns) > 0) {
		d.refuse(report.BadUnit, "%s: the service manager of this node would not survive to load it", deadly)
		d.Hint = "a service of Type=dbus has a BusName="
		return true
	}
	if in.Disk.Mask != "" && !in.masked() && !in.lifted() && !in.truncated() && in.wantsUnmasked() {
		d.refuse(report.IsMasked, "%s is masked by %s: it is not started, enabled or written; unmask it first", s.Unit, in.maskWords())
		d.Hint = in.unmaskHint()
		return true
	}
	if alias := st.ID != st.Asked && st.ID != ""; alias && in.masked() && !isMask(in.Disk.At[in.Disk.Place]) {
		d.refuse(report.IsAlias, "%s is an alias of %s: mask it under that name", s.Unit, st.ID)
		d.Hint = "unit: " + string(st.ID)
		return true
	}
	if p := in.Disk.Own(in); p.Kind == Link && s.Content != nil && st.ID != st.Asked && st.ID != "" {
		d.refuse(report.IsAlias, "%s is an alias of %s: declare content under that name", s.Unit, st.ID)
		d.Hint = "unit: " + string(st.ID)
		return true
	}
	return false
}

// truncated reports whether the mask is stead's own unit file with its bytes
// gone: systemd takes an empty file for a mask, and nobody meant one.
func (in Input) truncated() bool {
	p := in.Disk.Mask
	wrote := in.Memory.Wrote[p]
	return in.Disk.At[p].Kind == File && wrote.Kind == File && wrote.Digest != in.Disk.At[p].Digest
}

// reaches finds a wanted link that would take a protected unit's name, or make
// one require this unit: the links are known only when the machine's specifiers
// are, so the declaration alone does not tell.
func reaches(scope unit.Scope, wants []Want) (path, why string) {
	for _, w := range wants {
		if w.Entry.Kind != Link {
			continue
		}
		name := filepath.Base(w.Path)
		if owner, is := strings.CutSuffix(filepath.Base(filepath.Dir(w.Path)), ".requires"); is {
			name = owner
		}
		if why, is := shape.Protected(scope, unit.Name(name)); is {
			return w.Path, why
		}
	}
	return "", ""
}

// Own is what stands at the path of the declared unit file; the zero Entry when
// no content is declared.
func (k Disk) Own(in Input) Entry {
	for _, w := range k.Wants {
		if w.Why == "content" {
			return k.At[w.Path]
		}
	}
	return Entry{}
}

// unloadable states what systemd says of a definition that it cannot use.
func unloadable(in Input, d *Decision) bool {
	st, s := in.Status, in.Service
	if in.masked() {
		return maskFails(in, d)
	}
	if s.Unit.IsTemplate() {
		if in.Disk.Fragment == "" {
			d.fail(report.Missing, "no template %s on this node", s.Unit)
			return true
		}
		return outdone(in, in.Disk.Fragment, d)
	}
	switch st.Load {
	case unit.NotFound:
		d.fail(report.Missing, "no unit %s on this node, and no content is declared", s.Unit)
		d.Hint = "declare its content, or install what brings it" + escapedHint(s.Unit)
	case unit.BadSetting, unit.LoadFailed:
		words := st.Trouble.LoadError
		if words == "" {
			words = "systemd cannot load it (" + string(st.Load) + ")"
		}
		d.fail(report.BadUnit, "%s", words)
	case unit.Masked:
		if !in.wantsUnmasked() {
			return false
		}
		d.refuse(report.IsMasked, "%s is masked; unmask it first", s.Unit)
	default:
		return outdone(in, st.Fragment, d)
	}
	return true
}

// links adds what stands against the declared enablement to an outcome that
// would otherwise be good.
func (d *Decision) links(in Input) {
	if in.Service.Enabled == nil {
		return
	}
	text := in.Disk.Text
	for _, e := range text.InstallErrors {
		d.warn("[Install]: %s", e)
	}
	if !*in.Service.Enabled {
		for _, v := range in.Disk.Vendor {
			d.warn("%s is pulled in by %s, which enabled: false does not turn off; masked: true would", in.Service.Unit, v)
		}
		return
	}
	d.pulled(in)
	why := ""
	switch {
	case text.Kind != Plain:
		why = fmt.Sprintf("it is %s; its enablement lives in what made it", text.Kind)
	case !text.HasInstall:
		why = "it is static: it has no [Install] section, so there is nothing to enable"
	case text.InstallFailed && len(text.InstallErrors) > 0:
		why = "its [Install] section cannot be followed: " + text.InstallErrors[0]
	}
	if why == "" {
		return
	}
	if d.Outcome == report.Converged || d.Reason == report.Settling {
		d.refuse(report.NoInstall, "enabled: true on %s: %s", in.Service.Unit, why)
		return
	}
	d.warn("enabled: true on %s: %s", in.Service.Unit, why)
}
