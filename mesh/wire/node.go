package wire

import (
	"time"

	"stead/host/report"
	"stead/host/shape"
)

// Profile is what a host reports of its node.
type Profile struct {
	Wire    int       `json:"wire"`
	Version string    `json:"version"`           // of stead
	Systemd string    `json:"systemd,omitempty"` // the manager's own words; "" while it does not answer
	OS      string    `json:"os,omitempty"`      // PRETTY_NAME of os-release(5)
	Kernel  string    `json:"kernel,omitempty"`
	Machine string    `json:"machine,omitempty"` // machine-id, hashed with the mesh: tells two machines with one name apart
	Boot    string    `json:"boot,omitempty"`    // boot id
	Host    string    `json:"host,omitempty"`    // the name that the machine gives itself
	Started time.Time `json:"started"`           // of the host process
	// Account is the operator account; nil for none.
	Account *Account `json:"account,omitempty"`
	// Wires are the versions of the messages that the host reads.
	Wires []int `json:"wires"`
	// Vocabulary is what the host can apply: shapes and their fields by name.
	Vocabulary []Shape `json:"vocabulary"`
	// Capabilities are facts of the node, such as "service-manager". Sorted.
	Capabilities []string `json:"capabilities"`
}

// Capabilities that hosts report: that the node's service manager answers, and that
// the host heeds the pauses of an index.
const (
	ServiceManager = "service-manager"
	PausesUnits    = "pause"
)

// Shape is one shape of a vocabulary.
type Shape struct {
	Name    string   `json:"name"`
	Version int      `json:"version"`
	Fields  []string `json:"fields"` // sorted
}

// Vocabulary is that of this version of stead.
func Vocabulary() []Shape {
	var all []Shape
	for _, s := range shape.Vocabulary() {
		w := Shape{Name: s.Name, Version: s.Version}
		for _, f := range s.Fields {
			w.Fields = append(w.Fields, f.Name)
		}
		all = append(all, w)
	}
	return all
}

// Source is where a node's declarations come from, as its host says.
type Source struct {
	Mesh     string    `json:"mesh"`
	Epoch    string    `json:"epoch,omitempty"`
	Revision uint64    `json:"revision,omitempty"` // of the index in force
	Same     uint64    `json:"same,omitempty"`     // SyncReply.Since when the index in force was last found the same
	Accepted time.Time `json:"accepted,omitzero"`  // when an index was last accepted or found the same
	// Trouble says why the last index was not accepted; what was accepted before
	// stays in force. "" when all is well.
	Trouble string `json:"trouble,omitempty"`
	// Kept are declarations of an epoch or mesh before, still in force, that only
	// an explicit withdrawal ends. Sorted.
	Kept []string `json:"kept,omitempty"`
}

// Current is the revision of mesh state up to which reports that travel with s
// speak of what is declared: they are no older than when the host took over, or
// found the same, what the mesh declared for its node then.
func (s Source) Current() uint64 { return max(s.Revision, s.Same) }

// ReportBatch carries reports that changed since those of the batch before. A
// host numbers its batches from 1 in each Run of its process; a controller that
// does not hold Base of that run answers Full, and gets everything.
type ReportBatch struct {
	Wire int    `json:"wire"`
	Run  string `json:"run"`
	Seq  uint64 `json:"seq"`  // of this batch
	Base uint64 `json:"base"` // of the batch that it follows; 0: it holds all there is, or begins to
	// More says that the rest of everything comes with the next batch.
	More    bool             `json:"more,omitempty"`
	Source  Source           `json:"source"`
	Reports []*report.Report `json:"reports,omitempty"`
	Gone    []string         `json:"gone,omitempty"` // names that have no report any more
}

// ReportReply acknowledges a batch: it is stored.
type ReportReply struct {
	Full bool `json:"full,omitempty"` // nothing was stored: send everything, from Base 0
}

// Event is one thing that happened, in the mesh's audit stream.
type Event struct {
	// ID tells an event that was sent twice: unique in the mesh.
	ID string    `json:"id"`
	At time.Time `json:"at"` // by the clock of who tells it
	// Source is who tells it: host, runtime, controller.
	Source string `json:"source"`
	Node   string `json:"node,omitempty"`
	Who    string `json:"who,omitempty"` // the person whose doing it was: "operator alice"
	// Kind is what happened: apply, withdraw, node, pause, resume, seat, module, started, stopped, restarted,
	// reloaded, refreshed, written, removed, reload, outcome, sync, lost,
	// double.
	Kind        string `json:"kind"`
	Declaration string `json:"declaration,omitempty"`
	Unit        string `json:"unit,omitempty"`
	Scope       string `json:"scope,omitempty"`
	Generation  uint64 `json:"generation,omitempty"`
	Revision    uint64 `json:"revision,omitempty"` // of mesh state, for what changed it
	Outcome     string `json:"outcome,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Text        string `json:"text,omitempty"` // one sentence for a person
	// Call is what Kind, the name of a verb, was called with; nil for all other
	// kinds.
	Call *CallEvent `json:"call,omitempty"`
}

// CallDone is the result of a call that was done.
const CallDone = "done"

// CallEvent is one call of a verb, as the runtime that served it tells it. Who
// called stands in Event.Who, as the server states it.
type CallEvent struct {
	Seat      string  `json:"seat"`
	Verb      string  `json:"verb"`
	Account   string  `json:"account,omitempty"` // of the caller
	User      string  `json:"user,omitempty"`    // the caller's public key
	Arguments string  `json:"arguments"`         // as they came, cut after some bytes
	Digest    string  `json:"digest"`            // sha256 of all of them, in hex
	Result    string  `json:"result"`            // CallDone, or the class of the error
	Streamed  bool    `json:"streamed,omitempty"`
	Took      float64 `json:"took"` // seconds
}

// EventBatch carries events that a host spooled, in their order.
type EventBatch struct {
	Wire   int     `json:"wire"`
	Events []Event `json:"events"`
}

// EventReply acknowledges a batch: all of it is stored.
type EventReply struct{}

// ProfileReply acknowledges a profile.
type ProfileReply struct {
	// Removed says that the node was removed from the mesh, by whom and when.
	Removed string `json:"removed,omitempty"`
}

// PlanRequest asks a host what it would do if these were declared, and those
// withdrawn, besides what it holds. It changes nothing.
type PlanRequest struct {
	Wire         int        `json:"wire"`
	Declarations []Declared `json:"declarations,omitempty"`
	Withdrawn    []string   `json:"withdrawn,omitempty"`
}

// Declared is a declaration that is not in force yet.
type Declared struct {
	UID        string `json:"uid"`
	Generation uint64 `json:"generation"`
	Canonical  []byte `json:"canonical"`
}

// PlanReply is what the host would do, in the order of the request.
type PlanReply struct {
	Plans []Plan `json:"plans"`
}

// Plan is what a host would do for one declaration.
type Plan struct {
	Name  string     `json:"name"`
	Unit  string     `json:"unit"`
	Scope string     `json:"scope"`
	Steps []PlanStep `json:"steps,omitempty"`
	// Outcome, Reason, Text and Hint say what forbids it, or what it would wait
	// for; empty when nothing does.
	Outcome  report.Outcome `json:"outcome,omitempty"`
	Reason   report.Reason  `json:"reason,omitempty"`
	Text     string         `json:"text,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
}

// PlanStep is one step that would be taken.
type PlanStep struct {
	Action string `json:"action"`
	Object string `json:"object"`
	Reason string `json:"reason"`
	// Diff is unified, of what stands there and what would; cut after some lines.
	Diff []string `json:"diff,omitempty"`
}
