package subject

import (
	"fmt"
	"strings"

	"stead/host/fault"
)

// Address is a subject read back. Exactly one of Topic, Operation and Verb is
// set.
type Address struct {
	Class     Class     // of an operation or a verb
	Node      Node      // of a topic or a verb; All in a verb to every node
	Topic     Topic     // node.v1
	Operation Operation // mesh.v1
	Seat      Seat      // seat.v1, with Verb
	Verb      Verb      // seat.v1
}

// Parse reads a subject back. It returns an error of class invalid for
// everything that no function of this package makes: patterns, unknown topics,
// names that break their rule, and control subjects too.
func Parse(s string) (Address, error) {
	a, err := address(strings.Split(s, "."))
	if err != nil {
		return Address{}, fault.New(fault.Invalid, "subject", fmt.Sprintf("%q", s), err)
	}
	return a, nil
}

func address(t []string) (Address, error) {
	root := ""
	if len(t) > 2 {
		root = t[0] + "." + t[1] + "."
	}
	switch {
	case root == nodeRoot && len(t) == 4:
		return topicOf(t[2], Topic(t[3]))
	case root == meshRoot && len(t) == 4:
		o, err := ParseOperation(t[3])
		if err != nil {
			return Address{}, err
		}
		c, err := classOf(t[2])
		return Address{Class: c, Operation: o}, err
	case root == seatRoot && len(t) == 6:
		return verbOf(t[2], t[3], t[4], t[5])
	}
	return Address{}, fmt.Errorf("no subject of stead")
}

func topicOf(node string, t Topic) (Address, error) {
	n, err := ParseNode(node)
	if err != nil {
		return Address{}, err
	}
	switch t {
	case Sync, Body, Report, Profile, Event, Tools, Claim, Changed, Plan:
		return Address{Node: n, Topic: t}, nil
	}
	return Address{}, fmt.Errorf("no such topic: %q", string(t))
}

func verbOf(class, node, seat, verb string) (Address, error) {
	c, err := classOf(class)
	if err != nil {
		return Address{}, err
	}
	n := All
	if node != string(All) {
		if n, err = ParseNode(node); err != nil {
			return Address{}, err
		}
	}
	s, err := ParseSeat(seat)
	if err != nil {
		return Address{}, err
	}
	v, err := ParseVerb(verb)
	if err != nil {
		return Address{}, err
	}
	return Address{Class: c, Node: n, Seat: s, Verb: v}, nil
}

func classOf(s string) (Class, error) {
	if c := Class(s); c == Read || c == Write {
		return c, nil
	}
	return "", fmt.Errorf("no such class: %q", s)
}

// String is the subject that a was read from.
func (a Address) String() string {
	switch {
	case a.Topic != "":
		return ForNode(a.Node, a.Topic)
	case a.Operation != "":
		return ForOperation(a.Class, a.Operation)
	}
	return ForVerb(a.Class, a.Node, a.Seat, a.Verb)
}
