package modules

import (
	"stead/mesh/subject"
	"stead/seats"
)

// Systemd is the name of the module that serves seats.NodeServiceManager.
const Systemd = "systemd"

// Catalogue returns the manifests of the modules that are built in, each whole
// and the caller's own, sorted by name.
func Catalogue() []Manifest {
	var all []Manifest
	for _, s := range seats.Seeded() {
		if s.Name == seats.NodeServiceManager {
			all = append(all, systemd(s))
		}
	}
	return all
}

// systemd brings a tool for each verb of its seat, and no other yet.
func systemd(s seats.Seat) Manifest {
	m := Manifest{
		Name:     Systemd,
		Version:  1,
		Meaning:  "asks and acts on units through systemd",
		Requires: s.Requires,
		Claims:   []subject.Seat{s.Name},
	}
	for _, v := range s.Verbs {
		m.Tools = append(m.Tools, Tool{Name: v.Name, Class: v.Class, Meaning: v.Meaning, Arguments: v.Arguments, Reply: v.Reply, Follows: v.Follows})
	}
	return m
}
