package lab

import "time"

// Await looks whether cond holds until it does, and reports whether that came within bound. Between two looks it rests four times as long as the
// look before took, and 5 ms to half a second: a test that asks without rest takes the processors from what it waits for.
func Await(bound time.Duration, cond func() bool) bool {
	for end := time.Now().Add(bound); ; {
		from := time.Now()
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(min(max(4*time.Since(from), 5*time.Millisecond), 500*time.Millisecond))
	}
}
