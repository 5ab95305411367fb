package systemd

import (
	"bytes"
	"encoding/hex"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// A change of a unit is announced by two signals, sent together: one of its
// type's interface, then one of Unit. Each carries all of its interface's
// changing properties (seen on systemd 247, 252 and 257), and so all that a look
// would ask for, but for what triggers the unit and which conditions were not
// met. Taking them in saves those calls, which is most of what a look costs
// while units start. They are what the manager says of a unit, in order with its
// replies; a look holds them against the list all the same, and asks where the
// two do not agree.

// facts is what a signal says of a unit, as far as anybody asks.
type facts struct {
	has factBits

	active, sub, invocation        string // of Unit
	job                            uint32
	changed, exited, tried, tested uint64
	met, held                      bool

	result             string // of a unit type
	restarts, mainPID  uint32
	exitCode, exitStat int32
}

// factBits tells which facts a signal had, a bit for each.
type factBits uint32

const (
	hasActive factBits = 1 << iota
	hasSub
	hasInvocation
	hasJob
	hasChanged
	hasExited
	hasTried
	hasTested
	hasMet
	hasHeld
	hasResult
	hasRestarts
	hasMainPID
	hasExitCode
	hasExitStatus

	ofUnit    = hasActive | hasSub | hasInvocation | hasJob | hasChanged | hasExited | hasTried | hasTested | hasMet | hasHeld
	ofService = hasResult | hasRestarts | hasMainPID | hasExitCode | hasExitStatus
)

// read reads one property whose value begins with the signature sig; false when
// nobody asks for it, or it is of another type.
func (f *facts) read(name, sig []byte, c *cursor) bool {
	var into any
	var bit factBits
	switch string(name) {
	case "ActiveState":
		into, bit = &f.active, hasActive
	case "SubState":
		into, bit = &f.sub, hasSub
	case "InvocationID":
		into, bit = &f.invocation, hasInvocation
	case "Job":
		into, bit = &f.job, hasJob
	case "StateChangeTimestampMonotonic":
		into, bit = &f.changed, hasChanged
	case "InactiveExitTimestampMonotonic":
		into, bit = &f.exited, hasExited
	case "ConditionTimestampMonotonic":
		into, bit = &f.tried, hasTried
	case "AssertTimestampMonotonic":
		into, bit = &f.tested, hasTested
	case "ConditionResult":
		into, bit = &f.met, hasMet
	case "AssertResult":
		into, bit = &f.held, hasHeld
	case "Result":
		into, bit = &f.result, hasResult
	case "NRestarts":
		into, bit = &f.restarts, hasRestarts
	case "MainPID":
		into, bit = &f.mainPID, hasMainPID
	case "ExecMainCode":
		into, bit = &f.exitCode, hasExitCode
	case "ExecMainStatus":
		into, bit = &f.exitStat, hasExitStatus
	default:
		return false
	}
	if !c.store(string(sig), into) {
		return false
	}
	if p, is := into.(*string); is && !short(*p) {
		*p = ""
		return true // no manager's: a look asks for it
	}
	f.has |= bit
	return true
}

// store reads a value of the type that sig says; false when into is of another.
func (c *cursor) store(sig string, into any) bool {
	switch p := into.(type) {
	case *string:
		switch sig {
		case "s":
			*p = string(c.text())
		case "ay":
			*p = hex.EncodeToString(c.take(int(c.u32()), 1))
		default:
			return false
		}
	case *uint64:
		if sig != "t" {
			return false
		}
		*p = c.u64()
	case *uint32:
		switch sig {
		case "u":
			*p = c.u32()
		case "(uo)":
			c.take(0, 8)
			*p = c.u32()
			c.text()
		default:
			return false
		}
	case *int32:
		if sig != "i" {
			return false
		}
		*p = int32(c.u32()) //nolint:gosec // it was one before it was sent
	case *bool:
		if sig != "b" {
			return false
		}
		*p = c.u32() != 0
	case *[]string:
		if sig != "as" {
			return false
		}
		*p = c.texts()
	}
	return true
}

// parseChange reads the signal PropertiesChanged(interface, changed, …) from
// where its body begins.
func parseChange(c *cursor) (iface string, f facts, ok bool) {
	iface = string(c.text())
	end := int(c.u32())
	c.take(0, 8)
	for end += c.at; c.at < end && !c.bad; {
		c.take(0, 8)
		name, sig := c.text(), c.signature()
		if !f.read(name, sig, c) {
			c.skip(sig, 1)
		}
	}
	return iface, f, !c.bad
}

// signal is the header of one.
type signal struct {
	path, iface, member, sig []byte
}

// parseSignal reads the header of a message, and leaves c where the body begins;
// false for what is no signal.
func parseSignal(c *cursor) (s signal, ok bool) {
	if c.b[1] != kindSignal {
		return s, false
	}
	c.at = 12
	for end := int(c.u32()) + fixedHeader; c.at < end && !c.bad; {
		c.take(0, 8)
		code, sig := c.u8(), c.signature()
		var into *[]byte
		switch code {
		case 1:
			into = &s.path
		case 2:
			into = &s.iface
		case 3:
			into = &s.member
		case 8:
			into = &s.sig
		}
		switch {
		case into != nil && bytes.Equal(sig, []byte("g")):
			*into = c.signature()
		case into != nil && (bytes.Equal(sig, []byte("s")) || bytes.Equal(sig, []byte("o"))):
			*into = c.text()
		default:
			c.skip(sig, 1)
		}
	}
	c.take(0, 8)
	return s, !c.bad
}

// pass is what godbus is to see of a message: all but what takeMessage takes in,
// all properties of a unit as a text, and of a user manager what is plausible.
func (r *receiver) pass(message []byte) []byte {
	if r.takeMessage(message) || r.wary && !plausible(message) {
		return nil
	}
	return r.sealer.dictionary(message)
}

// takeMessage takes in signals of changed properties, and those of no interest.
// It is called in the order in which messages come, before godbus sees them.
func (r *receiver) takeMessage(message []byte) bool {
	if len(message) < fixedHeader {
		return false
	}
	order, err := orderOf(message)
	if err != nil {
		return false
	}
	c := &cursor{b: message, order: order}
	s, ok := parseSignal(c)
	switch {
	case !ok:
		return false
	case string(s.member) == "JobNew" && string(s.iface) == managerIfc:
		return true
	case string(s.member) != "PropertiesChanged" || string(s.iface) != "org.freedesktop.DBus.Properties" || string(s.sig) != "sa{sv}as":
		return false
	}
	if n, is := unitOfPath(dbus.ObjectPath(s.path)); is {
		iface, f, ok := parseChange(c)
		if !ok {
			return false // godbus says what it thinks of it
		}
		r.propertiesChanged(n, iface, f)
	}
	return true
}

// take puts together what the two signals of a change say, and gives it to the
// cache when it is whole.
func (p *prints) take(n unit.Name, iface string, f facts, c *cache) {
	kind := typeIfcs[n.Type()]
	switch iface {
	case kind:
		p.run = f.ofKind(n.Type())
	case unitIfc:
		r := p.run
		if p.run = nil; kind == "" {
			r = &running{}
		}
		if r != nil && f.has&ofUnit == ofUnit && f.stands(r) {
			c.told(n, r)
		}
	}
}

// ofKind is what the signal of a type's interface says; nil when that is not all.
func (f facts) ofKind(kind string) *running {
	want := hasResult
	if kind == "service" {
		want = ofService
	}
	if f.has&want != want {
		return nil
	}
	r := &running{restarts: f.restarts, mainPID: f.mainPID}
	r.trouble.Result, r.trouble.ExitCode, r.trouble.ExitStatus = f.result, f.exitCode, f.exitStat
	return r
}

// stands adds what the signal of the Unit interface says, and reports whether
// that is all there is to know.
func (f facts) stands(r *running) bool {
	r.seen = key{load: unit.Loaded, active: unit.ActiveState(f.active), sub: f.sub, job: f.job}
	r.invocation = f.invocation
	r.changed, r.started = stamp(f.changed), stamp(f.exited)
	switch {
	case r.seen.active.Up():
		r.trouble = unit.Trouble{}
		return true
	case r.seen.active.Down():
		r.mainPID = 0
	}
	return (f.met || f.tried == 0) && (f.held || f.tested == 0)
}

func stamp(us uint64) time.Duration { return time.Duration(us) * time.Microsecond } //nolint:gosec // 300,000 years
