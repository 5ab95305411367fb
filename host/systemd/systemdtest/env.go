package systemdtest

import (
	"context"
	"time"

	"stead/host/unit"
)

// Manager is what every manager of units offers, the real one and the fake.
type Manager interface {
	Watcher
	Observer
	Actor
	Linker
}

// Linker makes and removes the links of unit files.
type Linker interface {
	Enable(ctx context.Context, names []unit.Name) (unit.Linking, error)
	Disable(ctx context.Context, names []unit.Name) (unit.Linking, error)
}

// Reader reads without rights, from the same service manager.
type Reader interface {
	Lister
	Details(ctx context.Context, name unit.Name) (unit.Details, error)
}

// Lister lists units and unit files.
type Lister interface {
	Units(ctx context.Context, f unit.Filter) ([]unit.Listed, error)
	Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error)
	Files(ctx context.Context, f unit.Filter) ([]unit.ListedFile, error)
	Enablement(ctx context.Context, names []unit.Name) ([]string, error)
	Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error)
}

// Watcher says that something happened, and where to look.
type Watcher interface {
	Wake() <-chan struct{}
	Drain() unit.Changes
	Connected() bool
}

// Observer reads.
type Observer interface {
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
	Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error)
	UnitPath(ctx context.Context) ([]string, error)
	Version(ctx context.Context) (string, error)
}

// Actor acts.
type Actor interface {
	Enqueue(ctx context.Context, jobs []unit.JobRequest) []unit.Queued
	Reload(ctx context.Context) (time.Duration, error)
	ResetFailed(ctx context.Context, names []unit.Name) []error
}

// Other is somebody else at work on the same node.
type Other interface {
	// Enqueue asks the same service manager for jobs.
	Enqueue(ctx context.Context, jobs []unit.JobRequest) []unit.Queued
	// Reload asks the same service manager for a reload.
	Reload(ctx context.Context) (time.Duration, error)
	// Kill kills the process with SIGKILL.
	Kill(pid uint32) error
	// Cut makes the manager lose its connection, in a way that lets it come back.
	Cut(ctx context.Context) error
}

// Env is a manager that runs, and the place where a case of the contract works.
type Env struct {
	Manager Manager
	Reader  Reader
	Other   Other
	Dir     string // a folder of the manager's unit path
	Spare   string // a folder that is empty at first, for files that conditions look for
	Target  string // the one that everything is enabled for; "" is multi-user.target
}
