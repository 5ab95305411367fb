// Package become starts processes that are an account.
//
// Root must not fork a process that is somebody else before it runs a program of
// its own: in Go such a process shares the memory of who started it, and who
// started it stands still until that program runs. Any process of the account may
// stop it just then, and root hangs. So root starts its own program as root
// (Login.Command, which a process started so hands to Parse), and that becomes
// the account by itself (Login.Become). It never runs another program from there
// on, so nobody of the account can trace it.
//
// Login.Run does run another. Processes of the account can trace that one and make
// it do what they like, where root's own limits hold and not the account's: it
// can start no further process, has little memory, and is no better off than
// others when memory is short.
//
// It owns no state. Errors are *fault.Error.
package become
