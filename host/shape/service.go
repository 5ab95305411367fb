package shape

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
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

// DaemonReload is whether the host may reload the manager for a unit. The empty
// value is auto: it reloads when that is owed.
type DaemonReload string

// NeverReload leaves a reload that is owed to somebody else: the unit waits for it.
const NeverReload DaemonReload = "never"

// Provider is what applies a unit. The empty value is auto: what the node has.
type Provider string

// Systemd is the one provider that there is.
const Systemd Provider = "systemd"

// Limits of a declaration and of a batch.
const (
	MaxContent      = 64 << 10  // bytes of a unit file
	MaxFileContent  = 512 << 10 // bytes of a declared file
	MaxDropIns      = 256 << 10 // bytes of all drop-ins of one declaration
	MaxDeclarations = 1000      // declarations in one apply or folder
	MaxBatch        = 16 << 20  // bytes of all documents in one apply or folder
	DefaultTimeout  = 2 * time.Minute
)

// Declaration is what one document declares. One made by Parse is valid; it is
// never changed afterwards. A nil pointer or empty value means that the aspect is
// not managed.
//
// Of shape "service" it is one unit and what is to be so of it; of shape "file",
// where File is not nil, one file: then Unit and all that is of units is empty.
type Declaration struct {
	// Name is the identity: a DNS label, of a file with "file:" before it, as triggers
	// cite it. Each shape has names of its own.
	Name  string
	Scope unit.Scope // of which manager the unit is; whose the file is
	File  *File      // nil for a unit

	Unit         unit.Name         // NAME.service when it was not given
	Content      *string           // the unit file or the file, verbatim; never nil for a file
	DropIns      map[string]string // file name (x.conf) → bytes, verbatim
	Ensure       Ensure
	Enabled      *bool
	Masked       *bool
	OnChange     OnChange
	Triggers     []string // absolute paths and names of declared files (file:NAME), sorted, each once
	DaemonReload DaemonReload
	Provider     Provider
	Timeout      time.Duration // convergence budget

	// Sensitive says that content and drop-ins are shown to nobody: what leaves the
	// host or the mesh's state shows digests in their place (see Redacted).
	Sensitive  bool
	OnWithdraw OnWithdraw

	Nodes  []string          // addressing: at most one of Nodes, Labels, All
	Labels map[string]string //
	All    bool              //

	Origin Origin // where it was read; no part of the canonical form
}

// Service is a Declaration of shape "service".
type Service = Declaration

// File is what a declaration of shape "file" says besides its content.
type File struct {
	Path  string      // absolute, or ~/ and what follows the account's home in user scope
	Mode  fs.FileMode // permission bits
	Owner string      // name of a login; "" in user scope, where it is the account
	Group string      // name of a group; "" is the owner's first one
}

// Origin is where a declaration was read.
type Origin struct {
	File string
	Line int // of the document's first line, from 1
}

// IsMasked reports whether s is declared masked.
func (s *Service) IsMasked() bool { return s.Masked != nil && *s.Masked }

// Shape returns the name of the shape that s is of.
func (s *Declaration) Shape() string {
	if s.File != nil {
		return FileShape
	}
	return ServiceShape
}

// Object returns what s has for itself in its scope on a node, which no other
// declaration may have: its unit, or the path of its file, which is no unit's name.
func (s *Declaration) Object() unit.Name {
	if s.File != nil {
		return unit.Name(s.File.Path)
	}
	return s.Unit
}

// FilePrefix is what stands before the name of a declared file where it is cited
// or listed among other declarations.
const FilePrefix = "file:"

// Cited returns the name of the declared file that the trigger t cites, with its
// FilePrefix; false for a path.
func Cited(t string) (name string, is bool) { return t, strings.HasPrefix(t, FilePrefix) }

// Redacted returns s as it may be shown: where it is sensitive, with the digest of
// each text in the place of the text. It is for people, and no declaration to apply.
func (s *Declaration) Redacted() *Declaration {
	if !s.Sensitive {
		return s
	}
	shown := *s
	if s.Content != nil {
		text := Conceal(*s.Content)
		shown.Content = &text
	}
	if s.DropIns != nil {
		shown.DropIns = make(map[string]string, len(s.DropIns))
		for name, text := range s.DropIns {
			shown.DropIns[name] = Conceal(text)
		}
	}
	return &shown
}

// Conceal returns what is shown in the place of a sensitive text.
func Conceal(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("sensitive: %d bytes, sha256 %s", len(text), hex.EncodeToString(sum[:]))
}
