package follow

import (
	"slices"
	"strings"
	"time"

	"stead/host/accept"
	"stead/host/fault"
	"stead/mesh/wire"
)

// Source is where the declarations in force come from, and how it stands with the
// mesh at this moment. Until a first index is accepted it has no epoch, and all
// that is in force is kept.
type Source struct {
	wire.Source
	// Silence says why no controller answered the last question; "" when one did.
	// It may be asked again at any moment.
	Silence string `json:"silence,omitempty"`
	// Answered is when a controller last answered; zero for never in this run.
	Answered time.Time `json:"answered,omitzero"`
	// Fetching is how many declarations of a newer index are still to be fetched,
	// when that was last tried: the set in force is the one of before.
	Fetching int `json:"fetching,omitempty"`
}

// Source returns how it stands. The caller does not change its lists.
func (f *Follower) Source() Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.source
}

// Changed has a token when Source says something new since the last one was
// taken; that all is as it was is nothing new. It is for one receiver, and never
// closed.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// tell changes the source.
func (f *Follower) tell(change func(s *Source)) {
	f.mu.Lock()
	before := f.source
	change(&f.source)
	now := f.source
	f.mu.Unlock()
	if before.Mesh != now.Mesh || before.Epoch != now.Epoch || before.Revision != now.Revision || before.Same != now.Same || before.Trouble != now.Trouble ||
		before.Silence != now.Silence || !slices.Equal(before.Kept, now.Kept) {
		token(f.changed)
	}
}

// stand makes the source say what is held under t.
func (f *Follower) stand(t accept.Trust) {
	kept, held := f.holding.Kept(t), f.holding.Under(t)
	f.tell(func(s *Source) {
		was := s.Source
		s.Mesh, s.Epoch, s.Revision, s.Kept = t.Mesh, "", 0, kept
		if held != nil {
			s.Epoch, s.Revision = held.Epoch, held.Revision
		}
		if was.Mesh != s.Mesh || was.Epoch != s.Epoch {
			s.Same = 0
		}
	})
}

// maxTrouble bounds the text of a trouble, in bytes: it travels with every
// question.
const maxTrouble = 1000

// text is an error for a person, with its cure.
func text(err error) string {
	s := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		s += "; " + hint
	}
	if len(s) > maxTrouble {
		s = strings.ToValidUTF8(s[:maxTrouble], "") + "…"
	}
	return s
}
