//go:build race

package disk

// raced is whether the race detector stretches all times.
const raced = true
