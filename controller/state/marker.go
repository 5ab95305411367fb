package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/replace"
)

// marker is what one controller knows of mesh state outside of the store: how far
// it had come. It is what tells a store that was lost, exchanged or put back from
// one that is right.
type marker struct {
	Schema   int      `json:"schema"`
	Mesh     string   `json:"mesh"`
	Epoch    string   `json:"epoch"`
	Number   int      `json:"number"`
	Follows  []string `json:"follows,omitempty"`
	Revision uint64   `json:"revision"`
	// Sum is that of the commit at Revision; "" when the revision is known from a
	// node alone.
	Sum string `json:"sum,omitempty"`
	// Proof says which node proved Revision.
	Proof string `json:"proof,omitempty"`
	// Strays are epochs that nodes proved to hold and that Epoch does not follow.
	Strays []string `json:"strays,omitempty"`
}

const (
	markerSchema = 1
	// maxFollows is how many epochs are remembered, the newest ones.
	maxFollows = 32
)

// readMarker reads the marker at path; a zero one when there is none.
func readMarker(path, mesh string) (marker, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the controller's own
	if errors.Is(err, fs.ErrNotExist) {
		return marker{Schema: markerSchema, Mesh: mesh}, nil
	}
	var m marker
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	switch {
	case err != nil:
		return m, fault.New(fault.Failed, "read marker", path, err).
			WithHint("put it back from a backup; when there is none and the store is the right one, remove it")
	case m.Schema > markerSchema:
		return m, fault.New(fault.Unsupported, "read marker", path, fmt.Errorf("a newer version of stead wrote it: schema %d, not %d", m.Schema, markerSchema))
	case m.Mesh != mesh:
		return m, fault.New(fault.Refused, "read marker", path, fmt.Errorf("it is of mesh %s, not %s", m.Mesh, mesh))
	}
	return m, nil
}

// write puts m at path, in one step and durably.
func (m marker) write(path string) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = replace.File(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fault.New(fault.Failed, "write marker", path, err)
	}
	return nil
}

// doubt says why s cannot be what this controller saw last, or what came after
// it; "" when it can.
func (m marker) doubt(s *snapshot) string {
	at := s.state.Revision
	switch {
	case m.Epoch == "":
		return ""
	case s.empty:
		return fmt.Sprintf("the store is empty; revision %d of epoch %s was seen", m.Revision, m.Epoch)
	case s.state.Epoch == "": // unsound anyway
		return ""
	case s.state.Epoch != m.Epoch && slices.Contains(s.state.Follows, m.Epoch):
		return ""
	case s.state.Epoch != m.Epoch:
		return fmt.Sprintf("the store holds epoch %s, not %s, and does not go on from it", s.state.Epoch, m.Epoch)
	case s.broken != nil: // a revision says nothing then
		return ""
	case at < m.Revision && m.Proof != "":
		return fmt.Sprintf("the store was rolled back: %s holds revision %d of this epoch, the store is at %d", m.Proof, m.Revision, at)
	case at < m.Revision:
		return fmt.Sprintf("the store was rolled back: revision %d of this epoch was seen, the store is at %d", m.Revision, at)
	case at == m.Revision && m.Sum != "" && m.Sum != s.sum:
		return fmt.Sprintf("the store was exchanged: it holds another revision %d of this epoch", at)
	}
	return ""
}

// after is the marker of a controller that has seen s, a sound state that m does
// not doubt.
func (m marker) after(s *snapshot) marker {
	m.Revision, m.Sum, m.Proof = s.state.Revision, s.sum, ""
	if m.Epoch != s.state.Epoch {
		m.Strays = nil
	}
	m.Epoch, m.Number, m.Follows = s.state.Epoch, s.number, s.state.Follows
	return m
}

// lineage is what a new epoch follows, when this is what is known of those before.
func (m marker) lineage(s *assign.State) []string {
	var all []string
	for _, id := range slices.Concat([]string{m.Epoch, s.Epoch}, m.Strays, m.Follows, s.Follows) {
		if id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all[:min(len(all), maxFollows)]
}

func (m marker) equal(o marker) bool {
	return m.Mesh == o.Mesh && m.Epoch == o.Epoch && m.Number == o.Number && m.Revision == o.Revision && m.Sum == o.Sum &&
		m.Proof == o.Proof && slices.Equal(m.Follows, o.Follows) && slices.Equal(m.Strays, o.Strays)
}
