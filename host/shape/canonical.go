package shape

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// canonical is the canonical form; its fields stand in the order of their keys.
// A field that a later vocabulary adds is left out while it has its default, so
// that a declaration keeps its digest over an upgrade.
type canonical struct {
	Content    *string           `json:"content,omitempty"`
	DropIns    map[string]string `json:"dropins,omitempty"`
	Enabled    *bool             `json:"enabled,omitempty"`
	Ensure     Ensure            `json:"ensure,omitempty"`
	Masked     *bool             `json:"masked,omitempty"`
	Name       string            `json:"name"`
	OnChange   OnChange          `json:"on_change,omitempty"`
	OnWithdraw OnWithdraw        `json:"on_withdraw"`
	Scope      unit.Scope        `json:"scope"`
	Shape      string            `json:"shape"`
	Timeout    string            `json:"timeout"`            // as time.Duration writes it
	Triggers   []string          `json:"triggers,omitempty"` // sorted
	Unit       unit.Name         `json:"unit"`
}

// Canonical returns the one form in bytes of what s declares: JSON with sorted
// keys and defaults filled in, addressing and origin left out. Two declarations
// have the same form exactly when they ask for the same.
func (s *Service) Canonical() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	c := canonical{Content: s.Content, DropIns: s.DropIns, Enabled: s.Enabled, Ensure: s.Ensure, Masked: s.Masked, Name: s.Name, OnChange: s.OnChange,
		OnWithdraw: s.OnWithdraw, Scope: s.Scope, Shape: ServiceShape, Timeout: s.Timeout.String(), Triggers: slices.Sorted(slices.Values(s.Triggers)), Unit: s.Unit}
	if err := e.Encode(c); err != nil {
		panic(err) // texts, maps of texts and truth values always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Digest returns the sha256 of the canonical form, in hex.
func (s *Service) Digest() string {
	sum := sha256.Sum256(s.Canonical())
	return hex.EncodeToString(sum[:])
}

// FromCanonical reads what Canonical wrote. It applies every rule of Parse, but
// that a module's declaration (OfModule) has its name, and refuses bytes that are
// not exactly a canonical form of this version with a *fault.Error of class
// invalid. The result has no addressing and no origin.
func FromCanonical(data []byte) (*Service, error) {
	bad := func(err error) (*Service, error) {
		return nil, fault.New(fault.Invalid, "read canonical form", "", err)
	}
	var c canonical
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return bad(err)
	}
	timeout, err := time.ParseDuration(c.Timeout)
	if err != nil {
		return bad(err)
	}
	s := &Service{Name: c.Name, Scope: c.Scope, Unit: c.Unit, Content: c.Content, DropIns: c.DropIns, Ensure: c.Ensure,
		Enabled: c.Enabled, Masked: c.Masked, OnChange: c.OnChange, Triggers: c.Triggers, Timeout: timeout, OnWithdraw: c.OnWithdraw}
	var problems Problems
	judge{s, func(string) bool { return false }, func(path string, line int, rule, cure string) {
		problems = append(problems, Problem{"canonical form", line, path, rule, cure})
	}, true}.all()
	switch {
	case len(problems) > 0:
		return bad(problems)
	case !bytes.Equal(s.Canonical(), data):
		return bad(errors.New("the bytes are not in canonical form"))
	}
	return s, nil
}

// ScopeOf returns the scope that a canonical form names, also one of another version
// that FromCanonical refuses: the system's, unless it says that it is the user's.
func ScopeOf(data []byte) unit.Scope {
	var c struct {
		Scope unit.Scope `json:"scope"`
	}
	if json.Unmarshal(data, &c) == nil && c.Scope == unit.User {
		return unit.User
	}
	return unit.System
}

// Aliases returns the names that the declared files give the unit besides its
// own, by Alias= in [Install]: sorted, without double ones. Names that depend on
// facts of the machine, such as %H, are not among them.
func (s *Service) Aliases() []unit.Name {
	if !s.mentions("Alias") {
		return nil // most do not, and reading a large file takes its time
	}
	var merged unit.File
	if s.Content != nil {
		merged = unit.ParseFile([]byte(*s.Content))
	}
	for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
		merged = merged.Merge(unit.ParseFile([]byte(s.DropIns[name])))
	}
	var aliases []unit.Name
	for _, w := range merged.List("Install", "Alias") {
		if n, ok := expand(s.Unit, w); ok && n != s.Unit {
			aliases = append(aliases, n)
		}
	}
	slices.Sort(aliases)
	return slices.Compact(aliases)
}

// mentions reports whether word stands anywhere in the declared files.
func (s *Service) mentions(word string) bool {
	if s.Content != nil && strings.Contains(*s.Content, word) {
		return true
	}
	for _, text := range s.DropIns {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
