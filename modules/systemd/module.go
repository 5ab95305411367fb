package systemd

import (
	"context"
	"errors"
	"time"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/wire"
	"stead/modules"
	"stead/runtime/escalate"
	"stead/runtime/tool"
	"stead/seats"
)

// lister lists units: host/systemd.Reader.
type lister interface {
	Units(ctx context.Context, f unit.Filter) ([]unit.Listed, error)
	Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error)
	Files(ctx context.Context, f unit.Filter) ([]unit.ListedFile, error)
	Enablement(ctx context.Context, names []unit.Name) ([]string, error)
	Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error)
}

// reader says how units stand: host/systemd.Reader.
type reader interface {
	lister
	Details(ctx context.Context, name unit.Name) (unit.Details, error)
}

// userReader says how the units of the node's account stand: runtime/escalate.UserReader.
type userReader interface {
	reader
	Account(ctx context.Context) (escalate.Account, error)
}

// Journal reads log entries: host/journal.Reader.
type Journal interface {
	Read(ctx context.Context, a seats.JournalArguments) (seats.JournalReply, error)
	Stream(ctx context.Context, a seats.JournalArguments, send func(seats.JournalReply) error) error
	Tail(ctx context.Context, name unit.Name, count int) ([]string, error)
}

// acts does what needs rights: runtime/escalate.Client.
type acts interface {
	Do(ctx context.Context, r escalate.Request) (escalate.Outcome, error)
	Known(ctx context.Context) ([]escalate.Begun, error)
}

// Options of a Module. All but Node and UserFolders are required.
type Options struct {
	Node        string // for commands in hints
	Reader      reader
	User        userReader
	Journal     Journal
	UserJournal func(uid uint32) Journal // of the account with that uid
	Acts        acts
	// Declared returns what is declared for this node now. It is called by every
	// verb, must return at once, and nobody changes what it returned.
	Declared func() []wire.DeclaredUnit
	// UserFolders are where unit files of the user scope lie that anybody can see;
	// nil are systemd's.
	UserFolders []string
}

// Module serves the verbs.
type Module struct {
	o         Options
	files     fileNames
	userFiles fileNames
}

// New checks the options and starts nothing.
func New(o Options) (*Module, error) {
	if o.Reader == nil || o.User == nil || o.Journal == nil || o.UserJournal == nil || o.Acts == nil || o.Declared == nil {
		return nil, fault.New(fault.Internal, "new module", modules.Systemd, errors.New("readers, journals, acts and declared are required"))
	}
	if o.UserFolders == nil {
		o.UserFolders = userFolders()
	}
	return &Module{o: o}, nil
}

// Bounds of the verbs.
const (
	listFor    = 30 * time.Second // units: unit files take a second and more
	readFor    = 30 * time.Second // journal: a pattern may be looked for in all of it
	linkFor    = 60 * time.Second // enable and disable, without the job
	jobFor     = 90 * time.Second // the wait for a job, when the caller does not say
	mostJobFor = 10 * time.Minute // and when it does
	around     = 5 * time.Second  // what is looked at before and after an act
)

// Tools are the module's, as its manifest in modules.Catalogue has them.
func (m *Module) Tools() []tool.Tool {
	var all []tool.Tool
	for _, manifest := range modules.Catalogue() {
		if manifest.Name != modules.Systemd {
			continue
		}
		for _, is := range manifest.Tools {
			all = append(all, m.tool(is))
		}
	}
	return all
}

func (m *Module) tool(is modules.Tool) tool.Tool {
	t := tool.Tool{Module: modules.Systemd, Seat: seats.NodeServiceManager, Is: is}
	switch is.Name {
	case seats.Units:
		t.Handle, t.Most = tool.Handle(m.Units), listFor
	case seats.Status:
		t.Handle, t.Together = tool.Handle(m.Status), 32
	case seats.Journal:
		// Each of them is a journalctl.
		t.Handle, t.Stream, t.Most, t.Together = tool.Handle(m.Read), tool.Follow(m.Follow), readFor, 8
	case seats.Start:
		t.Handle, t.Most, t.Together = tool.Handle(m.Start), mostJobFor+around, 128
	case seats.Stop:
		t.Handle, t.Most, t.Together = tool.Handle(m.Stop), mostJobFor+around, 128
	case seats.Restart:
		t.Handle, t.Most, t.Together = tool.Handle(m.Restart), mostJobFor+around, 128
	case seats.Enable:
		t.Handle, t.Most = tool.Handle(m.Enable), linkFor+jobFor+around
	case seats.Disable:
		t.Handle, t.Most = tool.Handle(m.Disable), linkFor+jobFor+around
	}
	return t
}
