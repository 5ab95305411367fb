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
// An act is of one scope. In user scope it is the manager of the node's operator account
// that acts: of the account that the host has noted in a file of root's, which is read
// at each call and held against passwd(5). No caller names one. Its manager is reached
// over its private socket when somebody asks, once PID 1 has said that it is what
// listens there (Guard), and the connection is dropped when nobody uses it, or when the
// account or the life of its manager is another one. User scope is also read here,
// since nobody but root is let in (Client.User); the system scope never is. What an
// account's manager says is bounded, and what hangs there keeps nothing of the system
// scope waiting.
//
// Client is the runtime's end: it keeps one connection, and any number of calls
// go over it at once. A call is known by an id of the caller's making, and is
// noted in a file below /run before anything is done. So it is done once, however
// often it is sent: a helper that is started anew goes on where the last one was
// killed, and a runtime that is started anew is told what became of the calls of
// the one before (ClientOptions.Late). Of a call that people ask again (WithCall) the
// id is made of theirs, the act, the unit and its scope: whichever runtime it comes to, an act
// of it is done once, and its end told again. What is not known, and may have
// been forgotten, is answered with timeout.
//
// The socket carries lines of JSON. The helper begins: {"hello":1,"nonce":N}, with
// "users":true when it serves user scope, or {"refused":WHY}. The client answers
// {"nonce":N} and from then on sends {"id","act","unit","scope","nowait","for","call",
// "since"}, {"id","scope":"user","read":WHAT} with what that is about, {"id","about":CALL}
// (which acts of it were begun), {"adopt":true} (tell me what became of calls that
// nobody was told the end of) and {"told":[ID]}. The helper sends {"id","job"} when a
// job is queued, {"id","act","unit","scope","for","began","end"} at the end, and the
// answer to a question in lines of {"id","piece","last"}.
// Nothing on either side waits for the other but a write that does not get
// through, for five seconds; then the connection is closed.
//
// Bounds: lines of 256 KiB, 512 calls under way in the system scope and 128 in user
// scope (further ones are answered "busy"), 256 questions, of which 8 are asked at one
// time, answers of 4 MiB, 1,024 calls whose end nobody was told and 2,048 whose end
// somebody was, the newest.
//
// All methods may be called from any goroutine. Errors are *fault.Error. Invalid,
// Refused: the act was not done, and will not be. Unavailable: it was not done.
// Timeout: it may have been done, or goes on. Failed, of user scope: also that its
// manager cannot be asked, and nothing was done. All others are systemd's answer.
package escalate
