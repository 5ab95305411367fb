package subject

import (
	"fmt"
	"strings"

	"stead/host/fault"
)

// Node is the name of a node: a DNS label. All stands for every node.
type Node string

// All in place of a node asks every node. It is no name that a node can have.
const All Node = "_all"

// Operation is what people ask of controllers: "apply", "get", "watch".
type Operation string

// Seat is the name of a seat: "node-service-manager".
type Seat string

// Verb is a callable of a seat: "status", "restart".
type Verb string

// Class tells reading from acting, in the subject itself, so that the server
// can hold back who may only read.
type Class string

// The two classes.
const (
	Read  Class = "r"
	Write Class = "w"
)

// controlPrefix begins the last token of a control subject, so no verb begins
// with it.
const controlPrefix = "ctl-"

// mostName is how long a name may be.
const mostName = 63

// isLabel and isWord are no patterns, which every command of stead would have to
// compile before it does anything.
func isLabel(s string) bool {
	return s != "" && len(s) <= mostName && s[0] != '-' && s[len(s)-1] != '-' && made(s, "-")
}

func isWord(s string) bool {
	return s != "" && len(s) <= mostName && s[0] >= 'a' && s[0] <= 'z' && s[len(s)-1] != '-' && s[len(s)-1] != '_' && made(s, "-_")
}

// made reports whether s has nothing but a-z, 0-9 and others.
func made(s, others string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

// ParseNode returns the node called s, and an error of class invalid when s is
// no DNS label: 1 to 63 of a-z, 0-9 and "-", with no "-" at either end.
func ParseNode(s string) (Node, error) {
	if err := CheckLabel("node", s); err != nil {
		return "", err
	}
	return Node(s), nil
}

// ParseOperation returns the operation called s, and an error of class invalid
// when s is no word.
func ParseOperation(s string) (Operation, error) { return parse[Operation]("operation", s) }

// ParseSeat returns the seat called s, and an error of class invalid when s is
// no word.
func ParseSeat(s string) (Seat, error) { return parse[Seat]("seat", s) }

// ParseVerb returns the verb called s, and an error of class invalid when s is
// no word or begins like the token of a control subject.
func ParseVerb(s string) (Verb, error) {
	if strings.HasPrefix(s, controlPrefix) {
		return "", fault.New(fault.Invalid, "verb", fmt.Sprintf("%q", s), fmt.Errorf("must not begin with %q", controlPrefix))
	}
	return parse[Verb]("verb", s)
}

// CheckLabel returns an error of class invalid when s is no DNS label. The
// names of people and controllers follow the rule of nodes. What names the kind
// of thing in the message.
func CheckLabel(what, s string) error {
	if !isLabel(s) {
		return fault.New(fault.Invalid, what, fmt.Sprintf("%q", s),
			fmt.Errorf("must be a DNS label: 1 to 63 of a-z, 0-9 and \"-\", beginning and ending with a letter or digit"))
	}
	return nil
}

func parse[T ~string](what, s string) (T, error) {
	if !isWord(s) {
		return "", fault.New(fault.Invalid, what, fmt.Sprintf("%q", s),
			fmt.Errorf("must be 1 to 63 of a-z, 0-9, \"-\" and \"_\", beginning with a letter"))
	}
	return T(s), nil
}
