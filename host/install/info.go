package install

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"stead/host/unit"
)

type mode int

const (
	unknown mode = iota
	regular      // its text is read
	masked
	alias  // a link to another unit of the search path
	linked // a link out of the search path
)

// info is what is known of one unit in a Links call.
type info struct {
	name      unit.Name
	auxiliary bool
	mode      mode
	problem   *Problem // why nothing can be made of it
	found     string   // where its name was found
	path      string   // of the fragment: found, or where a link of its own name leads
	link      string   // of an alias or linked unit: one step
	target    string   // of an alias or linked unit: the end of the chain
	gone      bool     // the chain leads nowhere
	err       error    // why what is there has no text
	body      unit.File

	aliases, wantedBy, requiredBy, upheldBy []string

	linked   bool   // it is brought into the search path by a link of its own
	instance string // DefaultInstance= of a template, expanded
	also     bool   // has an Also=
}

func (in *info) fail(code Code, object, format string, args ...any) {
	in.problem = &Problem{Code: code, Owner: in.name, Object: object, Text: fmt.Sprintf(format, args...), Fatal: true}
}

func (in *info) kind() Kind {
	switch {
	case in.problem != nil && in.problem.Code == IsAlias:
		return Enableable
	case in.problem != nil:
		return Invalid
	case in.mode == masked:
		return Masked
	case in.generated():
		return Generated
	case len(in.aliases)+len(in.wantedBy)+len(in.requiredBy)+len(in.upheldBy) > 0:
		return Enableable
	case in.also:
		return Indirect
	}
	return Static
}

// refusal is why the manager does not enable the unit when it is the one that
// was asked for; nil when it does.
func (in *info) refusal() *Problem {
	switch {
	case in.problem != nil:
		return in.problem
	case in.mode == masked:
		return &Problem{Code: IsMasked, Owner: in.name, Object: in.path, Text: "the unit is masked", Fatal: true}
	case in.generated():
		return &Problem{Code: IsGenerated, Owner: in.name, Object: in.path, Text: "the unit is transient or made by a generator", Fatal: true}
	}
	return nil
}

// generated reports whether the fragment lies in a folder of generators or of
// transient units.
func (in *info) generated() bool {
	switch path.Base(path.Dir(in.path)) {
	case "generator", "generator.early", "generator.late", "transient":
		return true
	}
	return false
}

// read takes in the [Install] section of one file. The units that Also= names
// are in the queue afterwards, also when something later in the file is wrong.
func (c *call) read(in *info, text unit.File) {
	for key, value := range text.Entries("Install") {
		switch key {
		case "Alias":
			if mayAlias(in.name.Type()) { // else the manager skips it
				in.aliases = c.list(in.aliases, value)
			}
		case "WantedBy":
			in.wantedBy = c.list(in.wantedBy, value)
		case "RequiredBy":
			in.requiredBy = c.list(in.requiredBy, value)
		case "UpheldBy":
			if c.is257() {
				in.upheldBy = c.list(in.upheldBy, value)
			}
		case "Also":
			c.readAlso(in, value)
		case "DefaultInstance":
			c.readDefaultInstance(in, value)
		}
		if in.problem != nil {
			return
		}
	}
	if text.Broken != "" {
		in.fail(Broken, in.path, "%s", text.Broken)
	}
}

// list adds a value's words to l; an empty value empties it. Words behind an
// open quote are lost, as with the manager; by the rules of 257 the whole value.
func (c *call) list(l []string, value string) []string {
	if value == "" {
		return nil
	}
	words, err := unit.Words(value)
	if err != nil && c.is257() {
		return l
	}
	return append(l, words...)
}

func (c *call) readAlso(in *info, value string) {
	for _, w := range unit.BareWords(value) {
		name, err := c.expand(in, w)
		if err != nil {
			in.fail(codeOf(err), w, "Also=: %v", err)
			return
		}
		if err := unit.CheckName(name); err != nil {
			in.fail(BadName, w, "Also=: %v", err)
			return
		}
		in.also = true
		c.add(unit.Name(name), !c.is247())
	}
}

func (c *call) readDefaultInstance(in *info, value string) {
	if !in.name.IsTemplate() {
		return
	}
	instance, err := c.expand(in, value)
	if err != nil {
		in.fail(codeOf(err), value, "DefaultInstance=: %v", err)
		return
	}
	if instance != "" {
		if err := unit.CheckInstance(instance); err != nil {
			in.fail(BadInstance, value, "DefaultInstance=: %v", err)
			return
		}
	}
	in.instance = instance
}

var errTooLong = errors.New("with its specifiers expanded it is longer than a unit name can be")

func codeOf(err error) Code {
	if errors.Is(err, errTooLong) {
		return BadName
	}
	return BadSpecifier
}

// expand replaces the specifiers in a word of in's [Install] section. A
// template with a default instance counts as that instance.
func (c *call) expand(in *info, s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	n := in.name
	if in.instance != "" {
		n = n.WithInstance(in.instance)
	}
	unknown := ""
	if c.is247() {
		unknown = later
	}
	out, err := c.Specifiers.expand(s, n, unknown)
	if err == nil && len(out) > unit.NameMax {
		err = errTooLong
	}
	return out, err
}
