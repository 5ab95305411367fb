package plan

import (
	"time"

	"stead/host/shape"
	"stead/host/unit"
)

// Memory is what the ledger remembers of one unit, or declared file, that stead manages
// or gives back. The ledger stores it as JSON; a new field must read as its zero value
// from an older ledger.
type Memory struct {
	Scope      unit.Scope       `json:"scope"`
	Unit       unit.Name        `json:"unit"` // or the path of a declared file; see OfFile
	Name       string           `json:"name"` // of the declaration
	UID        string           `json:"uid"`
	Generation uint64           `json:"generation"`
	OnWithdraw shape.OnWithdraw `json:"on_withdraw,omitempty"`
	OnChange   shape.OnChange   `json:"on_change,omitempty"`
	Withdrawn  bool             `json:"withdrawn,omitempty"` // being given back; the record goes when that is done
	Sensitive  bool             `json:"sensitive,omitempty"` // its texts are shown to nobody

	// Found is what stood at each path that stead ever touched, at first touch.
	// The bytes of files are in the ledger's blobs.
	Found map[string]Entry `json:"found,omitempty"`
	// Wrote is what stead last put at a path, or was about to put there when the
	// host died: it is recorded before the act.
	Wrote map[string]Entry `json:"wrote,omitempty"`
	// Before is what stead itself had put at a path whose change is under way: a
	// host that died before the act finds it there, and it is nobody else's.
	Before map[string]Entry `json:"before,omitempty"`
	// Activity is how the unit was at the first job of stead's; "" before it.
	Activity unit.ActiveState `json:"activity,omitempty"`

	Loaded  Loaded  `json:"loaded,omitzero"`
	Taken   Taken   `json:"taken,omitzero"`
	Began   Taken   `json:"began,omitzero"` // what the run had taken in when it was first seen: a reload adds to Taken alone
	Oneshot Oneshot `json:"oneshot,omitzero"`
	// Triggers is what was seen and taken in of each declared trigger, by path.
	Triggers map[string]Trigger `json:"triggers,omitempty"`
	// Refresh is the reload that was asked for last, recorded before it.
	Refresh Refresh `json:"refresh,omitzero"`
	// Restarted is the restart that a generation asked for, recorded before it.
	Restarted Restarted `json:"restarted,omitzero"`
}

// Loaded is the definition that the manager was last seen to have loaded.
type Loaded struct {
	Digest string        `json:"digest"` // of the bytes of FragmentPath and DropInPaths
	Boot   string        `json:"boot"`   // boot id
	At     time.Duration `json:"at"`     // CLOCK_MONOTONIC: the reload that brought it was over by then
}

// Taken is the definition that a run of the unit has taken in.
type Taken struct {
	Digest     string `json:"digest"`
	Invocation string `json:"invocation"`
}

// Trigger is what was last seen at a trigger, and what a run has taken in of it.
type Trigger struct {
	Digest string        `json:"digest"`          // that was seen last
	Boot   string        `json:"boot"`            // in which that was first seen
	At     time.Duration `json:"at"`              // CLOCK_MONOTONIC: it was first seen by then
	Taken  string        `json:"taken,omitempty"` // digest that the run has taken in; "" when no run was seen
	Run    string        `json:"run,omitempty"`   // invocation of that run
}

// Refresh is a reload that takes a change in without a new run, and what there was
// to take in when it was asked for.
type Refresh struct {
	Invocation string            `json:"invocation"`
	Boot       string            `json:"boot"`
	At         time.Duration     `json:"at"` // CLOCK_MONOTONIC
	Digest     string            `json:"digest"`
	Triggers   map[string]string `json:"triggers,omitempty"`
}

// Restarted is the restart of a generation that is declared restarted.
type Restarted struct {
	UID        string `json:"uid"` // of the declaration
	Generation uint64 `json:"generation"`
	Old        string `json:"old,omitempty"` // invocation before it; "" for none that was known
	Done       bool   `json:"done,omitempty"`
}

// Oneshot is how the last run of a oneshot unit that does not remain after
// exit ended; systemd itself forgets it.
type Oneshot struct {
	Digest string         `json:"digest"`
	Boot   string         `json:"boot"`
	Result unit.JobResult `json:"result"`
}

// Manager is what the ledger remembers of one scope's manager.
type Manager struct {
	// OwesReload: files were changed, and no reload has been seen to end since.
	OwesReload bool   `json:"owes_reload,omitempty"`
	Boot       string `json:"boot,omitempty"` // in which the debt was made; a boot pays it
	// Made are folders that stead made; one that is empty goes when the last
	// entry of stead's in it goes.
	Made []string `json:"made,omitempty"`
	// Account is whose manager it is, in user scope; nil when none is known. It has
	// a writer of its own.
	Account *Account `json:"account,omitempty"`
}

// Account is the operator account for which the user scope's files were written.
type Account struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	Home string `json:"home"`
	// LingerOurs: stead turned lingering on, or was about to.
	LingerOurs bool `json:"linger_ours,omitempty"`
}

// Record is a change of the ledger, made in one durable transaction.
type Record struct {
	Scope   unit.Scope
	Put     []Memory
	Delete  []unit.Name
	Blobs   map[string][]byte // digest → bytes
	Manager *Manager          // nil: unchanged
}

// Empty reports whether r changes nothing.
func (r Record) Empty() bool {
	return len(r.Put) == 0 && len(r.Delete) == 0 && len(r.Blobs) == 0 && r.Manager == nil
}
