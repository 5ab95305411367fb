package host

import (
	"stead/host/account"
	"stead/mesh/wire"
)

// settle takes over what the mesh says of this node's operator account.
func (h *Host) settle(name, linger string) {
	h.mu.Lock()
	u := h.users
	h.mu.Unlock()
	if u != nil {
		u.settle(name, account.Linger(linger))
	}
}

// accountChanged says that the account stands otherwise than before.
func (h *Host) accountChanged() {
	h.mu.Lock()
	m := h.member
	h.mu.Unlock()
	if m != nil {
		m.box.ProfileChanged()
	}
}

// tell tells an operator what was done for the account.
func (h *Host) tell(text string) {
	h.log.Info("account", "text", text)
	h.mu.Lock()
	m := h.member
	h.mu.Unlock()
	if m != nil {
		m.box.Note("account", text)
	}
}

// nodeName is this node's name in the mesh, the machine's where it is in none.
func (h *Host) nodeName() string {
	h.mu.Lock()
	m := h.member
	h.mu.Unlock()
	if m != nil {
		return m.node()
	}
	return hostname()
}

// account says how the node's operator account stands; nil for none.
func (h *Host) account() *wire.Account {
	h.mu.Lock()
	u := h.users
	h.mu.Unlock()
	if u == nil {
		return nil
	}
	return u.account()
}

// userPoint is Options.Point for the user scope, whose boundaries are named for it;
// nil for none.
func (h *Host) userPoint() func(string) {
	if h.o.Point == nil {
		return nil
	}
	return func(name string) { h.o.Point("user " + name) }
}
