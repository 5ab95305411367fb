// Package mesh is one connection to the mesh: it calls, serves, tells and
// listens over NATS, and comes back by itself whatever happens to the server.
//
// It owns the connection (dialing for ever, watching for a peer that went
// silent), the form of a call on the wire (deadline, typed errors) and what
// every handler needs (who calls, limits, deadlines, a defect that costs one
// call). Subjects are made by mesh/subject; who may use which is decided by
// mesh/identity; values that are kept are the work of mesh/bucket.
//
// Use: Connect returns at once and dials in the background; Wait waits for the
// first connection. Call and CallAll ask once, Insist until there is an answer,
// NewService and its Run answer, Publish and Listen pass hints, Follow takes a
// stream of an Endpoint that has one. Notify wakes whoever must look again when a
// connection comes or goes; State says how it stands now.
//
// Nothing is queued while there is no connection: a call fails at once with
// class unavailable, and whoever keeps something right tries again when it is
// woken. A call that was sent and has no answer fails with class timeout, since
// it may have been done. What is insisted on has a name, under which it is asked
// again; an endpoint that has it in hand takes it once, and a handler behind the
// loss of another one learns that it may have been done.
//
// Memory is bounded everywhere: calls that wait and run by each endpoint's
// limits, answers by size, what is received by the subscription's limits, a
// stream by what its caller grants: a window ahead of what was taken, and one
// message.
//
// A stream ends within a second of its caller's going, and is asked for again
// by a caller who is still there, behind the last chunk that was taken: after
// the loss of a connection, at the end of a service, and every 50 minutes, since
// the server lets one call be answered for an hour. Its control subject is made
// by the caller, who thereby never publishes where a node wants it to, and only
// the same user, as the server states it, is heard there.
//
// Concurrency: all methods may be called from any goroutine. Handlers run in
// goroutines of their own; nothing is called under a lock. Errors are
// *fault.Error; those of a handler arrive at the caller with class, operation,
// object, cause and hint.
package mesh
