// Package arch holds the rules of the tree as tests, and the grammar of the
// command blocks in its documents.
//
// A rule reads the whole tree as text and syntax, never as running code, and
// answers with findings that name file, line and cure. Every rule is shown able
// to fail by the counter-examples below testdata/counter. The tables that people
// edit when the tree grows (which package may import what, which file may start
// a program, which file may be long) are each in one file, as data.
//
// Blocks and Documents are exported so that the end-to-end tests can run the
// commands that README.md and docs show; nothing else of this package is meant
// for others. Nothing here keeps state, and all of it may be called from several
// goroutines at once.
package arch
