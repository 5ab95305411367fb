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

// ServiceShape is the name of the one shape of this vocabulary, ServiceVersion
// its version.
const (
	ServiceShape   = "service"
	ServiceVersion = 2
)

// Vocabulary returns every shape that this version knows. The caller owns the
// result.
func Vocabulary() []Shape {
	s := Shape{Name: ServiceShape, Version: ServiceVersion, Meaning: "One systemd unit and what is to be so of it: its files, whether it runs, whether it starts at boot."}
	for _, f := range serviceFields() {
		s.Fields = append(s.Fields, f.Field)
	}
	return []Shape{s}
}

// field joins what is explained with what reads it.
type field struct {
	Field
	read func(*reading, *yaml.Node)
}

func serviceFields() []field {
	return slices.Concat(identityFields(), fileFields(), activityFields(), courseFields())
}

func identityFields() []field {
	return []field{
		{Field{"shape", "text", "", "service", "Says which shape this document declares.", "Only shapes of this vocabulary are read."}, (*reading).shape},
		{Field{"name", "text", "", "a DNS label: 1 to 63 of a-z, 0-9 and -, no - at either end", "Names the declaration; it is its identity.",
			"It is unique in a batch; a name with a dot, MODULE.NAME, is kept for modules."}, (*reading).name},
		{Field{"unit", "text", "NAME.service", "a unit name of systemd, at most 255 bytes (253 with dropins)", "Names the unit.",
			"\".service\" is added to a bare name; scope and device units, paths and protected units are refused, and a unit has one declaration in its scope."}, (*reading).unit},
		{Field{"nodes", "list of text", "absent", "1 to 4096 node names, each a DNS label", "Addresses the nodes of these names.",
			"At most one of nodes, labels and all is declared."}, (*reading).nodes},
		{Field{"labels", "map of text to text", "absent", "1 to 64 labels; keys and values of 1 to 63 letters, digits, -, _ and .", "Addresses the nodes that carry all these labels.",
			"At most one of nodes, labels and all is declared."}, (*reading).labels},
		{Field{"all", "true or false", "false", "true, false", "Addresses every node.", "At most one of nodes, labels and all is declared."}, (*reading).everywhere},
		{Field{"scope", "text", "system", "system, user", "Says which manager the unit is of: the system's, or that of the node's operator account.",
			"A node without an operator account refuses scope user."}, (*reading).scope},
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
		{Field{"triggers", "list of text", "absent: none", "1 to 64 absolute paths of at most 4095 bytes, each once", "Names files and folders whose change refreshes the unit.",
			"Paths are written out, without //, . and .. in them; a folder counts with the files directly in it."}, (*reading).triggers},
		{Field{"timeout", "duration", "2m", "1s to 24h", "The time within which the unit is to become so.",
			"Whole numbers with d, h, m (or min), s or ms, such as 90s or 1h30m; a bare number is refused."}, (*reading).timeout},
		{Field{"on_withdraw", "text", "restore", "restore, release", "Says what becomes of the unit when its declaration is withdrawn.",
			"restore puts back whatever stood there before; release touches nothing."}, (*reading).onWithdraw},
	}
}

// later returns what to do without a field that only later versions of the
// service shape have, and whether name is one.
func later(name string) (cure string, ok bool) {
	if !slices.Contains(laterFields(), name) {
		return "", false
	}
	switch name {
	case "daemon_reload":
		return "leave it out: what changed is loaded when it has to be", true
	case "provider":
		return "leave it out: every unit is applied by systemd", true
	}
	return "leave it out, and keep secrets in a file of their own that the unit reads", true
}

func laterFields() []string {
	return []string{"daemon_reload", "provider", "sensitive"}
}
