package folder

import "time"

// still decides when a burst of changes is over: after quiet without a change,
// and max after its first one at the latest. Its zero value with the two times
// set has seen no change.
type still struct {
	quiet, max  time.Duration
	first, last time.Time
}

// note takes a change in.
func (s *still) note(now time.Time) {
	if s.first.IsZero() {
		s.first = now
	}
	s.last = now
}

// due returns when the burst is over; false when there is none.
func (s *still) due() (time.Time, bool) {
	if s.first.IsZero() {
		return time.Time{}, false
	}
	calm, latest := s.last.Add(s.quiet), s.first.Add(s.max)
	if calm.After(latest) {
		calm = latest
	}
	return calm, true
}

// reset forgets the burst.
func (s *still) reset() { s.first, s.last = time.Time{}, time.Time{} }
