package host

import _ "embed" // the unit file

// unitFile is stead-host.service.
//
//go:embed stead-host.service
var unitFile string

// UnitFile returns the unit file of the host, stead-host.service.
func UnitFile() string { return unitFile }
