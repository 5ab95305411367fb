package plan

import (
	"maps"

	"stead/host/shape"
	"stead/host/unit"
)

// Adopt notes what a declared unit is like before stead does anything to it:
// whether it runs, and what stands there as wanted already. Without that, what
// somebody does to it later would pass for what was found. It reports whether
// anything changed, and returns the wants that are remembered anew, whose bytes
// the ledger must have. A unit that may not be touched is not taken over.
func Adopt(in Input) (Memory, []Want, bool) {
	m := in.Memory
	refused := refuse
	if in.ofFile() {
		refused = denied
	}
	if in.Service == nil || len(in.Disk.Errs) > 0 || refused(in, &Decision{}) {
		return m, nil, false
	}
	var fresh []Want
	for _, w := range in.wants() {
		if _, touched := m.Found[w.Path]; !touched && in.Disk.At[w.Path] == w.Entry {
			fresh = append(fresh, w)
		}
	}
	if len(fresh) > 0 {
		m.Found, m.Wrote = cloned(m.Found), cloned(m.Wrote)
		for _, w := range fresh {
			m.Found[w.Path], m.Wrote[w.Path] = w.Entry, w.Entry
		}
	}
	acts := ensure(in) != shape.Unmanaged && m.Activity == ""
	if acts {
		m.Activity = Rest(in.Status)
	}
	return m, fresh, acts || len(fresh) > 0
}

func cloned(m map[string]Entry) map[string]Entry {
	if m == nil {
		return make(map[string]Entry)
	}
	return maps.Clone(m)
}

// Rest is the state in which a unit is given back that is found like that.
func Rest(st unit.Status) unit.ActiveState {
	switch {
	case st.Active.Up(), st.Active == unit.Activating:
		return unit.Active
	case st.Active == unit.FailedState:
		return unit.FailedState
	}
	return unit.Inactive
}
