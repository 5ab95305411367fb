// Package delegate lets root read and write below an account's home without ever
// doing so itself: a child process that is the account, with its uid, gid and
// groups, does it. No link, mount or file of the account's making leads root
// anywhere, since root is not there.
//
// Delegate is the parent's end. It keeps one child, made of the program's own
// file (stead host delegate), and gives a loop what host/disk gives it: Look,
// Apply and the rest, and the watching of folders. Serve is the child, which holds
// a disk.Disk and a disk.Watcher.
//
// The child is root's program, and becomes the account by itself (host/become): no
// process of the account can trace it, or have root wait in starting it. They can
// end, stop and hold it, and take its limits from it: then it is killed and
// replaced with growing delay. Of children that a file system holds, so that they
// cannot even be killed, there are two at most; no other is started then, and every
// declaration says so.
//
// The child is believed as far as the account is: what it says decides about the
// account's own files and nothing else. It has no secrets, no privileges and no
// descriptor but its two pipes. Everything it says is bounded. What shall stand in
// a file comes from the declarations that the parent holds, never from the child;
// bytes that it reports as found must have the digest that it reports for them, or
// it could ask for bytes of somebody else's out of the ledger. One that breaks the
// protocol is killed and replaced too.
//
// Messages go over the pipes in frames: two lengths of four bytes, a JSON document
// and raw bytes. Both ends are the same program, so there is no version.
//
// All methods may be called from any goroutine; calls follow one another. Errors
// are *fault.Error: those of host/disk, Unavailable while there is no child,
// Timeout where one did not answer.
package delegate
