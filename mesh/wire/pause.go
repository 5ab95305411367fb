package wire

import "stead/host/report"

// Pause is a unit that is left as it is for a while.
type Pause = report.Pause

// Bounds of a pause; see host/report.
const (
	MinPause       = report.MinPause
	MaxPause       = report.MaxPause
	MaxPauseReason = report.MaxPauseReason
	MaxPauses      = report.MaxPauses
)

// PauseRequest pauses one unit of one node, anew when it is paused already, or ends
// its pause.
type PauseRequest struct {
	Wire  int    `json:"wire"`
	Node  string `json:"node"`
	Unit  string `json:"unit"`            // ".service" is added to a bare name
	Scope string `json:"scope,omitempty"` // "" is system
	// Seconds is for how long, from when it is asked for: MinPause to MaxPause.
	Seconds int64  `json:"seconds,omitempty"`
	Reason  string `json:"reason,omitempty"` // one line, at most MaxPauseReason bytes
	// End ends the pause of the unit, whoever asked for it.
	End bool `json:"end,omitempty"`
}
