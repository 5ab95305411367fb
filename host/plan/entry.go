package plan

import "io/fs"

// Kind is what stands at a path.
type Kind string

// The kinds of Entry.
const (
	Absent Kind = "absent"
	File   Kind = "file"
	Link   Kind = "link" // a symbolic link
	Dir    Kind = "dir"
	Other  Kind = "other" // a device, FIFO or socket
)

// Entry is what stands, or shall stand, at one path. It holds no bytes: a
// file's content is known by its digest.
type Entry struct {
	Kind   Kind        `json:"kind"`
	Digest string      `json:"digest,omitempty"` // of a file: sha256 of its bytes, in hex
	Target string      `json:"target,omitempty"` // of a link, verbatim
	Mode   fs.FileMode `json:"mode,omitempty"`   // of a file: permission bits, setuid and the like included
	UID    int         `json:"uid,omitempty"`    // of a file
	GID    int         `json:"gid,omitempty"`    // of a file
}

// Want is an Entry that shall stand at Path, and the bytes for it.
type Want struct {
	Path    string
	Entry   Entry
	Content []byte // of a file
	Why     string // "content", "drop-in", "enabled": what of the declaration asks for it
}
