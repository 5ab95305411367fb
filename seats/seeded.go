package seats

import (
	"bytes"
	"embed"
	"encoding/json"

	"stead/mesh/subject"
)

// schemas are the JSON schemas of all verbs: SEAT/VERB.arguments.json and
// SEAT/VERB.reply.json.
//
//go:embed node-service-manager/*.json
var schemas embed.FS

// Seeded returns the seats that a controller makes in every mesh, each whole and
// the caller's own, sorted by name.
func Seeded() []Seat {
	return []Seat{{
		Name:     NodeServiceManager,
		Scope:    NodeScope,
		Requires: "service-manager",
		Decision: "0031",
		Meaning:  "asks about the units of a node, and acts on them",
		Verbs: []Verb{
			verb(Disable, subject.Write, "removes the links with which a unit is started at boot"),
			verb(Enable, subject.Write, "makes the links with which a unit is started at boot"),
			follows(verb(Journal, subject.Read, "reads the journal, and follows it")),
			verb(Restart, subject.Write, "restarts units, and waits for systemd's word of how that ended"),
			verb(Start, subject.Write, "starts units, and waits for systemd's word of how that ended"),
			verb(Status, subject.Read, "says all that is known of one unit"),
			verb(Stop, subject.Write, "stops units, and waits for systemd's word of how that ended"),
			verb(Units, subject.Read, "lists units, or unit files"),
		},
	}}
}

func verb(name subject.Verb, class subject.Class, meaning string) Verb {
	return Verb{Name: name, Class: class, Meaning: meaning, Arguments: schema(name, "arguments"), Reply: schema(name, "reply")}
}

func follows(v Verb) Verb {
	v.Follows = true
	return v
}

// schema is one of the embedded files on one line. They are all there, and all
// JSON: the tests hold them against the types of this package.
func schema(name subject.Verb, what string) json.RawMessage {
	text, _ := schemas.ReadFile(string(NodeServiceManager) + "/" + string(name) + "." + what + ".json")
	var line bytes.Buffer
	_ = json.Compact(&line, text)
	return line.Bytes()
}
