package shape

import (
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
)

// OfModule returns the module that declares what is called name, MODULE.NAME, or
// file:MODULE.NAME; "" for every other name.
func OfModule(name string) string {
	module, rest, _ := strings.Cut(strings.TrimPrefix(name, FilePrefix), ".")
	if !dnsLabel(module) || !dnsLabel(rest) {
		return ""
	}
	return module
}

// ForModule returns what s declares as a module's own: under the name
// MODULE.NAME, for the same unit or path, without addressing and origin; triggers
// that cite declared files cite the module's own. Invalid: module
// is no DNS label, or s belongs to one already.
func (s *Declaration) ForModule(module string) (*Declaration, error) {
	if !dnsLabel(module) || !dnsLabel(s.label()) {
		return nil, fault.New(fault.Invalid, "declare", s.Name, fmt.Errorf("%.80q is no module that could own it", module))
	}
	own := *s
	own.Name = ofModule(module, s.Name)
	own.Triggers = slices.Clone(s.Triggers)
	for i, t := range own.Triggers {
		if name, is := Cited(t); is && OfModule(name) == "" {
			own.Triggers[i] = ofModule(module, name)
		}
	}
	slices.Sort(own.Triggers)
	own.Nodes, own.Labels, own.All, own.Origin = nil, nil, false, Origin{}
	return &own, nil
}

// ofModule is the name under which a module declares what it calls name.
func ofModule(module, name string) string {
	if label, is := strings.CutPrefix(name, FilePrefix); is {
		return FilePrefix + module + "." + label
	}
	return module + "." + name
}
