package wire

import (
	"time"

	"stead/modules"
	"stead/seats"
)

// Seat is a seat as the mesh has it.
type Seat struct {
	seats.Seat
	Nodes    int       `json:"nodes"` // where a module is assigned that claims it
	Held     int       `json:"held"`  // on how many of them
	Revision uint64    `json:"revision"`
	By       string    `json:"by"` // who made it what it is: "controller c1"
	At       time.Time `json:"at"`
}

// Module is a module as the mesh has it.
type Module struct {
	modules.Manifest
	On       int       `json:"on"` // how many nodes it is assigned to
	Revision uint64    `json:"revision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

// Holder is who holds a seat on a node. One that nobody holds, although a module
// is assigned that claims it, has no Module.
type Holder struct {
	seats.Holder
	Since time.Time `json:"since,omitzero"` // when the claim was accepted
}
