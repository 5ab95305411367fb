// Package account knows a node's operator account and what stands between the
// host and its service manager.
//
// A Keeper is of one login. It looks the login up, sees that its home is there,
// lets it linger where a user unit must run, starts its manager where that does
// not run, and says of every moment whether user units can be applied: it is the
// gate of the user scope's loop (Obstacle, Changed), the guard of the connection
// to the account's manager (UID, Peer, Dialed, Redial), and says which life of
// that manager it is (Life). What it can know it asks PID 1, logind, passwd(5) and
// the kernel, never the account: root opens nothing below the home and nothing
// below the account's runtime folder here.
//
// What was written for an account is remembered with its name, uid and home
// (plan.Account), before anything is. When the node's setting names another login,
// or the login has another home, a Keeper says account-changed: the host gives back
// what the account before has, by a second Keeper that is Former and a loop with
// an empty set, and calls Freed when nothing of it is left. A Former whose login or
// home is gone, or whose uid is another's, says so in State.Gone: what was written
// there is left, and its records go.
//
// Lingering that stead turned on is noted before it does, and undone when nothing
// of stead's is there any more, nobody is logged in, and nothing but systemd's own
// runs in that manager: undoing it ends all that does.
//
// New starts nothing; Run blocks. One goroutine, that of Run, looks and acts; all
// other methods may be called from any goroutine and return at once, but for Peer,
// which asks PID 1. A look waits for PID 1, logind and the home folder, each for a
// bounded time, and never for the account's manager.
//
// Errors end in State and in the log, once, and heal by themselves: PID 1's signals
// and changes of passwd wake it, and every 5 s while there is an obstacle it looks
// again.
package account
