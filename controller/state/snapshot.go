package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/seal"
)

// snapshot is the bucket at one sequence, as everybody may read it.
type snapshot struct {
	state    *assign.State
	sequence uint64 // of the bucket; above state.Revision when something was planted
	// stands are all keys that open, for the sum of the commit that comes next.
	stands map[string]seal.Stand
	sum    string // of the last commit
	number int    // of the epoch
	empty  bool   // no value opens
	broken error  // why the contents are not what controllers wrote
	// strangers are keys that do not open and were never part of the state. They
	// change nothing.
	strangers []string
}

// take makes a snapshot of items. Vanished are keys that were part of the state
// before and are no longer.
func take(mesh string, items map[string]*item, sequence uint64, vanished []string) *snapshot {
	s := &snapshot{sequence: sequence, stands: make(map[string]seal.Stand, len(items)), empty: true, state: &assign.State{
		Mesh: mesh, Declarations: map[string]*assign.Declaration{}, Nodes: map[string]*assign.Node{},
		UnreadableDeclarations: map[string]string{}, UnreadableNodes: map[string]string{},
		Seats: map[string]*assign.Seat{}, Modules: map[string]*assign.Module{},
		UnreadableSeats: map[string]string{}, UnreadableModules: map[string]string{},
	}}
	top := ""
	for key, i := range items {
		if i.closed != "" {
			s.strangers = append(s.strangers, key)
			continue
		}
		s.stands[key] = seal.Stand{Revision: i.revision, Seal: i.seal}
		if i.revision > s.state.Revision {
			s.state.Revision, top = i.revision, key
		}
		s.add(key, i)
	}
	slices.Sort(s.strangers)
	if top == "" {
		return s
	}
	s.empty, s.sum = false, items[top].place.Sum
	s.broken = s.judge(top, vanished)
	if s.broken != nil {
		for _, key := range s.strangers {
			s.unreadable(key, items[key].closed)
		}
	}
	return s
}

// add puts what an item says into the state, in place of what the key held.
func (s *snapshot) add(key string, i *item) {
	if i.unread != "" {
		s.unreadable(key, i.unread)
		return
	}
	s.readable(key)
	switch {
	case i.declaration != nil:
		s.state.Declarations[i.declaration.Name] = i.declaration
	case i.node != nil:
		s.state.Nodes[i.node.Name] = i.node
	case i.seat != nil:
		s.state.Seats[string(i.seat.Name)] = i.seat
	case i.module != nil:
		s.state.Modules[i.module.Name] = i.module
	case i.epoch != nil:
		s.state.Epoch, s.state.Follows, s.number = i.epoch.ID, i.epoch.Follows, i.epoch.Number
	}
}

// unread is where it stands why keys of a kind cannot be read; nil for other
// kinds.
func (s *snapshot) unread(kind string) map[string]string {
	switch kind {
	case declaration:
		return s.state.UnreadableDeclarations
	case node:
		return s.state.UnreadableNodes
	case seat:
		return s.state.UnreadableSeats
	case module:
		return s.state.UnreadableModules
	}
	return nil
}

func (s *snapshot) unreadable(key, why string) {
	kind, name := nameOf(key)
	if all := s.unread(kind); all != nil {
		all[name] = why
	}
}

func (s *snapshot) readable(key string) {
	kind, name := nameOf(key)
	delete(s.unread(kind), name)
}

// doubted is s as it is to be seen by whoever knows m.
func (s *snapshot) doubted(m marker) *snapshot {
	err := s.broken
	if why := m.doubt(s); err == nil && why != "" {
		err = unsound(why)
	}
	state, again := *s.state, *s
	state.Unsound, again.state = err, &state
	return &again
}

// judge says why the state cannot be what controllers wrote; top is the key that
// was written last.
func (s *snapshot) judge(top string, vanished []string) error {
	all := maps.Clone(s.stands)
	all[top] = seal.Stand{Revision: all[top].Revision}
	switch {
	case s.sum != seal.Sum(all):
		why := fmt.Sprintf("what stands in the store is not what the commit of revision %d left there", s.state.Revision)
		if len(vanished) > 0 {
			why += ": gone is " + few(vanished)
		} else if len(s.strangers) > 0 {
			why += ": not written by a controller is " + few(s.strangers)
		}
		return unsound(why)
	case s.state.Epoch == "":
		return unsound("its epoch cannot be read")
	}
	return nil
}

// unsound is the error of a state that is not to be told to anybody.
func unsound(why string) *fault.Error {
	return fault.New(fault.Failed, "read mesh state", "", errors.New(why)).WithHint(cure)
}

const cure = "mount the right store or put back a newer backup; to go on with what is there: stead controller run --begin-epoch"

// few names the first of many keys.
func few(keys []string) string {
	const most = 3
	if len(keys) <= most {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
}
