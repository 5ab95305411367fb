package state

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/seal"
)

// item is one key of the bucket, as it was read.
type item struct {
	revision uint64
	place    seal.Place
	seal     string
	closed   string // why it does not open; what else is here is empty then
	unread   string // it opens, and why it cannot be understood
	lost     bool   // it is the tombstone of what did not open

	declaration *assign.Declaration
	node        *assign.Node
	seat        *assign.Seat
	module      *assign.Module
	epoch       *epoch
}

// read opens a stored value and reads what it says.
func read(mesh string, key ed25519.PublicKey, e bucket.Entry[[]byte]) *item {
	i := &item{revision: e.Revision}
	found := seal.Place{Mesh: mesh, Key: e.Key, Revision: e.Revision, Deleted: e.Deleted}
	place, body, err := seal.OpenValue(key, found, e.Value)
	if err != nil {
		i.closed = causeOf(err)
		return i
	}
	i.place, i.seal = place, seal.Seal(e.Value)
	i.say(e, body)
	return i
}

// say reads what the body of an opened value says.
func (i *item) say(e bucket.Entry[[]byte], body []byte) {
	var l lost
	if e.Deleted && json.Unmarshal(body, &l) == nil && l.Lost != "" {
		i.lost = true
		return
	}
	var err error
	switch kind, name := nameOf(e.Key); {
	case e.Key == epochKey:
		i.epoch = &epoch{}
		if err = json.Unmarshal(body, i.epoch); err != nil || i.epoch.ID == "" {
			i.epoch, err = nil, errors.Join(errors.New("it is no epoch"), err)
		}
	case kind == declaration:
		if i.declaration, err = readDeclaration(name, body); err == nil {
			i.declaration.Revision = e.Revision
		}
	case kind == node:
		if i.node, err = readNode(name, body); err == nil {
			i.node.Revision = e.Revision
		}
	case kind == seat:
		if i.seat, err = readSeat(name, body); err == nil {
			i.seat.Revision = e.Revision
		}
	case kind == module:
		if i.module, err = readModule(name, body); err == nil {
			i.module.Revision = e.Revision
		}
	}
	if err != nil {
		i.unread = err.Error()
	}
}

// causeOf is what a fault says without operation and object.
func causeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Cause != nil {
		return f.Cause.Error()
	}
	return err.Error()
}
