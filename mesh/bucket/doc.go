// Package bucket keeps typed values under keys in the mesh: written only as
// they were expected to be, several at once or none, and followed without a gap.
//
// It is for controllers, who alone reach JetStream. It owns the form of a stream
// (every flag said, none left to a default), the compare-and-set of every write,
// deletion as a value that stays, and a watcher that rereads on every doubt.
// What the values mean, who may write them and what fits together is decided by
// the controller.
//
// Use: Open makes the stream or finds it right; Get, Put, Update, Create, Delete
// and Commit read and write; NewWatcher and its Run keep a copy of the whole
// bucket in memory.
//
// A revision is the sequence of the stream: it rises with every write to any
// key, and is the number that a compare-and-set wants. Nothing is ever purged: a
// key that was purged comes back after the server was killed (nats-server issue
// 8505), a tombstone stays one. So a bucket has a bound of bytes and refuses
// when it is full.
//
// Concurrency: all methods may be called from any goroutine. Errors are
// *fault.Error: conflict when a key is not at the revision that was expected,
// not_found when it was never written, invalid for keys and values that break a
// bound, refused when the bucket is full, unavailable when nothing was done for
// want of a connection, timeout when it may have been done.
package bucket
