package host

import (
	"crypto/sha256"
	"encoding/hex"

	"stead/mesh/wire"
)

// profile is what controllers are told of this node.
func (m *member) profile() wire.Profile {
	h := m.h
	p := wire.Profile{Wire: wire.Version, Version: h.o.Version, Systemd: h.systemdVersion(), OS: h.machine.Facts.OS, Kernel: h.machine.Facts.Kernel,
		Host: hostname(), Started: h.started, Wires: []int{wire.Version},
		Vocabulary: wire.Vocabulary(), Capabilities: []string{wire.PausesUnits}, Account: h.account()}
	p.Machine, p.Boot = m.machine()
	if p.Systemd != "" {
		p.Capabilities = append(p.Capabilities, wire.ServiceManager)
	}
	return p
}

// machine tells this machine, and this boot of it, from every other one.
func (m *member) machine() (id, boot string) {
	return hashed(m.h.machine.Facts.ID, m.trust().Mesh), m.h.machine.Boot
}

// hashed makes of the machine's id one that says nothing outside the mesh, as
// machine-id(5) asks for.
func hashed(id, mesh string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("stead " + mesh + " " + id))
	return hex.EncodeToString(sum[:16])
}
