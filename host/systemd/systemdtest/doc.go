// Package systemdtest holds what a manager of units must do, as cases that run
// on any manager, and a fake that does it without systemd.
//
// Contract is the whole suite. It runs on the Fake always, and on host/systemd
// in front of a real systemd, so that the fake cannot drift from it: what is
// claimed of systemd in a case was seen on systemd 252.
//
// The Fake is a small service manager over a folder of unit files. It is for
// the tests of those who use a manager: under testing/synctest its time is the
// bubble's.
package systemdtest
