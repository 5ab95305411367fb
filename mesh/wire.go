package mesh

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"stead/host/fault"
)

// nameHeader carries the name of the answering service.
const nameHeader = "Stead-Name"

const (
	maxCause   = 64 << 10 // bytes of a cause on the wire
	maxWords   = 1 << 10  // bytes of its other texts
	maxHeading = 256      // bytes of the line in the header
)

// wireFault is an error as it stands in the body of an answer. Its class is in
// the header, where every NATS client looks for it.
type wireFault struct {
	Op     string `json:"op,omitempty"`
	Object string `json:"object,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// answerFault puts err into an answer, in the form of a NATS service's errors.
func answerFault(m *nats.Msg, err error) {
	w := wireFault{Cause: err.Error()}
	var f *fault.Error
	if errors.As(err, &f) {
		w = wireFault{Op: cut(f.Op, maxWords), Object: cut(f.Object, maxWords), Hint: cut(f.Hint, maxWords)}
		if f.Cause != nil {
			w.Cause = f.Cause.Error()
		}
	}
	w.Cause = cut(w.Cause, maxCause)
	m.Header.Set(micro.ErrorCodeHeader, string(fault.ClassOf(err)))
	m.Header.Set(micro.ErrorHeader, heading(err.Error()))
	// A struct of texts has no form that cannot be encoded.
	m.Data, _ = json.Marshal(w)
}

// heading is text as it may stand in a header: one line, not empty.
func heading(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, cut(text, maxHeading))
	if strings.TrimSpace(text) == "" {
		return "unknown"
	}
	return text
}

// cut shortens s to at most n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// faultIn returns the error that an answer carries, nil when it carries none. A
// class that this version does not know is failed.
func faultIn(m *nats.Msg) error {
	code := m.Header.Get(micro.ErrorCodeHeader)
	if code == "" {
		return nil
	}
	class := fault.Class(code)
	switch class {
	case fault.Invalid, fault.NotFound, fault.Refused, fault.Conflict, fault.Denied, fault.Unsupported,
		fault.Unavailable, fault.Timeout, fault.Canceled, fault.Failed, fault.Internal:
	default:
		class = fault.Failed
	}
	var w wireFault
	if err := json.Unmarshal(m.Data, &w); err != nil || w == (wireFault{}) {
		w.Cause = m.Header.Get(micro.ErrorHeader)
	}
	var cause error
	if w.Cause != "" {
		cause = errors.New(w.Cause)
	}
	return fault.New(class, w.Op, w.Object, cause).WithHint(w.Hint)
}
