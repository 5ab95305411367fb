package admit

import (
	"encoding/json"
	"fmt"
	"strings"

	"stead/host/shape"
	"stead/mesh/wire"
)

const (
	// maxFile is how many bytes of a file's name are quoted.
	maxFile = 255
	// maxWrite is how many bytes one commit may write: what a bucket takes in one
	// commit, less what seals add to it.
	maxWrite = 30 << 20
	// perWrite is what a value is larger than its canonical form and addressing.
	perWrite = 1 << 10
)

// read reads all files of a request: those declarations that are valid, and of
// those of one name the first.
func (j *judge) read(files []wire.File) []*shape.Located {
	size := int64(0)
	for _, f := range files {
		size += int64(len(f.Text))
	}
	if size > shape.MaxBatch {
		j.problems.add(shape.CheckNames(nil, size)...)
		return nil // not read at all
	}
	var docs []*shape.Located
	var batch []*shape.Service
	for i, f := range files {
		name := fileName(f.Name)
		if _, known := j.problems.files[name]; !known {
			j.problems.files[name] = i
		}
		located, bad := shape.Locate(name, []byte(f.Text))
		j.problems.add(bad...)
		for _, l := range located {
			docs, batch = append(docs, &l), append(batch, l.Declaration)
		}
		if len(docs) > shape.MaxDeclarations || len(j.problems.list) > shape.MaxProblems {
			break // the rest would not be listed
		}
	}
	j.problems.add(shape.CheckNames(batch, size)...)
	if len(docs) == 0 && len(j.problems.list) == 0 {
		j.problems.add(nothing(files))
	}
	first := map[string]bool{}
	kept := docs[:0]
	for _, d := range docs {
		if !first[d.Name] {
			first[d.Name] = true
			kept = append(kept, d)
		}
	}
	return kept[:min(len(kept), shape.MaxDeclarations)]
}

func nothing(files []wire.File) shape.Problem {
	p := shape.Problem{Rule: "no file of declarations was given", Cure: "name a file or folder, or - for standard input"}
	if len(files) > 0 {
		p = shape.Problem{Rule: fmt.Sprintf("there is no declaration in the %d files", len(files)), Cure: "write one (stead explain service); to take one away: stead withdraw NAME"}
	}
	if len(files) == 1 {
		p.File, p.Rule = fileName(files[0].Name), "there is no declaration in it"
	}
	return p
}

// fileName is the name of a file as it is quoted: short and in one line.
func fileName(name string) string {
	switch {
	case name == "":
		return "-"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r < 0xa0 }):
		name = fmt.Sprintf("%q", name)
	}
	if len(name) > maxFile {
		name = "…" + strings.ToValidUTF8(name[len(name)-maxFile+len("…"):], "")
	}
	return name
}

// sizes judges how large the value of c's declaration is.
func (j *judge) sizes(c *change) {
	if n := len(c.is.Canonical); n > wire.MaxBody {
		at, cure := "dropins", "control characters take six bytes each: put such data into a file of its own that the unit reads"
		if c.is.Service.File != nil {
			at, cure = "content", "line ends, quotes and backslashes take two bytes each, control characters six: declare it in two files, or bring it to the node in a package"
		}
		j.problem(c, at, fmt.Sprintf("in canonical form the declaration has %d bytes, which is more than the %d that a node takes", n, wire.MaxBody), cure)
	}
}

// total judges how much all changes write together.
func (j *judge) total() {
	size := 0
	for _, c := range j.changes {
		if c.writes() {
			address, _ := json.Marshal(c.is.Address) // texts always encode
			size += len(c.is.Canonical) + len(address) + perWrite
		}
	}
	if size > maxWrite {
		j.problems.add(shape.Problem{Rule: fmt.Sprintf("what it writes has %d bytes; one commit takes at most %d", size, maxWrite), Cure: "apply it in two parts"})
	}
}
