package server

import (
	"cmp"
	"encoding/json"
	"fmt"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/escalate"
)

// lateEvent is what the audit is told of an act that ended behind its call.
func lateEvent(node subject.Node, l escalate.Late) wire.Event {
	e := wire.Event{
		ID: l.ID + ".late", At: l.Began.Add(l.Took), Source: "runtime", Node: string(node), Who: l.For, Kind: string(l.Act), Unit: string(l.Unit), Scope: string(cmp.Or(l.Scope, unit.System)),
	}
	switch {
	case l.Err != nil:
		e.Reason, e.Text = string(fault.ClassOf(l.Err)), "ended after its call: "+l.Err.Error()
	case l.Result != "":
		e.Outcome, e.Text = string(l.Result), fmt.Sprintf("ended after its call: %s in %.1f s", l.Result, l.Took.Seconds())
	default:
		e.Text = "ended after its call: it was done"
	}
	if l.Note != "" {
		e.Text += "; " + l.Note
	}
	return e
}

// revisionOf reads a hint; nothing else that it says is relied on.
func revisionOf(payload []byte) (uint64, bool) {
	var c wire.Changed
	if json.Unmarshal(payload, &c) != nil {
		return 0, false
	}
	return c.Revision, true
}
