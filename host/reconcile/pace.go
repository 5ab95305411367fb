package reconcile

import "time"

// pace bounds how many passes a loop makes. What wakes it is in the hands of others:
// a unit that comes and goes all the time, a file that somebody writes again and
// again, a manager of an account's that tells of changes without end. What follows
// from what is done here is never that much.
type pace struct {
	left int
	at   time.Time // until when left is reckoned
}

const (
	passesAtOnce = 100
	passesEach   = 100 * time.Millisecond // apart from there on
)

// next takes in that a pass was made, and returns when the next may be.
func (p *pace) next(now time.Time) time.Time {
	if p.at.IsZero() {
		p.left, p.at = passesAtOnce, now
	}
	if n := int(now.Sub(p.at) / passesEach); n > 0 {
		p.left, p.at = min(p.left+n, passesAtOnce), p.at.Add(time.Duration(n)*passesEach)
	}
	if p.left--; p.left > 0 {
		return now
	}
	return p.at.Add(time.Duration(1-p.left) * passesEach)
}
