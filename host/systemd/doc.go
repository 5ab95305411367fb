// Package systemd speaks to one systemd manager of one scope over its private
// socket: it observes units in bulk, queues jobs and passes on what changed.
//
// It owns the connection (dialing, the first call that gets lost, deadlines,
// redialing for ever) and a cache of properties that stays right because the
// manager's signals invalidate it. It decides nothing, keeps no intent, reads
// no file and never blocks on a job. It is the only importer of godbus, and no
// type of godbus leaves it.
//
// Use: New, then Run in a goroutine of your own; Wake says that something
// happened, Drain says where to look, Observe looks, Enqueue and Reload act.
//
// Concurrency: every method may be called from any goroutine. Signals are taken
// in by the goroutine that reads the socket, in the order in which the manager
// sent them and in order with replies, so a job's end is in Drain even when it
// came before the caller has seen the job's id. No lock is held during a call.
//
// Errors are *fault.Error. Unavailable: there is no connection and nothing was
// done. Timeout: no answer, and for a job or reload it may have been done.
// Canceled: the caller's context ended. All other classes are the manager's
// answer, with its own words as the cause.
//
// Seen on systemd 252: every private connection receives all signals without
// Subscribe. Units that are not referenced by anything are loaded by each call
// that names them and unloaded right after it, with a UnitNew and a UnitRemoved
// signal each time, so these two never wake anybody. A reload announces every
// unit anew between Reloading(true) and Reloading(false).
package systemd
