// Package systemd speaks to systemd. A Manager is root's, over the private socket
// of one manager of one scope: it observes units in bulk, queues jobs, makes and
// removes links and passes on what changed. A Reader is anybody's, over the
// system bus: it lists units and unit files and tells all of one unit.
//
// The package owns the connections (dialing, the first call that gets lost,
// deadlines, redialing for ever) and a Manager's cache of properties, which stays
// right because the manager's signals invalidate it. It decides nothing, keeps no
// intent, reads no file but presets, and never blocks on a job. It is the only
// importer of godbus, and no type of godbus leaves it.
//
// Use: New, then Run in a goroutine of your own; Wake says that something
// happened, Drain says where to look, Observe looks, Enqueue and Reload act.
// NewReader, Run, and ask.
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
// Seen on systemd 247, 252 and 257, which all hold the contract of
// host/systemd/systemdtest but for a dbus service without a bus name, whose load
// kills the manager of 247:
//
//   - Every private connection receives all signals without Subscribe. A client
//     in another pid namespace than the manager is refused as unprivileged.
//   - A unit that nothing refers to is loose: it is loaded by each call that
//     names it and unloaded before the next message is read, with a UnitNew and a
//     UnitRemoved signal. So these two never wake anybody. It has no stale
//     definition (what is on disk is what it will start with) and no past, and
//     each property of it that is read costs 0.7 ms. When a condition skips its
//     start, nobody can ask any more which one it was.
//   - Each load and unload also sends PropertiesChanged for all that the unit
//     depends on (basic.target, system.slice, …), with nothing changed in it. Such
//     signals, and those that carry only a StatusText, wake nobody either.
//   - A reload announces every unit anew, all between Reloading(true) and
//     Reloading(false), and its reply comes after that.
//   - A reply can be ahead of the signal of what it shows, and is never behind a
//     signal that was sent before it.
//
// On 2 cores with systemd 252 a look at 1,000 units that run is one call of 7 to
// 10 ms when nothing happened; nine properties of each took 0.3 s. Of 1,000 loose
// units, two properties of each take 2.7 s, seventeen 10 s, one GetAll 4.4 s; a
// look when nothing happened is two calls and 0.25 to 0.6 s, the time to load them.
//
// Over the bus, all 250 properties of a service are one call of 0.6 ms; the 26 of
// interest take 1.5 ms one by one, and 30 ms of a loose unit, which is loaded for
// each. A list of 370 units is one call of 1.3 ms. A list of as many unit files
// holds the manager up for 0.7 s, in which it does nothing else; patterns make it
// less. The enablement of one unit that is loaded is 0.1 ms, and 2 ms for the
// first who asks after a reload.
package systemd
