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
	Reload     DaemonReload      `json:"daemon_reload,omitempty"`
	DropIns    map[string]string `json:"dropins,omitempty"`
	Enabled    *bool             `json:"enabled,omitempty"`
	Ensure     Ensure            `json:"ensure,omitempty"`
	Masked     *bool             `json:"masked,omitempty"`
	Name       string            `json:"name"`
	OnChange   OnChange          `json:"on_change,omitempty"`
	OnWithdraw OnWithdraw        `json:"on_withdraw"`
	Provider   Provider          `json:"provider,omitempty"`
	Scope      unit.Scope        `json:"scope"`
	Sensitive  bool              `json:"sensitive,omitempty"`
	Shape      string            `json:"shape"`
	Timeout    string            `json:"timeout"`            // as time.Duration writes it
	Triggers   []string          `json:"triggers,omitempty"` // sorted
	Unit       unit.Name         `json:"unit"`
}

// canonicalFile is the canonical form of a declared file.
type canonicalFile struct {
	Content    *string    `json:"content"`
	Group      string     `json:"group,omitempty"`
	Mode       string     `json:"mode"` // four octal digits
	Name       string     `json:"name"` // without FilePrefix
	OnWithdraw OnWithdraw `json:"on_withdraw"`
	Owner      string     `json:"owner,omitempty"`
	Path       string     `json:"path"`
	Scope      unit.Scope `json:"scope"`
	Sensitive  bool       `json:"sensitive,omitempty"`
	Shape      string     `json:"shape"`
}

// Canonical returns the one form in bytes of what s declares: JSON with sorted
// keys and defaults filled in, addressing and origin left out. Two declarations
// have the same form exactly when they ask for the same.
func (s *Declaration) Canonical() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var form any = canonical{Content: s.Content, Reload: s.DaemonReload, DropIns: s.DropIns, Enabled: s.Enabled, Ensure: s.Ensure, Masked: s.Masked, Name: s.Name,
		OnChange: s.OnChange, OnWithdraw: s.OnWithdraw, Provider: s.Provider, Scope: s.Scope, Sensitive: s.Sensitive, Shape: ServiceShape,
		Timeout: s.Timeout.String(), Triggers: slices.Sorted(slices.Values(s.Triggers)), Unit: s.Unit}
	if f := s.File; f != nil {
		form = canonicalFile{Content: s.Content, Group: f.Group, Mode: f.mode(), Name: s.label(), OnWithdraw: s.OnWithdraw, Owner: f.Owner, Path: f.Path,
			Scope: s.Scope, Sensitive: s.Sensitive, Shape: FileShape}
	}
	if err := e.Encode(form); err != nil {
		panic(err) // texts, maps of texts and truth values always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Digest returns the sha256 of the canonical form, in hex.
func (s *Declaration) Digest() string {
	sum := sha256.Sum256(s.Canonical())
	return hex.EncodeToString(sum[:])
}

// FromCanonical reads what Canonical wrote. It applies every rule of Parse, but
// that a module's declaration (OfModule) has its name, and refuses bytes that are
// not exactly a canonical form of this version with a *fault.Error of class
// invalid. The result has no addressing and no origin.
func FromCanonical(data []byte) (*Declaration, error) {
	bad := func(err error) (*Declaration, error) {
		return nil, fault.New(fault.Invalid, "read canonical form", "", err)
	}
	read := serviceForm
	if shapeIn(data) == FileShape {
		read = fileForm
	}
	s, err := read(data)
	if err != nil {
		return bad(err)
	}
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

// strictly reads data into form, which has every field of it.
func strictly(data []byte, form any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(form)
}

func serviceForm(data []byte) (*Declaration, error) {
	var c canonical
	if err := strictly(data, &c); err != nil {
		return nil, err
	}
	timeout, err := time.ParseDuration(c.Timeout)
	if err != nil {
		return nil, err
	}
	s := &Declaration{Name: c.Name, Scope: c.Scope, Unit: c.Unit, Content: c.Content, DropIns: c.DropIns, Ensure: c.Ensure,
		Enabled: c.Enabled, Masked: c.Masked, OnChange: c.OnChange, Triggers: c.Triggers, DaemonReload: c.Reload, Provider: c.Provider,
		Timeout: timeout, Sensitive: c.Sensitive, OnWithdraw: c.OnWithdraw}
	if s.DaemonReload == auto || s.Provider == auto {
		return nil, errors.New("the bytes are not in canonical form")
	}
	return s, nil
}

func fileForm(data []byte) (*Declaration, error) {
	var c canonicalFile
	if err := strictly(data, &c); err != nil {
		return nil, err
	}
	mode, rule := parseMode(c.Mode)
	if rule != "" {
		return nil, errors.New(rule)
	}
	return &Declaration{Name: FilePrefix + c.Name, Scope: c.Scope, Content: c.Content, Sensitive: c.Sensitive, OnWithdraw: c.OnWithdraw,
		File: &File{Path: c.Path, Mode: mode, Owner: c.Owner, Group: c.Group}}, nil
}

// shapeIn returns the shape that a canonical form names, also one of another version.
func shapeIn(data []byte) string {
	var c struct {
		Shape string `json:"shape"`
	}
	_ = json.Unmarshal(data, &c) // "" is no shape
	return c.Shape
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
func (s *Declaration) Aliases() []unit.Name {
	if s.File != nil || !s.mentions("Alias") {
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
func (s *Declaration) mentions(word string) bool {
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

// IsSensitive reports whether a canonical form says that its texts are shown to
// nobody, also one of another version that FromCanonical refuses. What is no
// canonical form at all is sensitive.
func IsSensitive(data []byte) bool {
	var c struct {
		Sensitive *bool `json:"sensitive"`
	}
	return json.Unmarshal(data, &c) != nil || c.Sensitive != nil && *c.Sensitive
}
