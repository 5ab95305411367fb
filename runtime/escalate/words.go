package escalate

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// SocketPath is where the helper listens.
const SocketPath = "/run/stead/escalate.sock"

// CallsPath is the file of the calls under way.
const CallsPath = "/run/stead-escalate/calls"

// Runtime is the unit whose main process may ask.
const Runtime unit.Name = "stead-runtime.service"

// Act is what the helper can be asked to do. The list is closed.
type Act string

// The acts.
const (
	Start       Act = "start"
	Stop        Act = "stop"
	Restart     Act = "restart"
	Enable      Act = "enable"
	Disable     Act = "disable"
	ResetFailed Act = "reset-failed"
)

// jobs are the acts that are jobs of systemd's.
func (a Act) job() (unit.JobType, bool) {
	switch a {
	case Start:
		return unit.StartJob, true
	case Stop:
		return unit.StopJob, true
	case Restart:
		return unit.RestartJob, true
	}
	return "", false
}

// Request asks for one act on one unit.
type Request struct {
	Act   Act
	Unit  unit.Name
	Scope unit.Scope // "" is unit.System; unit.User is that of the node's account
	// NoWait answers once a job is queued, in place of at its end.
	NoWait bool
	// Before is how the unit stands, for Known to tell: at most 64 bytes of the
	// caller's.
	Before string
}

// Standing is how a unit stands at one moment.
type Standing struct {
	Active unit.ActiveState `json:"active,omitempty"`
	Sub    string           `json:"sub,omitempty"`
}

// Stood is how a unit stood before an act on it, and what it is called.
type Stood struct {
	Standing
	ID          unit.Name   `json:"id"`
	Names       []unit.Name `json:"names,omitempty"`       // all of its own
	TriggeredBy []unit.Name `json:"triggeredby,omitempty"` // units that start it
	Cut         bool        `json:"cut,omitempty"`         // there are more of both than are told of every act
}

func stoodOf(t unit.Ties) *Stood {
	s := &Stood{Standing{t.Active, t.Sub}, t.ID, t.Names, t.TriggeredBy, false}
	if len(t.Names)+len(t.TriggeredBy) > maxNames {
		s.Names, s.TriggeredBy, s.Cut = nil, nil, true
	}
	return s
}

// Outcome is what became of an act that was done.
type Outcome struct {
	Before *Stood         `json:"-"`                // of a job; nil when that is not known
	After  Standing       `json:"after,omitzero"`   // as seen behind the end of a job; zero when it was not
	Job    uint32         `json:"job,omitempty"`    // 0: the act is no job
	Result unit.JobResult `json:"result,omitempty"` // of the job; "": it was not waited for
	Links  unit.Linking   `json:"links,omitzero"`   // of enable and disable
	Took   time.Duration  `json:"took"`             // to the end of the job, or of the act
	// Note says that the result was made out from how the unit stands: systemd's own
	// word came while nobody listened. "" else.
	Note string `json:"note,omitempty"`
}

// Late is the end of a call that nobody waits for any more: its caller's deadline
// was over, or the runtime that asked is gone.
type Late struct {
	ID    string
	Act   Act
	Unit  unit.Name
	Scope unit.Scope
	For   string    // for whom it was, as WithFor said
	Began time.Time // when the helper took it
	Outcome
	Err error
}

type forKey struct{}

// WithFor makes calls with the context it returns say for whom they are, in the
// log of the helper and in Late: at most 256 bytes.
func WithFor(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, forKey{}, who)
}

// Call is a call that the runtime was asked, as it knows it across restarts: no two
// have one ID, of 16 to 64 letters and digits. Asked is how long ago it was first
// asked, when that may have come as far as the helper; 0 when it is new.
type Call struct {
	ID    string
	Asked time.Duration
}

type callKey struct{}

// WithCall makes acts with the context it returns part of a call: each act on a
// unit is done once in it, also by a runtime to which the call comes anew.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Begun is an act on a unit that the helper took.
type Begun struct {
	Act    Act        `json:"act"`
	Unit   unit.Name  `json:"unit"`
	Scope  unit.Scope `json:"scope,omitempty"` // "" is unit.System
	Before string     `json:"before,omitempty"`
}

func compareBegun(a, b Begun) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Act, b.Act))
}

// since is Asked as it is told to the helper.
func (c Call) since() int64 {
	if c.Asked <= 0 {
		return 0
	}
	return max(1, c.Asked.Milliseconds())
}

// id is that of an act: in a call, one of the call, the act, the unit and its scope
// alone.
func (c Call) id(r Request) string {
	if c.ID == "" {
		return rand.Text()
	}
	text := c.ID + "\n" + string(r.Act) + "\n" + string(r.Unit)
	if r.Scope == unit.User {
		text += "\n" + string(r.Scope)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func forWhom(ctx context.Context) string {
	who, _ := ctx.Value(forKey{}).(string)
	return cut(who, maxFor)
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// Bounds of what is asked.
const (
	maxFor = 256
	maxSay = 64 // of Before
	// maxNames are those of a unit that are told with an act on it.
	maxNames = 64
	minID    = 16
	maxID    = 64
)

// check returns the request of a line, judged by its form alone.
func (a asked) check() (Request, error) {
	bad := func(class fault.Class, format string, args ...any) (Request, error) {
		return Request{}, fault.New(class, "escalate", fmt.Sprintf("%.32q", string(a.Act)), fmt.Errorf(format, args...))
	}
	switch a.Act {
	case Start, Stop, Restart, Enable, Disable, ResetFailed:
	default:
		return bad(fault.Refused, "it is no act that the helper does")
	}
	if a.Scope != "" && a.Scope != unit.System && a.Scope != unit.User {
		return bad(fault.Invalid, "%.32q is no scope", string(a.Scope))
	}
	if len(a.ID) < minID || len(a.ID) > maxID || !alphanumeric(a.ID) {
		return bad(fault.Invalid, "a call is known by %d to %d letters and digits", minID, maxID)
	}
	if a.Call != "" && (len(a.Call) < minID || len(a.Call) > maxID || !alphanumeric(a.Call)) || a.Since < 0 {
		return bad(fault.Invalid, "what the runtime was asked is known by %d to %d letters and digits, and was asked before", minID, maxID)
	}
	if len(a.For) > maxFor || len(a.Before) > maxSay {
		return bad(fault.Invalid, "for whom it is takes %d bytes, at most %d, and how it stood %d, at most %d", len(a.For), maxFor, len(a.Before), maxSay)
	}
	name, err := unit.ParseName(a.Unit)
	if err != nil {
		return Request{}, fault.New(fault.Invalid, string(a.Act), fmt.Sprintf("%.64q", a.Unit), err)
	}
	if _, is := a.Act.job(); is && name.IsTemplate() {
		return bad(fault.Refused, "%s is a template: it has no activity", name)
	}
	if _, is := a.Act.job(); !is && a.NoWait {
		return bad(fault.Invalid, "there is no job to wait for")
	}
	return Request{Act: a.Act, Unit: name, Scope: a.Scope, NoWait: a.NoWait}, nil
}

func alphanumeric(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// asked is a line to the helper. Exactly one kind of thing is said by it.
type asked struct {
	Nonce string `json:"nonce,omitempty"`

	ID     string     `json:"id,omitempty"`
	Act    Act        `json:"act,omitempty"`
	Unit   string     `json:"unit,omitempty"`
	Scope  unit.Scope `json:"scope,omitempty"`
	NoWait bool       `json:"nowait,omitempty"`
	For    string     `json:"for,omitempty"`
	Call   string     `json:"call,omitempty"` // that it is part of
	Before string     `json:"before,omitempty"`
	Since  int64      `json:"since,omitempty"` // milliseconds since that was first asked; 0: it is new

	question // of an id

	About string   `json:"about,omitempty"` // a call, with an id of the question
	Adopt bool     `json:"adopt,omitempty"`
	Told  []string `json:"told,omitempty"`
}

// answered is a line from the helper.
type answered struct {
	Hello   int    `json:"hello,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
	Refused string `json:"refused,omitempty"`
	Users   bool   `json:"users,omitempty"` // user scope is served

	ID    string     `json:"id,omitempty"`
	Job   uint32     `json:"job,omitempty"`
	Act   Act        `json:"act,omitempty"`
	Unit  unit.Name  `json:"unit,omitempty"`
	Scope unit.Scope `json:"scope,omitempty"`
	For   string     `json:"for,omitempty"`
	Began time.Time  `json:"began,omitzero"`
	Stood *Stood     `json:"stood,omitempty"`
	End   *end       `json:"end,omitempty"`

	Piece *piece      `json:"piece,omitempty"` // of the answer to a question
	Last  bool        `json:"last,omitempty"`  // nothing more comes
	Fault *fault.Told `json:"fault,omitempty"` // why there is no answer

	About string  `json:"about,omitempty"`
	Begun []Begun `json:"begun,omitempty"` // of that call
}

// end is how a call ended: an outcome, or a failure.
type end struct {
	Outcome
	Fault *fault.Told `json:"fault,omitempty"`
}

func failed(err error) *end { return &end{Fault: fault.Tell(err)} }

func (e *end) err() error { return e.Fault.Err() }
