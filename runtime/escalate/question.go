package escalate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"stead/host/fault"
	"stead/host/unit"
)

// read is a question about the user scope. The list is closed: there is no other, and
// the system scope the runtime reads by itself.
type read string

// The questions: those of a host/systemd.Reader, and whose scope it is.
const (
	readUnits      read = "units"
	readNamed      read = "named"
	readFiles      read = "files"
	readEnablement read = "enablement"
	readStands     read = "stands"
	readDetails    read = "details"
	readAccount    read = "account"
)

// questions is what reads the units of an account: host/systemd.Reader.
type questions interface {
	Units(ctx context.Context, f unit.Filter) ([]unit.Listed, error)
	Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error)
	Files(ctx context.Context, f unit.Filter) ([]unit.ListedFile, error)
	Enablement(ctx context.Context, names []unit.Name) ([]string, error)
	Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error)
	Details(ctx context.Context, name unit.Name) (unit.Details, error)
}

// question is a read with what it is about, part of a line to the helper.
type question struct {
	Read   read         `json:"read,omitempty"`
	Filter *unit.Filter `json:"filter,omitempty"` // of units and files
	Names  []unit.Name  `json:"names,omitempty"`  // of the others; of details one
	// States are the active states of Names, of stands alone.
	States []unit.ActiveState `json:"states,omitempty"`
}

// about is what errors say of a question.
func (q question) about() (op, object string) {
	if q.Read == readDetails && len(q.Names) == 1 {
		return "read unit", string(q.Names[0])
	}
	return "read " + string(q.Read), ""
}

// piece is a part of an answer. Lists go on in the next one.
type piece struct {
	Account *Account          `json:"account,omitempty"`
	Units   []unit.Listed     `json:"units,omitempty"`
	Files   []unit.ListedFile `json:"files,omitempty"`
	Texts   []string          `json:"texts,omitempty"`
	Stands  []unit.Stand      `json:"stands,omitempty"`
	Details *unit.Details     `json:"details,omitempty"`
}

// Bounds of questions.
const (
	mostNames    = 256 // of one question
	mostPatterns = 256
	mostStates   = 64
	mostState    = 64 // bytes of one
)

// plainState is the form of states and types.
var plainState = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z-]*$`) })

// pattern is the form of globs over names.
var pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9:_.\\@*?!^\[\]-]+$`) })

// check holds a question to what can be asked.
func (q question) check() error {
	bad := func(class fault.Class, format string, args ...any) error {
		return fault.New(class, "read", fmt.Sprintf("%.32q", string(q.Read)), fmt.Errorf(format, args...))
	}
	if len(q.Names) > mostNames {
		return bad(fault.Invalid, "it is about %d names, at most %d", len(q.Names), mostNames)
	}
	for _, n := range q.Names {
		if err := unit.CheckName(string(n)); err != nil {
			return bad(fault.Invalid, "%.80q: %w", string(n), err)
		}
	}
	for _, s := range q.States {
		if !isState(string(s)) {
			return bad(fault.Invalid, "%.80q is no state", string(s))
		}
	}
	asked := [3]bool{q.Filter != nil, len(q.Names) > 0, len(q.States) > 0} // filter, names, states
	want := [3]bool{}
	switch q.Read {
	case readUnits, readFiles:
		want = [3]bool{true, false, false}
	case readNamed, readEnablement:
		want = [3]bool{false, true, false}
	case readStands:
		want = [3]bool{false, true, true}
	case readDetails:
		want = [3]bool{false, len(q.Names) == 1, false}
	case readAccount:
	default:
		return bad(fault.Refused, "it is no question that the helper answers")
	}
	switch {
	case asked != want || q.Read == readDetails && len(q.Names) != 1 || q.Read == readStands && len(q.States) != len(q.Names):
		return bad(fault.Invalid, "it is not asked as it should be")
	case q.Filter != nil:
		return checkFilter(*q.Filter, bad)
	}
	return nil
}

func isState(s string) bool { return len(s) <= mostState && plainState().MatchString(s) }

func checkFilter(f unit.Filter, bad func(fault.Class, string, ...any) error) error {
	if len(f.Patterns) > mostPatterns || len(f.States) > mostStates || len(f.Types) > mostStates {
		return bad(fault.Invalid, "it has %d patterns, %d states and %d types; at most %d, %d and %d", len(f.Patterns), len(f.States), len(f.Types), mostPatterns, mostStates, mostStates)
	}
	for _, p := range f.Patterns {
		if len(p) > unit.NameMax || !pattern().MatchString(p) {
			return bad(fault.Invalid, "%.80q is no pattern of names", p)
		}
	}
	for _, list := range [][]string{f.States, f.Types} {
		for _, s := range list {
			if !isState(s) {
				return bad(fault.Invalid, "%.80q is no state or type", s)
			}
		}
	}
	return nil
}

// Bounds of answers: an account's manager says what the account has it say.
const (
	mostPiece  = 128 << 10 // bytes of JSON of the elements of one piece
	mostRead   = 4 << 20   // of all of them
	mostText   = 8 << 10   // of one text
	mostWord   = 256       // of a state
	mostPath   = 4 << 10
	mostListed = 512 // elements of a list of one unit
)

// errMuch is why an answer is not handed on.
var errMuch = errors.New("it says more than is taken in")

// pieces cuts a list into pieces.
func pieces[T any](all []T, put func([]T) *piece) ([]*piece, error) {
	var out []*piece
	begin, size, whole := 0, 0, 0
	for i, one := range all {
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		if whole += len(text); whole > mostRead || len(text) > mostPiece {
			return nil, errMuch
		}
		if size += len(text) + 1; size > mostPiece {
			out = append(out, put(all[begin:i]))
			begin, size = i, len(text)
		}
	}
	return append(out, put(all[begin:])), nil
}

// listed holds a unit in a list to bounds.
func listed(u unit.Listed) unit.Listed {
	u.Description = cut(u.Description, mostText)
	u.Load, u.Active = unit.LoadState(cut(string(u.Load), mostWord)), unit.ActiveState(cut(string(u.Active), mostWord))
	u.Sub, u.Job.Type = cut(u.Sub, mostWord), unit.JobType(cut(string(u.Job.Type), mostWord))
	u.Following = unit.Name(cut(string(u.Following), unit.NameMax))
	return u
}

// detailed holds all of one unit to bounds.
func detailed(d unit.Details) unit.Details {
	for _, text := range []*string{&d.Description, &d.LoadError} {
		*text = cut(*text, mostText)
	}
	for _, word := range []*string{&d.Sub, &d.Enablement, &d.Preset, &d.Invocation, &d.Result, &d.ExitCode} {
		*word = cut(*word, mostWord)
	}
	d.Load, d.Active = unit.LoadState(cut(string(d.Load), mostWord)), unit.ActiveState(cut(string(d.Active), mostWord))
	d.Job.Type = unit.JobType(cut(string(d.Job.Type), mostWord))
	d.Fragment = cut(d.Fragment, mostPath)
	d.Documents, d.DropIns = texts(d.Documents, mostText/8), texts(d.DropIns, mostPath)
	d.Names, d.Triggers, d.TriggeredBy = texts(d.Names, unit.NameMax), texts(d.Triggers, unit.NameMax), texts(d.TriggeredBy, unit.NameMax)
	d.Unmet = d.Unmet[:min(len(d.Unmet), mostListed)]
	for i := range d.Unmet {
		d.Unmet[i].Text = cut(d.Unmet[i].Text, mostText/8)
	}
	return d
}

// texts holds a list to bounds.
func texts[T ~string](all []T, most int) []T {
	all = all[:min(len(all), mostListed)]
	for i := range all {
		all[i] = T(cut(string(all[i]), most))
	}
	return all
}
