package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/modules"
	"stead/seats"
)

// seeded is the body of a seat or of a module; neither is set in the tombstone of
// one that is gone.
type seeded struct {
	Name    string            `json:"name"`
	Edition int               `json:"edition"`
	Gone    bool              `json:"gone,omitempty"`
	By      string            `json:"by"`
	At      time.Time         `json:"at"`
	Seat    *seats.Seat       `json:"seat,omitempty"`
	Module  *modules.Manifest `json:"module,omitempty"`
}

func bodyOfSeat(s *assign.Seat) (key string, text []byte, deleted bool, err error) {
	b := of(string(s.Name), s.Record)
	if !s.Gone {
		b.Seat = &s.Seat
	}
	return b.body(seat)
}

func bodyOfModule(m *assign.Module) (key string, text []byte, deleted bool, err error) {
	b := of(m.Name, m.Record)
	if !m.Gone {
		b.Module = &m.Manifest
	}
	return b.body(module)
}

func of(name string, r assign.Record) seeded {
	return seeded{Name: name, Edition: r.Edition, Gone: r.Gone, By: r.By, At: r.At}
}

func (b seeded) body(kind string) (key string, text []byte, deleted bool, err error) {
	if b.Name == "" {
		return "", nil, false, fault.New(fault.Internal, "commit", kind, errors.New("it has no name"))
	}
	if text, err = json.Marshal(b); err != nil { // a schema that is no JSON
		return "", nil, false, fault.New(fault.Internal, "commit", b.Name, err)
	}
	if len(text) > MaxCanonical {
		return "", nil, false, fault.New(fault.Invalid, "commit", b.Name, fmt.Errorf("%d bytes; at most %d", len(text), MaxCanonical))
	}
	return keyOf(kind, b.Name), text, b.Gone, nil
}

func readSeat(name string, body []byte) (*assign.Seat, error) {
	b, err := readSeeded(name, body)
	switch {
	case err != nil:
		return nil, err
	case b.Gone:
		return &assign.Seat{Seat: seats.Seat{Name: subject.Seat(name)}, Record: b.record()}, nil
	case b.Seat == nil || string(b.Seat.Name) != name:
		return nil, errors.New("it is no seat of that name")
	}
	return &assign.Seat{Seat: *b.Seat, Record: b.record()}, nil
}

func readModule(name string, body []byte) (*assign.Module, error) {
	b, err := readSeeded(name, body)
	switch {
	case err != nil:
		return nil, err
	case b.Gone:
		return &assign.Module{Manifest: modules.Manifest{Name: name}, Record: b.record()}, nil
	case b.Module == nil || b.Module.Name != name:
		return nil, errors.New("it is no module of that name")
	}
	return &assign.Module{Manifest: *b.Module, Record: b.record()}, nil
}

func readSeeded(name string, body []byte) (seeded, error) {
	var b seeded
	if err := json.Unmarshal(body, &b); err != nil {
		return b, err
	}
	if b.Name != name {
		return b, fmt.Errorf("it is called %q", b.Name)
	}
	return b, nil
}

func (b seeded) record() assign.Record {
	return assign.Record{Gone: b.Gone, Edition: b.Edition, By: b.By, At: b.At}
}
