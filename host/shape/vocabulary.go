package shape

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Shape is one kind of declaration in the vocabulary.
type Shape struct {
	Name    string  `json:"name"`
	Version int     `json:"version"` // rises with every change of its fields
	Meaning string  `json:"meaning"` // one sentence
	Fields  []Field `json:"fields"`  // in the order in which they are explained
}

// Field is one field of a shape.
type Field struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default"` // "" when the field is required
	Bound   string `json:"bound"`   // the values that are allowed
	Meaning string `json:"meaning"` // one sentence
	Rule    string `json:"rule"`    // one sentence: what is refused, or what else holds
}

// The shapes of this vocabulary, and their versions.
const (
	ServiceShape   = "service"
	ServiceVersion = 3
	FileShape      = "file"
	FileVersion    = 1
)

// Vocabulary returns every shape that this version knows. The caller owns the
// result.
func Vocabulary() []Shape {
	var all []Shape
	for _, sh := range shapes() {
		shown := sh.Shape
		for _, f := range sh.fields {
			shown.Fields = append(shown.Fields, f.Field)
		}
		all = append(all, shown)
	}
	return all
}

// known is a shape and what reads it.
type known struct {
	Shape
	fields []field
}

func shapes() []known {
	return []known{
		{Shape{Name: ServiceShape, Version: ServiceVersion, Meaning: "One systemd unit and what is to be so of it: its files, whether it runs, whether it starts at boot."}, serviceFields()},
		{Shape{Name: FileShape, Version: FileVersion, Meaning: "One file that is to stand at a path, byte for byte, with its mode and owner."}, declaredFileFields()},
	}
}

// shapeOf returns the shape of that name; false when there is none.
func shapeOf(name string) (known, bool) {
	for _, s := range shapes() {
		if s.Name == name {
			return s, true
		}
	}
	return known{}, false
}

// field joins what is explained with what reads it.
type field struct {
	Field
	read func(*reading, *yaml.Node)
}

func serviceFields() []field {
	return slices.Concat(namingFields(), unitFields(), addressFields(), []field{
		{Field{"scope", "text", "system", "system, user", "Says which manager the unit is of: the system's, or that of the node's operator account.",
			"A node without an operator account refuses scope user."}, (*reading).scope},
	}, fileFields(), activityFields(), courseFields())
}

// namingFields are those of every shape.
func namingFields() []field {
	return []field{
		{Field{"shape", "text", "", "service, file", "Says which shape this document declares.", "Only shapes of this vocabulary are read."}, (*reading).shape},
		{Field{"name", "text", "", "a DNS label: 1 to 63 of a-z, 0-9 and -, no - at either end", "Names the declaration; it is its identity.",
			"It is unique in a batch among those of its shape; a name with a dot, MODULE.NAME, is kept for modules."}, (*reading).name},
	}
}

func unitFields() []field {
	return []field{
		{Field{"unit", "text", "NAME.service", "a unit name of systemd, at most 255 bytes (253 with dropins)", "Names the unit.",
			"\".service\" is added to a bare name; scope and device units, paths and protected units are refused, and a unit has one declaration in its scope."}, (*reading).unit},
	}
}

// addressFields say which nodes get a declaration, of any shape.
func addressFields() []field {
	return []field{
		{Field{"nodes", "list of text", "absent", "1 to 4096 node names, each a DNS label", "Addresses the nodes of these names.",
			"At most one of nodes, labels and all is declared."}, (*reading).nodes},
		{Field{"labels", "map of text to text", "absent", "1 to 64 labels; keys and values of 1 to 63 letters, digits, -, _ and .", "Addresses the nodes that carry all these labels.",
			"At most one of nodes, labels and all is declared."}, (*reading).labels},
		{Field{"all", "true or false", "false", "true, false", "Addresses every node.", "At most one of nodes, labels and all is declared."}, (*reading).everywhere},
	}
}

func fileFields() []field {
	return []field{
		{Field{"content", "text", "absent: the unit must exist already", "1 byte to 64 KiB", "The unit file, byte for byte.",
			"NUL, CR and a byte order mark are refused, and so is a backslash at its very end."}, (*reading).content},
		{Field{"dropins", "map of file name to text", "absent: none", "names of a-z, 0-9 and - that end in .conf; 256 KiB in all", "Drop-in files for the unit, byte for byte.",
			"What holds for content holds for each of them."}, (*reading).dropins},
	}
}

func activityFields() []field {
	return []field{
		{Field{"ensure", "text", "absent: activity is left alone", "running, stopped, restarted", "Says whether the unit is to run; restarted is running, and restarted once for each generation.",
			"A bare template (x@.service) has no activity, and a masked unit does not run."}, (*reading).ensure},
		{Field{"state", "text", "absent", "what ensure takes", "Is the old name of ensure.", "Only one of the two is declared."}, (*reading).state},
		{Field{"enabled", "true or false", "absent: links are left alone", "true, false", "Says whether the links that its [Install] section asks for are to stand.",
			"Nothing else than true and false is a truth value: yes, on and quoted words are refused, and so is true for a masked unit."}, (*reading).enabled},
		{Field{"masked", "true or false", "absent: a mask is left alone", "true, false", "Says whether the unit is to be masked, so that nothing starts it.",
			"true stops the unit and keeps its content aside until it is unmasked; ensure: running and restarted and enabled: true contradict it."}, (*reading).masked},
	}
}

func courseFields() []field {
	return []field{
		{Field{"on_change", "text", "absent: restart where the unit can, else none", "restart, reload, reload_or_restart, none", "Says what a running unit does when its files or triggers change.",
			"reload never becomes a restart: a unit that cannot reload fails; a unit that does not run is not started by a change."}, (*reading).onChange},
		{Field{"triggers", "list of text", "absent: none", "1 to 64 absolute paths of at most 4095 bytes, or file:NAME, each once", "Names files and folders, or declared files, whose change refreshes the unit.",
			"Paths are written out, without //, . and .. in them; a folder counts with the files directly in it, a declared file is written first."}, (*reading).triggers},
		{Field{"daemon_reload", "text", "auto", "auto, never", "Says whether the manager is reloaded for the unit when its files have changed.",
			"With never the unit waits until somebody else reloads the manager, which every other unit may bring; what its withdrawal gives back is loaded at once."}, (*reading).daemonReload},
		{Field{"timeout", "duration", "2m", "1s to 24h", "The time within which the unit is to become so.",
			"Whole numbers with d, h, m (or min), s or ms, such as 90s or 1h30m; a bare number is refused."}, (*reading).timeout},
		{Field{"provider", "text", "auto", "auto, systemd", "Says what applies the unit.", "Any other is refused by name: other backends cannot be registered yet."}, (*reading).provider},
		{Field{"on_withdraw", "text", "restore", "restore, release", "Says what becomes of the unit when its declaration is withdrawn.",
			"restore puts back whatever stood there before; release touches nothing."}, (*reading).onWithdraw},
		{Field{"sensitive", "true or false", "false", "true, false", "Says that nobody is shown the unit's files.",
			"Reports, diffs, get and logs of stead show digests in their place. Who may read the node's files can read them there, a unit file is 0644; status and journal show what the unit, and systemd of it, wrote to the journal."}, (*reading).sensitive},
	}
}

// declaredFileFields are those of the file shape.
func declaredFileFields() []field {
	return slices.Concat(namingFields(), []field{
		{Field{"path", "text", "", "an absolute path of at most 4095 bytes; in scope user ~/ and what follows the account's home", "Says where the file stands.",
			"It is written out, without //, . and .. in it; folders of units and of stead are refused, and a path has one declaration on a node."}, (*reading).path},
	}, addressFields(), []field{
		{Field{"scope", "text", "system", "system, user", "Says whose the file is: the system's, or the operator account's, below its home.",
			"A node without an operator account refuses scope user."}, (*reading).scope},
		{Field{"content", "text", "", "at most 512 KiB; empty is an empty file", "The file, byte for byte.", "It is text in UTF-8. What stood at its path is kept; folders, devices, FIFOs and sockets are never replaced."}, (*reading).content},
		{Field{"mode", "octal digits", "0644, or 0600 when sensitive", "0000 to 0777, four digits; in scope user 0400 and more, so that the account reads it", "Says who may do what with the file.", "Four digits stand for themselves, with or without quotes; setuid, setgid and sticky bits are refused."}, (*reading).mode},
		{Field{"owner", "text", "root; the account in scope user", "the name of a login on the node", "Says whose file it is.", "A login that the node does not have is refused there; in scope user it is not declared."}, (*reading).owner},
		{Field{"group", "text", "the owner's first group", "the name of a group on the node", "Says which group the file has.", "A group that the node does not have is refused there; in scope user it is not declared."}, (*reading).group},
		{Field{"sensitive", "true or false", "false", "true, false", "Says that nobody is shown the file's content.",
			"Reports, diffs, get and logs show its digest; who may read the file on the node can read it there."}, (*reading).sensitive},
		{Field{"on_withdraw", "text", "restore", "restore, release", "Says what becomes of the file when its declaration is withdrawn.",
			"restore puts back whatever stood there before; release touches nothing."}, (*reading).onWithdraw},
	})
}
