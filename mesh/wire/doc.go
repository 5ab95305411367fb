// Package wire is the words that hosts, people and controllers exchange over
// the mesh: each request and each answer, as JSON.
//
// A message goes to the subject of its topic or operation (mesh/subject) and
// comes back as the answer of a call (mesh). Version is the version of all of
// them together: a profile carries those that a host speaks, and whoever gets a
// message of another version refuses it by name. A later version only adds
// fields; a field that is not known is passed over, one that is missing is zero.
//
// No message is larger than a megabyte. What can be larger comes in pages (Get,
// Events), in parts (Upload), or cut with a count of what was left out (plans).
//
// The package is words only; its values are safe for concurrent use as long as
// nobody changes them.
package wire

// Version is the version of the messages in this package.
const Version = 1

// Bounds of what one message carries, in bytes of payload, so that its JSON
// stays below the megabyte that the mesh carries.
const (
	// MaxPart is the data of one part of an upload.
	MaxPart = 512 << 10
	// MaxPage is what one page of an answer may hold.
	MaxPage = 640 << 10
)
