package controller

import (
	"fmt"

	"stead/mesh/identity"
	"stead/mesh/wire"
)

// maxAnswer is how many bytes of JSON one answer may have: a message less its
// headers.
const maxAnswer = identity.MaxPayload - 16<<10

// fit cuts an answer to what one message carries. Plans go first, then warnings,
// then the later ones of what there is most of; what is left out is counted.
func fit(r wire.ChangeReply) wire.ChangeReply {
	for size(r) > maxAnswer {
		switch {
		case len(r.Plans) > 0:
			keep := len(r.Plans) / 2
			r.More += len(r.Plans) - keep
			r.Plans = r.Plans[:keep]
		case len(r.Warnings) > 1:
			r.Warnings = shorter(r.Warnings, "warnings")
		case len(r.Problems) > 1:
			r.Problems = r.Problems[:len(r.Problems)/2].Limit()
		case len(r.Conflicts) > 1:
			r.Conflicts = r.Conflicts[:len(r.Conflicts)/2]
		case len(r.Unplanned) > 0:
			r.Unplanned = nil
		default:
			for i := range r.Changes {
				r.Changes[i].Fields = nil
			}
			r.Changes = r.Changes[:len(r.Changes)/2]
		}
	}
	return r
}

// shorter halves a list and says so in its last line.
func shorter(all []string, what string) []string {
	keep := len(all) / 2
	cut := append([]string{}, all[:keep]...)
	return append(cut[:max(0, keep-1)], fmt.Sprintf("more %s than fit into one answer", what))
}

// size is how many bytes of JSON v has; too many when it has none.
func size(v any) int {
	text, err := encode(v)
	if err != nil {
		return maxAnswer + 1
	}
	return len(text)
}
