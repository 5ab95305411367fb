// Package tool dispatches a call to the tool that serves it: it holds the
// arguments to the tool's schema, bounds how long a call takes and how many run,
// survives a tool that panics, and tells the audit.
//
// A Dispatcher serves what it was last given by Serve, and nothing else. It
// decides nothing about who may call: the server of the mesh did that before the
// call came. It knows no mesh either: whoever serves the subjects hands it
// requests, and a stream where one was asked for.
//
// Audit is where calls are told: Record returns at once, and Run puts what was
// recorded into a durable spool and sends it from there. No reply waits for it.
//
// All methods may be called from any goroutine. Errors are *fault.Error. Invalid:
// the arguments break the schema, each problem with its path and rule.
// NotFound: nothing of that name is served. Unavailable: all places are taken,
// and nothing was done. Timeout: the tool was not done by the deadline, and it may
// still be. Internal: the tool panicked. All others are the tool's own.
package tool
