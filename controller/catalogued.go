package controller

import (
	"fmt"

	"stead/controller/assign"
	"stead/mesh/wire"
)

// brought is a seat or a module, as it is told of.
type brought struct {
	kind, name string
	assign.Record
}

// catalogued are all seats and modules, those that are gone among them.
func catalogued(st *assign.State) []brought {
	var all []brought
	for _, name := range sortedKeys(st.Seats) {
		all = append(all, brought{"seat", name, st.Seats[name].Record})
	}
	for _, name := range sortedKeys(st.Modules) {
		all = append(all, brought{"module", name, st.Modules[name].Record})
	}
	return all
}

// event tells that it came, or went.
func (b brought) event(epoch string) wire.Event {
	text := fmt.Sprintf("%s %s comes with stead", b.kind, b.name)
	if b.Gone {
		text = fmt.Sprintf("%s %s is gone", b.kind, b.name)
	}
	return wire.Event{ID: auditID(epoch, b.Revision), At: b.At, Source: source, Who: b.By, Kind: b.kind, Revision: b.Revision, Text: text}
}
