package report

import (
	"time"

	"stead/host/unit"
)

// Bounds of a pause.
const (
	MinPause = time.Minute
	MaxPause = 7 * 24 * time.Hour
	// MaxPauseReason is how many bytes of a reason there are.
	MaxPauseReason = 200
	// MaxPauses is how many pauses a node holds at one time.
	MaxPauses = 256
)

// Pause leaves one unit of a node as it is until a moment: it is not put right, and
// nothing that is declared of it, or withdrawn, is done before.
type Pause struct {
	Unit  unit.Name  `json:"unit"` // as it is declared
	Scope unit.Scope `json:"scope"`
	Until time.Time  `json:"until"`
	// Seconds is for how long it was asked. No host holds it longer than that, from
	// when it heard of it, whatever its clock says.
	Seconds     int64     `json:"seconds"`
	Declaration string    `json:"declaration"` // that the unit was of
	By          string    `json:"by"`          // who asked for it: "operator alice"
	At          time.Time `json:"at"`
	Reason      string    `json:"reason,omitempty"`
}

// Over reports whether it has ended by the clock that says now.
func (p Pause) Over(now time.Time) bool { return !now.Before(p.Until) }

// Length is for how long it was asked.
func (p Pause) Length() time.Duration { return time.Duration(p.Seconds) * time.Second }

// Same reports whether p and o are one pause.
func (p Pause) Same(o Pause) bool {
	return p.Unit == o.Unit && p.Scope == o.Scope && p.Until.Equal(o.Until) && p.Seconds == o.Seconds &&
		p.Declaration == o.Declaration && p.By == o.By && p.At.Equal(o.At) && p.Reason == o.Reason
}

// String says until when, by whom and why: "until 2026-12-01 16:30 UTC by operator
// alice: the disk is changed".
func (p Pause) String() string {
	text := "until " + p.Until.UTC().Format("2006-01-02 15:04 UTC") + " by " + p.By
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
