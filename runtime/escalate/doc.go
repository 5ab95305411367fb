// Package escalate is how the runtime of a node, which has no rights of its own,
// acts on units: a helper that runs as root does a closed list of acts on unit
// names for it, and for nobody else.
//
// Server is the helper. It listens on one socket, and serves one peer: the
// process that is the main process of stead-runtime.service at this moment, as
// PID 1 says and not as the peer does, with the account of that unit. That is
// asked when the peer connects and again before every act, unless PID 1 said nothing
// new of that unit since. Each message must have been sent by that very process: a
// child that inherited the connection, a process of the same account and root itself
// are refused. What it is asked it judges anew: the act is one of the list, the unit
// is named and never a path, units that stead stands on are not stopped, also not by
// way of another unit. Each act is logged.
//
// Client is the runtime's end: it keeps one connection, and any number of calls
// go over it at once. A call is known by an id of the caller's making, and is
// noted in a file below /run before anything is done. So it is done once, however
// often it is sent: a helper that is started anew goes on where the last one was
// killed, and a runtime that is started anew is told what became of the calls of
// the one before (ClientOptions.Late). Of a call that people ask again (WithCall) the
// id is made of theirs, the act and the unit: whichever runtime it comes to, an act
// of it is done once, and its end told again. What is not known, and may have
// been forgotten, is answered with timeout.
//
// The socket carries lines of JSON. The helper begins: {"hello":1,"nonce":N}, or
// {"refused":WHY}. The client answers {"nonce":N} and from then on sends
// {"id","act","unit","nowait","for","call","since"}, {"id","about":CALL} (which acts
// of it were begun), {"adopt":true} (tell me what became of calls that nobody was
// told the end of) and {"told":[ID]}. The helper sends {"id","job"} when a job is
// queued and {"id","act","unit","for","began","end"} at the end.
// Nothing on either side waits for the other but a write that does not get
// through, for five seconds; then the connection is closed.
//
// Bounds: lines of 16 KiB to the helper and 256 KiB from it, 512 calls under way
// (further ones are answered "busy"), 1,024 calls whose end nobody was told and
// 2,048 whose end somebody was, the newest.
//
// All methods may be called from any goroutine. Errors are *fault.Error. Invalid,
// Refused: the act was not done, and will not be. Unavailable: it was not done.
// Timeout: it may have been done, or goes on. All others are systemd's answer.
package escalate
