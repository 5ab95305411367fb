// Package systemd is the module of that name: it serves the eight verbs of
// seats.NodeServiceManager on one node, as tools over what systemd, the journal
// and the root helper answer.
//
// It owns how a question or an act of a person becomes calls of those, and what
// of their answers is told: which units a name or a glob means, which of them are
// protected, which declaration a unit is of and whether an act contradicts it. It
// remembers nothing of units: each answer is what systemd says at that moment.
// What it acts on goes through the root helper, which judges again.
//
// Use: New with the interfaces, Tools for the dispatcher. A unit is of the
// declaration of its scope that names it, by any of the names that systemd has for it.
// User scope is that of the node's operator account, and is read through the root
// helper too. What reads is about both scopes when none is said: one that cannot be
// read is named with its reason, and a user manager that hangs is not waited for. What
// acts is about the system scope then.
//
// All methods may be called from any goroutine. Errors are *fault.Error.
// NotFound: no such unit, with the closest names as a hint; nothing was done.
// Refused: a protected unit, or a glob that means more units than was agreed to;
// nothing was done. Invalid, Unsupported: the arguments. Unavailable: systemd or
// the root helper could not be asked; nothing was done. Timeout: the job goes on,
// or it is not known whether it was done. All others are systemd's answer.
package systemd
