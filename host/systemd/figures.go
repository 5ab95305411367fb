package systemd

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stead/host/unit"
)

// properties are those of one unit that anybody asks for.
type properties struct {
	d            unit.Details // what needs no second look
	load, active string
	names        []string
	triggers     [2][]string // Triggers, TriggeredBy
	stamps       struct{ activeEnter, activeExit, inactiveEnter, inactiveExit uint64 }
	invocation   string
	met, held    bool
	unmet        [2][]unit.Condition // of Conditions, of Asserts
	figures      map[string]uint64   // those that not every type has
}

// propertiesOf reads the answer of GetAll for all interfaces of a unit.
func propertiesOf(body []any) (*properties, error) {
	c, err := open("GetAll", body, "a{sv}")
	if err != nil {
		return nil, err
	}
	p := &properties{figures: make(map[string]uint64, 16)}
	c.list(func() {
		name, sig := c.text(), c.signature()
		if !p.read(name, string(sig), c) {
			c.skip(sig, 1)
		}
	})
	switch {
	case c.bad:
		return nil, strange("GetAll", errEarly)
	case unit.CheckName(string(p.d.ID)) != nil:
		return nil, strange("GetAll", fmt.Errorf("a unit with the id %.300q", p.d.ID))
	}
	return p, nil
}

// read reads one property of the type sig; false when nobody asks for it, or it
// is of another type.
func (p *properties) read(name []byte, sig string, c *cursor) bool {
	switch string(name) {
	case "LoadError":
		if sig != "(ss)" {
			return false
		}
		c.take(0, 8)
		c.text()
		p.d.LoadError = string(c.text())
		return true
	case "Conditions":
		return p.readUnmet(&p.unmet[0], sig, c)
	case "Asserts":
		return p.readUnmet(&p.unmet[1], sig, c)
	case "MainPID", "NRestarts", "ExecMainCode", "ExecMainStatus", "MemoryCurrent", "CPUUsageNSec", "TasksCurrent",
		"MemoryAccounting", "CPUAccounting", "TasksAccounting":
		n, ok := c.number(sig)
		if ok {
			p.figures[string(name)] = n
		}
		return ok
	}
	into := p.field(name)
	return into != nil && c.store(sig, into)
}

// field is where the property goes; nil when nobody asks for it.
func (p *properties) field(name []byte) any {
	switch string(name) {
	case "Id":
		return (*string)(&p.d.ID)
	case "Names":
		return &p.names
	case "Description":
		return &p.d.Description
	case "Documentation":
		return &p.d.Documents
	case "LoadState":
		return &p.load
	case "ActiveState":
		return &p.active
	case "SubState":
		return &p.d.Sub
	case "UnitFileState":
		return &p.d.Enablement
	case "UnitFilePreset":
		return &p.d.Preset
	case "FragmentPath":
		return &p.d.Fragment
	case "DropInPaths":
		return &p.d.DropIns
	case "NeedDaemonReload":
		return &p.d.NeedReload
	case "InvocationID":
		return &p.invocation
	case "Job":
		return &p.d.Job.ID
	case "Triggers":
		return &p.triggers[0]
	case "TriggeredBy":
		return &p.triggers[1]
	case "Result":
		return &p.d.Result
	case "ConditionResult":
		return &p.met
	case "AssertResult":
		return &p.held
	}
	return p.stamp(name)
}

func (p *properties) stamp(name []byte) any {
	switch string(name) {
	case "ActiveEnterTimestamp":
		return &p.stamps.activeEnter
	case "ActiveExitTimestamp":
		return &p.stamps.activeExit
	case "InactiveEnterTimestamp":
		return &p.stamps.inactiveEnter
	case "InactiveExitTimestamp":
		return &p.stamps.inactiveExit
	}
	return nil
}

// readUnmet reads Conditions or Asserts and keeps what was not met.
func (p *properties) readUnmet(into *[]unit.Condition, sig string, c *cursor) bool {
	if sig != "a(sbbsi)" {
		return false
	}
	c.list(func() {
		one := condition{Name: string(c.text()), Trigger: c.u32() != 0, Negate: c.u32() != 0, Param: string(c.text())}
		if one.State = int32(c.u32()); one.State < 0 { //nolint:gosec // it was one before it was sent
			*into = append(*into, unit.Condition{Text: one.String(), Assert: into == &p.unmet[1]})
		}
	})
	return true
}

// number reads a number or a boolean of the type sig. A negative one is not
// among those that are asked for.
func (c *cursor) number(sig string) (uint64, bool) {
	switch sig {
	case "t":
		return c.u64(), true
	case "u", "i", "b":
		return uint64(c.u32()), true
	}
	return 0, false
}

// details puts together what was read.
func (p *properties) details() unit.Details {
	d := p.d
	d.Load, d.Active = unit.LoadState(p.load), unit.ActiveState(p.active)
	d.Names = namesOf(p.names)
	d.Triggers, d.TriggeredBy = namesOf(p.triggers[0]), namesOf(p.triggers[1])
	if strings.Trim(p.invocation, "0") != "" {
		d.Invocation = p.invocation
	}
	if !p.met {
		d.Unmet = append(d.Unmet, p.unmet[0]...)
	}
	if !p.held {
		d.Unmet = append(d.Unmet, p.unmet[1]...)
	}
	d.Unset = map[string]string{}
	p.since(&d)
	p.usage(&d)
	p.process(&d)
	return d
}

// namesOf are names in order.
func namesOf(texts []string) []unit.Name {
	slices.Sort(texts)
	out := make([]unit.Name, 0, len(texts))
	for _, t := range texts {
		out = append(out, unit.Name(t))
	}
	return out
}

// since tells when the unit came into its state.
func (p *properties) since(d *unit.Details) {
	at, _ := p.stamp([]byte(stampOf(d.Active))).(*uint64)
	if d.Since = moment(*at); d.Since == nil {
		d.Unset[unit.FigureSince] = "it has been so ever since it was loaded"
	}
}

// stampOf is the stamp by which systemctl status says since when a unit is in its
// state.
func stampOf(active unit.ActiveState) string {
	switch {
	case active.Up():
		return "ActiveEnterTimestamp"
	case active.Down():
		return "InactiveEnterTimestamp"
	case active == unit.Activating:
		return "InactiveExitTimestamp"
	}
	return "ActiveExitTimestamp"
}

// moment is a stamp, nil when it was never set.
func moment(stamp uint64) *time.Time {
	if stamp == 0 || stamp > math.MaxInt64 {
		return nil
	}
	t := time.UnixMicro(int64(stamp)).UTC()
	return &t
}

// usage tells what the unit's processes use. systemctl shows a value of all bits
// as "[not set]".
func (p *properties) usage(d *unit.Details) {
	for _, f := range []struct {
		key, property, accounting string
		into                      **uint64
	}{
		{unit.FigureMemory, "MemoryCurrent", "MemoryAccounting", &d.Memory},
		{unit.FigureCPU, "CPUUsageNSec", "CPUAccounting", &d.CPU},
		{unit.FigureTasks, "TasksCurrent", "TasksAccounting", &d.Tasks},
	} {
		v, has := p.figures[f.property]
		switch {
		case !has:
			d.Unset[f.key] = none(d.ID)
		case v < math.MaxUint64:
			*f.into = &v
		case d.Active.Down():
			d.Unset[f.key] = "[not set]: it does not run"
		case p.figures[f.accounting] == 0:
			d.Unset[f.key] = "[not set]: " + f.accounting + "= is off"
		default:
			d.Unset[f.key] = "[not set]: the manager has no figure for it"
		}
	}
}

// process tells of the main process, which only services have.
func (p *properties) process(d *unit.Details) {
	pid, has := p.figures["MainPID"]
	if !has {
		for _, key := range []string{unit.FigureMainPID, unit.FigureRestarts, unit.FigureExitStatus} {
			d.Unset[key] = none(d.ID)
		}
		return
	}
	restarts := uint32(p.figures["NRestarts"]) //nolint:gosec // it was one before it was sent
	d.Restarts = &restarts
	if main := uint32(pid); main != 0 { //nolint:gosec // as above
		d.MainPID = &main
	} else {
		d.Unset[unit.FigureMainPID] = "it has no main process"
	}
	code := p.figures["ExecMainCode"]
	if d.ExitCode = exitCodes[code]; d.ExitCode == "" {
		d.Unset[unit.FigureExitStatus] = "no main process of it has ended"
		return
	}
	status := int(p.figures["ExecMainStatus"]) //nolint:gosec // as above
	d.ExitStatus = &status
}

// exitCodes are the words for ExecMainCode, which is the si_code of a SIGCHLD.
var exitCodes = map[uint64]string{1: "exited", 2: "killed", 3: "dumped", 4: "trapped", 5: "stopped", 6: "continued"}

// none says why a unit of that type has no such figure.
func none(n unit.Name) string { return "units of type " + n.Type() + " have none" }
