package subject

import (
	"fmt"
	"regexp"
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

var (
	label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	word  = regexp.MustCompile(`^[a-z]([a-z0-9_-]{0,61}[a-z0-9])?$`)
)

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
	if !label.MatchString(s) {
		return fault.New(fault.Invalid, what, fmt.Sprintf("%q", s),
			fmt.Errorf("must be a DNS label: 1 to 63 of a-z, 0-9 and \"-\", beginning and ending with a letter or digit"))
	}
	return nil
}

func parse[T ~string](what, s string) (T, error) {
	if !word.MatchString(s) {
		return "", fault.New(fault.Invalid, what, fmt.Sprintf("%q", s),
			fmt.Errorf("must be 1 to 63 of a-z, 0-9, \"-\" and \"_\", beginning with a letter"))
	}
	return T(s), nil
}
