package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/wire"
)

// Keys of the state bucket: the kind, a dot, and the name, in which a dot stands
// as "/" and a colon as "=".
const (
	epochKey    = "mesh.epoch"
	declaration = "declaration"
	node        = "node"
	seat        = "seat"
	module      = "module"
)

// MaxCanonical is how large the canonical form of one declaration may be, in
// bytes: it travels in one message.
const MaxCanonical = wire.MaxBody

// What stands in a key for what it cannot hold, and the other way round.
var (
	keyed = strings.NewReplacer(".", "/", ":", "=")
	named = strings.NewReplacer("/", ".", "=", ":")
)

func keyOf(kind, name string) string { return kind + "." + keyed.Replace(name) }

// nameOf is the kind and the name that a key is of.
func nameOf(key string) (kind, name string) {
	kind, name, _ = strings.Cut(key, ".")
	return kind, named.Replace(name)
}

// epoch is the body of mesh.epoch. Later versions only add fields.
type epoch struct {
	ID      string    `json:"id"`
	Number  int       `json:"number"`            // from 1
	Follows []string  `json:"follows,omitempty"` // epochs that it goes on from, the newest first
	Created time.Time `json:"created"`
	By      string    `json:"by"`
}

// declared is the first line of the body of a declaration; the canonical form
// stands below it.
type declared struct {
	Name       string         `json:"name"`
	UID        string         `json:"uid"`
	Generation uint64         `json:"generation"`
	Digest     string         `json:"digest"`
	Address    assign.Address `json:"address"`
	Former     assign.Address `json:"former,omitzero"`
	Withdrawn  bool           `json:"withdrawn,omitempty"`
	By         string         `json:"by"`
	At         time.Time      `json:"at"`
}

// known is the body of a node.
type known struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Account string            `json:"account,omitempty"`
	Linger  string            `json:"linger,omitempty"`
	Removed bool              `json:"removed,omitempty"`
	By      string            `json:"by"`
	At      time.Time         `json:"at"`
	// Capabilities are what the node reports.
	Capabilities []string `json:"capabilities,omitempty"`
	// Pauses are units that are left alone for a while.
	Pauses []wire.Pause `json:"pauses,omitempty"`
}

// lost is the body of a tombstone that a new epoch puts in place of what did not
// open. Nobody withdrew what stood there, so nothing is known of the name.
type lost struct {
	Lost string `json:"lost"` // why it did not open
}

// body is what is sealed for a change, the key, and whether it is a tombstone.
func (c Change) body() (key string, text []byte, deleted bool, err error) {
	given := 0
	for _, is := range []bool{c.Declaration != nil, c.Node != nil, c.Seat != nil, c.Module != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return "", nil, false, fault.New(fault.Internal, "commit", "", errors.New("a change is a declaration, a node, a seat or a module"))
	case c.Declaration != nil:
		return bodyOfDeclaration(c.Declaration)
	case c.Node != nil:
		n := c.Node
		text, err = json.Marshal(known{n.Name, n.Labels, n.Account, n.Linger, n.Removed, n.By, n.At, n.Capabilities, n.Pauses})
		return keyOf(node, n.Name), text, n.Removed, err
	case c.Seat != nil:
		return bodyOfSeat(c.Seat)
	}
	return bodyOfModule(c.Module)
}

func bodyOfDeclaration(d *assign.Declaration) (key string, text []byte, deleted bool, err error) {
	why := ""
	switch {
	case d.Withdrawn && len(d.Canonical) > 0:
		why = "it is withdrawn and declares something"
	case !d.Withdrawn && digestOf(d.Canonical) != d.Digest:
		why = "its digest is another"
	case d.UID == "" || d.Generation == 0 && !(d.Withdrawn && d.UID == wire.AnyUID): // a name that was never declared here has no generation
		why = "it has no uid or no generation"
	}
	if why != "" {
		return "", nil, false, fault.New(fault.Internal, "commit", d.Name, errors.New(why))
	}
	if len(d.Canonical) > MaxCanonical {
		return "", nil, false, fault.New(fault.Invalid, "declare", d.Name, fmt.Errorf("%d bytes in canonical form; at most %d", len(d.Canonical), MaxCanonical))
	}
	if err := parses(d); err != nil {
		return "", nil, false, err
	}
	head, err := json.Marshal(declared{d.Name, d.UID, d.Generation, d.Digest, d.Address, d.Former, d.Withdrawn, d.By, d.At})
	if err != nil {
		return "", nil, false, fault.New(fault.Internal, "commit", d.Name, err)
	}
	return keyOf(declaration, d.Name), bytes.Join([][]byte{head, d.Canonical}, []byte("\n")), d.Withdrawn, nil
}

// parses returns an error when what d declares could not be read back.
func parses(d *assign.Declaration) error {
	if d.Withdrawn || d.Service != nil && d.Service.Name == d.Name && bytes.Equal(d.Service.Canonical(), d.Canonical) {
		return nil
	}
	service, err := shape.FromCanonical(d.Canonical)
	if err == nil && service.Name != d.Name {
		err = fmt.Errorf("it declares %q", service.Name)
	}
	if err != nil {
		return fault.New(fault.Internal, "commit", d.Name, err)
	}
	return nil
}

// readDeclaration reads the body of the declaration called name. The result holds
// on to a part of body.
func readDeclaration(name string, body []byte) (*assign.Declaration, error) {
	text, canonical, _ := bytes.Cut(body, []byte("\n"))
	var h declared
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	d := &assign.Declaration{Name: h.Name, UID: h.UID, Generation: h.Generation, Digest: h.Digest, Address: h.Address, Former: h.Former,
		Withdrawn: h.Withdrawn, By: h.By, At: h.At}
	switch {
	case h.Name != name:
		return nil, fmt.Errorf("it is called %q", h.Name)
	case h.Withdrawn:
		return d, nil
	case digestOf(canonical) != h.Digest:
		return nil, errors.New("its digest is another")
	}
	service, err := shape.FromCanonical(canonical)
	if err != nil {
		return nil, err
	}
	if service.Name != name {
		return nil, fmt.Errorf("it declares %q", service.Name)
	}
	service.Nodes, service.Labels, service.All = h.Address.Nodes, h.Address.Labels, h.Address.All
	d.Canonical, d.Service = canonical, service
	return d, nil
}

func readNode(name string, body []byte) (*assign.Node, error) {
	var k known
	if err := json.Unmarshal(body, &k); err != nil {
		return nil, err
	}
	if k.Name != name {
		return nil, fmt.Errorf("it is called %q", k.Name)
	}
	return &assign.Node{Name: k.Name, Labels: k.Labels, Account: k.Account, Linger: k.Linger, Capabilities: k.Capabilities, Pauses: k.Pauses, Removed: k.Removed, By: k.By, At: k.At}, nil
}

func digestOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
