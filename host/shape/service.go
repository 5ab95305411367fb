package shape

import (
	"time"

	"stead/host/unit"
)

// Ensure is the activity that is declared for a unit.
type Ensure string

// The values of ensure. The empty value leaves activity alone.
const (
	Unmanaged Ensure = ""
	Running   Ensure = "running"
	Stopped   Ensure = "stopped"
	Restarted Ensure = "restarted" // running, and restarted once for each generation
)

// OnChange is what a running unit does when its definition or a trigger changes.
type OnChange string

// The values of on_change. The empty value restarts where the unit can be
// restarted, and else does nothing.
const (
	RestartOnChange OnChange = "restart"
	ReloadOnChange  OnChange = "reload" // strictly: never a restart
	ReloadOrRestart OnChange = "reload_or_restart"
	IgnoreChange    OnChange = "none" // the change is taken in, and nothing is done
)

// OnWithdraw is what becomes of a unit when its declaration is withdrawn.
type OnWithdraw string

// The values of on_withdraw.
const (
	Restore OnWithdraw = "restore" // every aspect that stead touched goes back to what stood there before
	Release OnWithdraw = "release" // nothing is touched
)

// Limits of a declaration and of a batch.
const (
	MaxContent      = 64 << 10  // bytes of content
	MaxDropIns      = 256 << 10 // bytes of all drop-ins of one declaration
	MaxDeclarations = 1000      // declarations in one apply or folder
	MaxBatch        = 16 << 20  // bytes of all documents in one apply or folder
	DefaultTimeout  = 2 * time.Minute
)

// Service is a declaration of shape "service": one unit and what is to be so
// of it. A nil pointer or empty value means that the aspect is not managed. A
// Service made by Parse is valid; it is never changed afterwards.
type Service struct {
	Name       string            // DNS label, the identity
	Scope      unit.Scope        // of which manager the unit is
	Unit       unit.Name         // NAME.service when it was not given
	Content    *string           // the unit file, verbatim
	DropIns    map[string]string // file name (x.conf) → bytes, verbatim
	Ensure     Ensure
	Enabled    *bool
	Masked     *bool
	OnChange   OnChange
	Triggers   []string      // absolute paths, sorted, each once
	Timeout    time.Duration // convergence budget
	OnWithdraw OnWithdraw

	Nodes  []string          // addressing: at most one of Nodes, Labels, All
	Labels map[string]string //
	All    bool              //

	Origin Origin // where it was read; no part of the canonical form
}

// Origin is where a declaration was read.
type Origin struct {
	File string
	Line int // of the document's first line, from 1
}

// IsMasked reports whether s is declared masked.
func (s *Service) IsMasked() bool { return s.Masked != nil && *s.Masked }
