package escalate

import (
	"context"
	"errors"
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

// Request asks for one act on one unit of the system scope.
type Request struct {
	Act  Act
	Unit unit.Name
	// NoWait answers once a job is queued, in place of at its end.
	NoWait bool
}

// Outcome is what became of an act that was done.
type Outcome struct {
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

func forWhom(ctx context.Context) string {
	who, _ := ctx.Value(forKey{}).(string)
	if len(who) > maxFor {
		who = who[:maxFor]
	}
	return who
}

// Bounds of what is asked.
const (
	maxFor = 256
	minID  = 16
	maxID  = 64
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
	if len(a.ID) < minID || len(a.ID) > maxID || !alphanumeric(a.ID) {
		return bad(fault.Invalid, "a call is known by %d to %d letters and digits", minID, maxID)
	}
	if len(a.For) > maxFor {
		return bad(fault.Invalid, "for whom it is takes %d bytes; at most %d", len(a.For), maxFor)
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
	return Request{Act: a.Act, Unit: name, NoWait: a.NoWait}, nil
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

	ID     string `json:"id,omitempty"`
	Act    Act    `json:"act,omitempty"`
	Unit   string `json:"unit,omitempty"`
	NoWait bool   `json:"nowait,omitempty"`
	For    string `json:"for,omitempty"`

	Adopt bool     `json:"adopt,omitempty"`
	Told  []string `json:"told,omitempty"`
}

// answered is a line from the helper.
type answered struct {
	Hello   int    `json:"hello,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
	Refused string `json:"refused,omitempty"`

	ID    string    `json:"id,omitempty"`
	Job   uint32    `json:"job,omitempty"`
	Act   Act       `json:"act,omitempty"`
	Unit  unit.Name `json:"unit,omitempty"`
	For   string    `json:"for,omitempty"`
	Began time.Time `json:"began,omitzero"`
	End   *end      `json:"end,omitempty"`
}

// end is how a call ended: an outcome, or a failure.
type end struct {
	Outcome
	Fault *failure `json:"fault,omitempty"`
}

// failure is a *fault.Error on its way.
type failure struct {
	Class  fault.Class `json:"class"`
	Op     string      `json:"op,omitempty"`
	Object string      `json:"object,omitempty"`
	Cause  string      `json:"cause,omitempty"`
	Hint   string      `json:"hint,omitempty"`
}

func failed(err error) *end {
	f := &failure{Class: fault.ClassOf(err), Cause: err.Error()}
	var known *fault.Error
	if errors.As(err, &known) {
		f.Op, f.Object, f.Hint, f.Cause = known.Op, known.Object, known.Hint, ""
		if known.Cause != nil {
			f.Cause = known.Cause.Error()
		}
	}
	return &end{Fault: f}
}

func (e *end) err() error {
	if e.Fault == nil {
		return nil
	}
	var cause error
	if e.Fault.Cause != "" {
		cause = errors.New(e.Fault.Cause)
	}
	return fault.New(e.Fault.Class, e.Fault.Op, e.Fault.Object, cause).WithHint(e.Fault.Hint)
}
