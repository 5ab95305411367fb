package fault

import "errors"

// Told is an error on its way from one process of stead to another: what Error
// says, in words.
type Told struct {
	Class  Class  `json:"class"`
	Op     string `json:"op,omitempty"`
	Object string `json:"object,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// Tell returns what there is to say of err, nil for nil.
func Tell(err error) *Told {
	if err == nil {
		return nil
	}
	t := &Told{Class: ClassOf(err), Cause: err.Error()}
	var known *Error
	if errors.As(err, &known) {
		t.Op, t.Object, t.Hint, t.Cause = known.Op, known.Object, known.Hint, ""
		if known.Cause != nil {
			t.Cause = known.Cause.Error()
		}
	}
	return t
}

// Err returns the error that was told, nil for nil.
func (t *Told) Err() error {
	if t == nil {
		return nil
	}
	var cause error
	if t.Cause != "" {
		cause = errors.New(t.Cause)
	}
	return New(t.Class, t.Op, t.Object, cause).WithHint(t.Hint)
}
