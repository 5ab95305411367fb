package admit

import (
	"stead/host/fault"
	"stead/mesh/wire"
)

// Apply judges a request to declare. The error is a *fault.Error: failed when the
// state is not sound, unsupported for messages of another version.
func Apply(b Basis, r wire.ApplyRequest) (Decision, error) {
	return Decision{}, fault.New(fault.Unsupported, "apply", "", nil)
}

// Withdraw judges a request to withdraw. Errors are those of Apply.
func Withdraw(b Basis, r wire.WithdrawRequest) (Decision, error) {
	return Decision{}, fault.New(fault.Unsupported, "withdraw", "", nil)
}

// Settings judges a request to change what people set of a node. Errors are
// those of Apply.
func Settings(b Basis, r wire.SettingsRequest) (Decision, error) {
	return Decision{}, fault.New(fault.Unsupported, "node", r.Node, nil)
}

// Plans returns what is to be asked of each node for its plan of the change: the
// declarations that it would get or get anew, and the names that it would lose.
// It holds the nodes of only, or all that are concerned when only is empty. Each
// list of requests is to be asked in its order; each request fits into a message.
func (d Decision) Plans(only []string) map[string][]wire.PlanRequest { return nil }
