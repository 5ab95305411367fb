//go:build race

package ledger

// slower is by how much the race detector may stretch a measured time.
const slower = 10
