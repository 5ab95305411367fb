// Package shape is the vocabulary of what can be declared, and the strict
// reader of declarations.
//
// Vocabulary lists every shape and field of this version with its type, default,
// bound and meaning; the reader is driven by the same table, so that what is
// explained is what is read. Parse takes one file of YAML documents and returns
// the valid declarations and every problem of the others; Check looks across a
// batch. Canonical, Digest and FromCanonical give a declaration one form of
// bytes, which decides whether two declarations say the same.
//
// Nothing is mended and nothing is coerced: a declaration means what stands
// there, or it is refused with file, line, path, rule and cure. Any input costs
// bounded memory: a document is measured before it is parsed, and YAML anchors,
// aliases, merge keys, directives and foreign tags are refused. All functions
// are pure and may be called from any goroutine.
package shape
