// Package subject is the words of the mesh's wire: every subject that stead
// publishes to or listens on, made from validated names and read back.
//
// Nothing else puts a subject together, so a name with a dot or a wildcard in
// it cannot widen what is addressed: names are parsed first, and a function
// that makes a subject is given names that were parsed. What may use a subject
// stands in the permission table of mesh/identity, which takes its patterns
// from here. The package is pure and its values are safe for concurrent use.
//
// The subjects:
//
//	node.v1.NODE.sync, body, report, profile, event    the host asks controllers
//	node.v1.NODE.tools, claim, event                   the runtime asks controllers
//	node.v1.NODE.changed, plan                         controllers tell and ask a node
//	mesh.v1.r.OPERATION, mesh.v1.w.OPERATION           people ask controllers
//	seat.v1.r.NODE.SEAT.VERB, seat.v1.w.…              people ask a node's runtime
package subject
