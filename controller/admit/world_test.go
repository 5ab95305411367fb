package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/mesh/wire"
)

// world is mesh state that admitted requests change, as controllers do.
type world struct {
	t        *testing.T
	state    *assign.State
	profiles map[string]wire.Profile
	kept     map[string][]string
	now      time.Time
	uids     int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, profiles: map[string]wire.Profile{}, kept: map[string][]string{}, now: time.Date(2026, 11, 29, 9, 30, 0, 0, time.UTC),
		state: &assign.State{Mesh: "m", Epoch: "e1", Revision: 10, Declarations: map[string]*assign.Declaration{}, Nodes: map[string]*assign.Node{},
			UnreadableDeclarations: map[string]string{}, UnreadableNodes: map[string]string{},
			Seats: map[string]*assign.Seat{}, Modules: map[string]*assign.Module{}, UnreadableSeats: map[string]string{}, UnreadableModules: map[string]string{}}}
}

// node makes a node known, with labels such as "role=web".
func (w *world) node(name string, labels ...string) *world {
	n := assign.NewNode(name, "operator bob", w.now)
	n.Labels = map[string]string{}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		n.Labels[k] = v
	}
	w.state.Nodes[name] = n
	return w
}

func (w *world) basis() Basis {
	return Basis{State: w.state, Profiles: w.profiles, Kept: w.kept, Who: "operator alice", Now: w.now.Add(26 * time.Hour), NewUID: func() string {
		w.uids++
		return fmt.Sprintf("uid%d", w.uids)
	}}
}

// commit makes what was decided mesh state.
func (w *world) commit(d Decision) {
	w.t.Helper()
	next := *w.state
	next.Declarations, next.Nodes = maps.Clone(next.Declarations), maps.Clone(next.Nodes)
	next.UnreadableDeclarations, next.UnreadableNodes = maps.Clone(next.UnreadableDeclarations), maps.Clone(next.UnreadableNodes)
	for _, one := range d.Writes {
		next.Revision++
		written := *one
		written.Revision = next.Revision
		next.Declarations[one.Name] = &written
		delete(next.UnreadableDeclarations, one.Name)
	}
	if d.Node != nil {
		next.Revision++
		written := *d.Node
		written.Revision = next.Revision
		next.Nodes[written.Name] = &written
		delete(next.UnreadableNodes, written.Name)
	}
	next.Seats, next.Modules = maps.Clone(next.Seats), maps.Clone(next.Modules)
	next.UnreadableSeats, next.UnreadableModules = maps.Clone(next.UnreadableSeats), maps.Clone(next.UnreadableModules)
	for _, one := range d.Seats {
		next.Revision++
		written := *one
		written.Revision = next.Revision
		next.Seats[string(one.Name)] = &written
		delete(next.UnreadableSeats, string(one.Name))
	}
	for _, one := range d.Modules {
		next.Revision++
		written := *one
		written.Revision = next.Revision
		next.Modules[one.Name] = &written
		delete(next.UnreadableModules, one.Name)
	}
	w.state = &next
}

// seen are the marks of everything as it stands.
func (w *world) seen() map[string]wire.Mark {
	all := map[string]wire.Mark{}
	for name, d := range w.state.Declarations {
		all[name] = assign.Mark(d)
	}
	return all
}

// apply applies what is written, as somebody who saw everything.
func (w *world) apply(files ...string) Decision {
	w.t.Helper()
	d, err := Apply(w.basis(), w.request(files...))
	require.NoError(w.t, err)
	w.commit(d)
	return d
}

// landed is apply of what must land.
func (w *world) landed(files ...string) Decision {
	w.t.Helper()
	d := w.apply(files...)
	require.Empty(w.t, d.Reply.Problems)
	require.Empty(w.t, d.Reply.Conflicts)
	require.Empty(w.t, d.Reply.Sure)
	return d
}

func (w *world) request(files ...string) wire.ApplyRequest {
	r := wire.ApplyRequest{Wire: wire.Version, Seen: w.seen()}
	for i, text := range files {
		r.Files = append(r.Files, wire.File{Name: fmt.Sprintf("%c.yaml", 'a'+i), Text: text})
	}
	return r
}

func (w *world) withdraw(r wire.WithdrawRequest) Decision {
	w.t.Helper()
	r.Wire = wire.Version
	d, err := Withdraw(w.basis(), r)
	require.NoError(w.t, err)
	w.commit(d)
	return d
}

func (w *world) set(r wire.SettingsRequest) Decision {
	w.t.Helper()
	r.Wire = wire.Version
	d, err := Settings(w.basis(), r)
	require.NoError(w.t, err)
	w.commit(d)
	return d
}

// service is a document that declares a service that runs.
func service(name string, fields ...string) string {
	return "shape: service\nname: " + name + "\nensure: running\n" + strings.Join(fields, "\n") + "\n---\n"
}

// written names what a decision writes.
func written(d Decision) []string {
	names := []string{}
	for _, one := range d.Writes {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}
