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

// Change is one act on the disk: Entry shall stand at Path.
type Change struct {
	Path    string
	Entry   Entry
	Content []byte // of a file
	// Keep asks for a copy of what stands there now, since nobody else has one.
	Keep bool
}

// Applied is what became of a batch of changes.
type Applied struct {
	Errs []error           // one for each change, in order; nil where it was done
	Made []string          // folders that had to be made, parents first
	Kept map[string]string // path → where the copy of what stood there is
}
