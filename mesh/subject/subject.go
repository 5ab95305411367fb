package subject

import (
	"fmt"
	"strings"

	"stead/host/fault"
)

const (
	nodeRoot = "node.v1."
	meshRoot = "mesh.v1."
	seatRoot = "seat.v1."
)

// Topic is the last token of a subject below a node: what is asked or told.
type Topic string

// The topics. Event is the host's and the runtime's; Changed and Plan go from
// controllers to the node, all others from the node to any controller.
const (
	Sync    Topic = "sync"
	Body    Topic = "body"
	Report  Topic = "report"
	Profile Topic = "profile"
	Event   Topic = "event"
	Tools   Topic = "tools"
	Claim   Topic = "claim"
	Changed Topic = "changed"
	Plan    Topic = "plan"
)

// HostTopics are what a host sends to controllers.
func HostTopics() []Topic { return []Topic{Sync, Body, Report, Profile, Event} }

// RuntimeTopics are what a runtime sends to controllers.
func RuntimeTopics() []Topic { return []Topic{Tools, Claim, Event} }

// NodeTopics are what controllers send to a node.
func NodeTopics() []Topic { return []Topic{Changed, Plan} }

// ForNode is the subject of a topic of one node.
func ForNode(n Node, t Topic) string { return nodeRoot + string(n) + "." + string(t) }

// ForOperation is the subject on which people ask controllers for o.
func ForOperation(c Class, o Operation) string { return meshRoot + string(c) + "." + string(o) }

// ForVerb is the subject of a verb on node n, or on all nodes when n is All.
func ForVerb(c Class, n Node, s Seat, v Verb) string {
	return seatRoot + string(c) + "." + string(n) + "." + string(s) + "." + string(v)
}

// ForControl is the subject on which the caller of a following verb grants
// credit and cancels. It is of class read, whatever it controls: it reaches
// nothing but a call of the caller's own. Token must be unguessable, at least
// 16 of letters and digits; an error of class invalid otherwise.
func ForControl(n Node, s Seat, token string) (string, error) {
	if !isToken(token) {
		return "", fault.New(fault.Invalid, "control subject", "", fmt.Errorf("the token must be 16 to 64 letters and digits"))
	}
	return seatRoot + string(Read) + "." + string(n) + "." + string(s) + "." + controlPrefix + token, nil
}

// IsControl reports whether s is a control subject of a seat on node n. A caller
// that is told a control subject asks this before it publishes there: a node
// that lies could name a verb that acts on another node.
func IsControl(s string, n Node, seat Seat) bool {
	token, ok := strings.CutPrefix(s, seatRoot+string(Read)+"."+string(n)+"."+string(seat)+"."+controlPrefix)
	return ok && isToken(token)
}

func isToken(s string) bool {
	if len(s) < 16 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
