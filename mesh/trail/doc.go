// Package trail is the audit stream: what happened in the mesh, in the order in
// which controllers stored it, bounded in size and age.
//
// It owns the form of the stream, that nothing is stored twice when it is sent
// again, and how it is read: in pages, forwards from a place, or the newest ones,
// narrowed by node, declaration, unit and time. What is an event, and who may
// read which, is decided elsewhere. It is for controllers, who alone reach
// JetStream.
//
// Use: Open makes the stream or finds it right; Append stores, Page reads, and
// waits for what comes next when it is asked to. A place in the stream is the
// sequence of an event; it only rises. The oldest events make room for new ones,
// so a reader that was away for long finds a gap, and no error.
//
// Memory is bounded by the size of a page. All methods are safe for concurrent
// use. Errors are *fault.Error: unavailable when nothing was done, timeout when
// some of it may have been done and all of it may be sent again.
package trail
