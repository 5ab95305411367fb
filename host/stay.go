package host

import (
	"encoding/json"
	"path/filepath"
	"time"

	"stead/mesh/replace"
	"stead/mesh/wire"
)

// stay is a tenant, and its residence where it has one.
type stay struct {
	name      string
	tenant    *Tenant
	residence *residence
	end       func() // of the tenant
	leave     func() // of the residence
	emptied   time.Time
}

func (s *stay) changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.tenant.Keeper.Changed()
}

func (s *stay) published() <-chan struct{} {
	if s == nil || s.residence == nil {
		return nil
	}
	return s.residence.loop.Published()
}

// tell passes on that the keeper has something new.
func (s *stay) tell() {
	if s != nil && s.residence != nil {
		s.residence.gate.tell()
	}
}

// vacate ends the residence.
func (s *stay) vacate() {
	if s != nil && s.residence != nil {
		s.leave()
		s.residence = nil
	}
}

// close ends residence and tenant. What they turned on and started stays so.
func (s *stay) close() {
	if s != nil {
		s.vacate()
		s.end()
	}
}

// standing says how the account of s does; nil for none.
func standing(s *stay) *wire.Account {
	if s == nil || s.name == "" {
		return nil
	}
	st := s.tenant.Keeper.State()
	a := &wire.Account{Name: s.name, Lingers: st.Lingers, State: wire.AccountReady}
	if st.Identity.UID > 0 {
		a.UID = uint32(st.Identity.UID) //nolint:gosec // it was one in passwd
	}
	if st.Obstacle != nil {
		a.State, a.Text = string(st.Obstacle.Reason), st.Obstacle.Text
	}
	return a
}

// account says how the account does; nil for none.
func (u *users) account() *wire.Account {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stands
}

// AccountFile is where a host notes, below its state folder, whose user scope it is:
// for what reads and acts as root beside it, also while it is down.
const AccountFile = "account.json"

// post writes it. What cannot be written is written when something changes again.
func (u *users) post(a *wire.Account) {
	if a == nil {
		a = &wire.Account{}
	}
	text, err := json.Marshal(wire.Account{Name: a.Name, UID: a.UID})
	if err == nil {
		err = replace.File(filepath.Join(u.h.o.State, AccountFile), text, 0o600)
	}
	if err != nil {
		u.h.log.Warn("whose user scope it is cannot be noted, and its units cannot be called", "error", err)
	}
}
