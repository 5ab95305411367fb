package state

import (
	"fmt"
	"slices"
	"time"

	"stead/mesh/wire"
)

const (
	// turns is within which time two machines are heard by turns when both of them
	// go by one node's credentials, and for how long that is said when it ends.
	turns = 5 * time.Minute
	// maxPast is how many machines are remembered of a node.
	maxPast = 4
)

// past is a machine of a node that was heard, and then another one.
type past struct {
	Machine string    `json:"machine"`
	Boot    string    `json:"boot"`
	Until   time.Time `json:"until"` // when the other one was heard
}

// Double says that two machines go by one node's credentials: the first of them
// was heard again after the second. One that was reinstalled, or started anew, is
// never heard again as what it was.
type Double struct {
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"` // when one of them was last heard again
	One   Machine   `json:"one"`
	Other Machine   `json:"other"`
}

// Machine tells one machine from another, and one boot of it.
type Machine struct {
	Host    string `json:"host,omitempty"` // the name that it gives itself
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
}

func machineOf(p wire.Profile) Machine { return Machine{p.Host, p.Machine, p.Boot} }

func (m Machine) is(p past) bool { return m.Machine == p.Machine && m.Boot == p.Boot }

// String names a machine for a person.
func (m Machine) String() string {
	return fmt.Sprintf("%s (machine %.8s, boot %.8s)", or(m.Host), or(m.Machine), or(m.Boot))
}

func or(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// follows is the presence that a profile makes of e, which was heard before.
func (e presence) follows(p wire.Profile, now time.Time) presence {
	next := presence{Profile: &p, Seen: e.Seen, Past: e.Past, Double: e.Double}
	if e.Profile == nil {
		return next
	}
	was, is := machineOf(*e.Profile), machineOf(p)
	if was.Machine == is.Machine && was.Boot == is.Boot {
		return next
	}
	back := slices.ContainsFunc(e.Past, func(p past) bool { return is.is(p) && now.Sub(p.Until) <= turns })
	next.Past = slices.DeleteFunc(slices.Clone(e.Past), func(p past) bool {
		return is.is(p) || was.is(p) || now.Sub(p.Until) > turns
	})
	next.Past = append(next.Past, past{was.Machine, was.Boot, now})
	next.Past = next.Past[max(0, len(next.Past)-maxPast):]
	if back {
		since := now
		if e.Double != nil && now.Sub(e.Double.Last) <= turns {
			since = e.Double.Since
		}
		next.Double = &Double{since, now, is, was}
	}
	return next
}

// Double is the two machines that go by a node's credentials, nil when there is
// one, as far as anybody noticed.
func (s *Store) Double(node string) *Double {
	e, _ := s.nodes.watch.Entry(node)
	if d := e.Value.Double; d != nil && !e.Deleted && s.o.Clock().Sub(d.Last) <= turns {
		return d
	}
	return nil
}
