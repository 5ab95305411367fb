// Package state is mesh state as one controller has it: a copy in memory that
// follows the buckets, and the only way to change them.
//
// It owns the form of what is stored (sealed values under keys, bound to their
// place and to each other), the check that what is read is what controllers
// wrote, the epoch with the marker that lies outside of the store, and the
// buckets of profiles, reports and claims. What may be declared is decided by
// controller/admit, what a node gets by controller/assign; both work on Now.
//
// Use: Open reads everything and refuses a store that is not the one that the
// marker knows; Run follows it until its context ends. Now is the newest copy,
// Decide and Commit change it. Any number of controllers do so side by side:
// every commit expects the bucket exactly as the decision saw it.
//
// A State that was handed out is never changed. All methods are safe for
// concurrent use, and none calls back under a lock. Errors are *fault.Error:
// conflict when somebody else changed the state first, failed when the state is
// unsound (Now().Unsound, with the cure as its hint), unavailable when nothing
// was done, timeout when it may have been done.
package state
