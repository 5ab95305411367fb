package wire

import (
	"encoding/json"
	"time"

	"stead/host/report"
	"stead/host/shape"
	"stead/mesh/subject"
)

// The operations that people ask of controllers.
const (
	Get      subject.Operation = "get"      // read
	Progress subject.Operation = "progress" // read
	Events   subject.Operation = "events"   // read
	Apply    subject.Operation = "apply"    // write, a dry run too: it shows content
	Withdraw subject.Operation = "withdraw" // write
	Settings subject.Operation = "node"     // write
	PauseOne subject.Operation = "pause"    // write
	Upload   subject.Operation = "upload"   // write
)

// Mark is a short text that says in which state somebody saw a declaration: it
// is another one whenever uid, generation or addressing is. "" is that of a name
// that is not declared.
type Mark string

// File is one file of declarations as it was read.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// ApplyRequest declares everything in Files, in one commit.
type ApplyRequest struct {
	Wire  int    `json:"wire"`
	Files []File `json:"files"`
	// Seen is in which state the caller last saw each name that it knows, in Epoch.
	// What was seen in another epoch than that of now was not seen: generations may
	// have gone back since.
	Seen  map[string]Mark `json:"seen,omitempty"`
	Epoch string          `json:"epoch,omitempty"`
	// Force declares also what somebody else changed since it was seen.
	Force bool `json:"force,omitempty"`
	// Yes agrees to take many declarations from their nodes.
	Yes bool `json:"yes,omitempty"`
	// DryRun changes nothing, and asks the nodes for their plans.
	DryRun bool `json:"dry_run,omitempty"`
	// Nodes are those whose plans are wanted; none: all.
	Nodes []string `json:"nodes,omitempty"`
}

// WithdrawRequest withdraws every name, in one commit.
type WithdrawRequest struct {
	Wire   int             `json:"wire"`
	Names  []string        `json:"names"`
	Seen   map[string]Mark `json:"seen,omitempty"`
	Epoch  string          `json:"epoch,omitempty"` // of Seen
	Force  bool            `json:"force,omitempty"`
	Yes    bool            `json:"yes,omitempty"`
	DryRun bool            `json:"dry_run,omitempty"`
	Nodes  []string        `json:"nodes,omitempty"`
}

// How a declaration is changed.
const (
	New       = "new"
	Edited    = "changed" // what it declares
	Moved     = "moved"   // only its addressing
	Unchanged = "unchanged"
	Gone      = "withdrawn"
)

// Change is what an operation does to one declaration.
type Change struct {
	Name   string       `json:"name"`
	Origin shape.Origin `json:"origin,omitzero"`
	Unit   string       `json:"unit"`
	Scope  string       `json:"scope"`
	How    string       `json:"how"`
	// Fields are those that differ, in the order of the vocabulary.
	Fields     []string `json:"fields,omitempty"`
	UID        string   `json:"uid"`
	Generation uint64   `json:"generation"`
	// Mark is that of what stands after the answer: in a dry run, of what stands now.
	Mark Mark `json:"mark"`
	// Nodes is on how many nodes it is, Gains and Loses on how many it comes to be
	// and ceases to be.
	Nodes int `json:"nodes"`
	Gains int `json:"gains,omitempty"`
	Loses int `json:"loses,omitempty"`
}

// Conflict is a declaration that somebody else changed since the caller saw it.
type Conflict struct {
	Name   string    `json:"name"`
	Seen   Mark      `json:"seen,omitempty"`
	Mark   Mark      `json:"mark,omitempty"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	How    string    `json:"how"`              // New, Edited, Moved or Gone
	Fields []string  `json:"fields,omitempty"` // that the caller's differ in from what is declared now
	// Generation is that of now; 0 when it is withdrawn.
	Generation uint64 `json:"generation,omitempty"`
}

// ChangeReply answers Apply, Withdraw and Settings. When one of Problems,
// Conflicts and Sure is set, nothing was changed.
type ChangeReply struct {
	Epoch     string         `json:"epoch"`
	Revision  uint64         `json:"revision"` // at which it is in force, or was looked at
	Changes   []Change       `json:"changes,omitempty"`
	Problems  shape.Problems `json:"problems,omitempty"`
	Conflicts []Conflict     `json:"conflicts,omitempty"`
	// Sure says what would be taken from whom, when Yes is wanted for it: a line, and
	// indented lines below it that break it down.
	Sure string `json:"sure,omitempty"`
	// Warnings hold nothing up: a label that no node carries, a node that is silent.
	Warnings []string `json:"warnings,omitempty"`
	// Plans are what nodes would do, of a dry run. Unplanned are nodes that were
	// asked and did not answer, with the reason; More is how many plans did not
	// fit into the answer.
	Plans     []NodePlan        `json:"plans,omitempty"`
	Unplanned map[string]string `json:"unplanned,omitempty"`
	More      int               `json:"more,omitempty"`
	Node      *Node             `json:"node,omitempty"` // of Settings and PauseOne: as it is now
	// Pause is the one that was made or ended, of PauseOne; nil when there was none to
	// end.
	Pause *Pause `json:"pause,omitempty"`
}

// NodePlan is the plan of one node for one declaration.
type NodePlan struct {
	Node string `json:"node"`
	Plan
}

// SettingsRequest changes what people set of one node.
type SettingsRequest struct {
	Wire    int               `json:"wire"`
	Node    string            `json:"node"`
	Add     bool              `json:"add,omitempty"`    // it is to be known from now on, or again
	Remove  bool              `json:"remove,omitempty"` // it is to be known no more
	Labels  map[string]string `json:"labels,omitempty"` // to set
	Unlabel []string          `json:"unlabel,omitempty"`
	Account *string           `json:"account,omitempty"` // "" takes it away
	Linger  *string           `json:"linger,omitempty"`  // auto, on, off
	Yes     bool              `json:"yes,omitempty"`
}

// What Get reads.
const (
	Declarations = "declarations"
	Nodes        = "nodes"
	Reports      = "reports"
	Seats        = "seats"
	Modules      = "modules"
	Holders      = "holders"
)

// GetRequest asks for one page of what is known. Names and Nodes narrow it.
type GetRequest struct {
	Wire   int               `json:"wire"`
	Kind   string            `json:"kind"`
	Names  []string          `json:"names,omitempty"`  // of declarations, seats or modules; of holders, the seats
	Nodes  []string          `json:"nodes,omitempty"`  // of nodes
	Labels map[string]string `json:"labels,omitempty"` // that a node carries
	// Content asks for what declarations declare too. Viewers get none.
	Content bool `json:"content,omitempty"`
	// After is Next of the page before; "" is the first page.
	After string `json:"after,omitempty"`
}

// GetReply is one page, sorted by name, and by node and name or seat.
type GetReply struct {
	Mesh         string            `json:"mesh"`
	Epoch        string            `json:"epoch"`
	Revision     uint64            `json:"revision"`
	Declarations []Declaration     `json:"declarations,omitempty"`
	Nodes        []Node            `json:"nodes,omitempty"`
	Reports      []NodeReport      `json:"reports,omitempty"`
	Seats        []Seat            `json:"seats,omitempty"`
	Modules      []Module          `json:"modules,omitempty"`
	Holders      []Holder          `json:"holders,omitempty"`
	Missing      []string          `json:"missing,omitempty"` // of Names and Nodes: not known
	Closest      map[string]string `json:"closest,omitempty"` // of Missing: a known name that is near
	Next         string            `json:"next,omitempty"`    // "" is the last page
	// Trouble says that mesh state cannot be trusted as a whole, and why.
	Trouble string `json:"trouble,omitempty"`
}

// Declaration is one declaration as the mesh has it.
type Declaration struct {
	Name       string            `json:"name"`
	UID        string            `json:"uid"`
	Generation uint64            `json:"generation"`
	Revision   uint64            `json:"revision"`
	Mark       Mark              `json:"mark"`
	Unit       string            `json:"unit"`
	Scope      string            `json:"scope"`
	Nodes      []string          `json:"nodes,omitempty"`  // addressing:
	Labels     map[string]string `json:"labels,omitempty"` // exactly
	All        bool              `json:"all,omitempty"`    // one of them
	// Capability is the addressing of what a module declares: the nodes that report
	// it, where it is not All. Module is the module; "" for what people declare.
	Capability string          `json:"capability,omitempty"`
	Module     string          `json:"module,omitempty"`
	Digest     string          `json:"digest"`
	Size       int             `json:"size"`
	By         string          `json:"by"` // who changed it last: "operator alice"
	At         time.Time       `json:"at"`
	Canonical  json.RawMessage `json:"declares,omitempty"`
	On         int             `json:"on"` // how many nodes
	// Outcomes counts the reports of this generation; the rest of On has none yet.
	Outcomes map[report.Outcome]int `json:"outcomes,omitempty"`
}

// How a node stands.
const (
	Ready    = "ready"
	Silent   = "silent"   // nothing was heard of it for two minutes
	Refusing = "refusing" // it does not accept what controllers tell it; Source.Trouble says why
	Double   = "double"   // two machines go by its credentials; Trouble says which
	Unknown  = "new"      // it is known and was never heard of
	Removed  = "removed"
)

// Node is one node as the mesh has it.
type Node struct {
	Name     string                 `json:"name"`
	State    string                 `json:"state"`
	Labels   map[string]string      `json:"labels,omitempty"`
	Account  string                 `json:"account,omitempty"`
	Linger   string                 `json:"linger,omitempty"`
	Seen     time.Time              `json:"seen,omitzero"`
	Trouble  string                 `json:"trouble,omitempty"` // what controllers find wrong with it, and the cure
	Profile  *Profile               `json:"profile,omitempty"`
	Source   *Source                `json:"source,omitempty"`
	Declared int                    `json:"declared"`
	Outcomes map[report.Outcome]int `json:"outcomes,omitempty"`
	Pauses   []Pause                `json:"pauses,omitempty"` // that have not ended by the controller's clock
	Revision uint64                 `json:"revision"`
	By       string                 `json:"by,omitempty"`
	At       time.Time              `json:"at,omitzero"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	Node string `json:"node"`
	report.Report
	// UndoneBy says, of a contested one, by whose calls it was undone as far as the
	// audit knows; the rest of Undone came from outside the mesh.
	UndoneBy []Undoing `json:"undone_by,omitempty"`
}

// Undoing is who undid something through a seat, and how often.
type Undoing struct {
	Who   string `json:"who"` // "operator alice"
	Verb  string `json:"verb"`
	Times int    `json:"times"`
}

// ProgressRequest asks how far declarations have come.
type ProgressRequest struct {
	Wire  int      `json:"wire"`
	Names []string `json:"names"`
	// Least is the revision that must be looked at.
	Least uint64 `json:"least,omitempty"`
}

// ProgressReply answers in the order of the request.
type ProgressReply struct {
	Revision uint64           `json:"revision"`
	Names    []ProgressOfName `json:"names"`
}

// ProgressOfName is how far one declaration has come. Nodes is how many it is
// addressed to; those that are silent, or without a report of this generation, are
// Nodes less the sum of Outcomes. Leaving is how many are not addressed and report it still, or had
// it before its last change and did not say yet that they heard of that.
type ProgressOfName struct {
	Name       string                 `json:"name"`
	Generation uint64                 `json:"generation"` // 0: not declared any more
	Nodes      int                    `json:"nodes"`
	Outcomes   map[report.Outcome]int `json:"outcomes,omitempty"`
	Leaving    int                    `json:"leaving,omitempty"`
	Silent     []string               `json:"silent,omitempty"`  // nodes of either kind that are not heard of; at most 20
	Notable    []NodeReport           `json:"notable,omitempty"` // failed and refused first, then waiting and contested; at most 5
}

// EventsRequest asks for a page of the audit stream.
type EventsRequest struct {
	Wire        int       `json:"wire"`
	Node        string    `json:"node,omitempty"`
	Declaration string    `json:"declaration,omitempty"`
	Unit        string    `json:"unit,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	// Last asks for that many of the newest, when After is 0.
	Last int `json:"last,omitempty"`
	// After is Next of the page before.
	After uint64 `json:"after,omitempty"`
	// Wait waits up to that many seconds for the first one, at most 20.
	Wait int `json:"wait,omitempty"`
}

// EventsReply is one page, the oldest first.
type EventsReply struct {
	Events []Event `json:"events,omitempty"`
	Next   uint64  `json:"next"`
	More   bool    `json:"more,omitempty"` // there are more now
}

// UploadReply says where the parts of a large request go, all of them to the
// controller that answered.
type UploadReply struct {
	Upload    string            `json:"upload"`
	Operation subject.Operation `json:"operation"` // of class write, for each PartRequest
}

// PartRequest is one part of a large request to Operation. The answer to the
// last part is the answer of Operation.
type PartRequest struct {
	Upload    string            `json:"upload"`
	Operation subject.Operation `json:"operation"`
	Part      int               `json:"part"` // from 1, in order
	Of        int               `json:"of"`
	Data      []byte            `json:"data"`
}
