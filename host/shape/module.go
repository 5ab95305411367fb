package shape

import (
	"fmt"
	"strings"

	"stead/host/fault"
)

// OfModule returns the module that declares what is called name, MODULE.NAME; ""
// for every other name.
func OfModule(name string) string {
	module, rest, _ := strings.Cut(name, ".")
	if !dnsLabel(module) || !dnsLabel(rest) {
		return ""
	}
	return module
}

// ForModule returns what s declares as a module's own: under the name
// MODULE.NAME, for the same unit, without addressing and origin. Invalid: module
// is no DNS label, or s belongs to one already.
func (s *Service) ForModule(module string) (*Service, error) {
	if !dnsLabel(module) || !dnsLabel(s.Name) {
		return nil, fault.New(fault.Invalid, "declare", s.Name, fmt.Errorf("%.80q is no module that could own it", module))
	}
	own := *s
	own.Name = module + "." + s.Name
	own.Nodes, own.Labels, own.All, own.Origin = nil, nil, false, Origin{}
	return &own, nil
}
