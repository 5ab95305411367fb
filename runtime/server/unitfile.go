package server

import _ "embed" // the unit file

// unitFile is stead-runtime.service.
//
//go:embed stead-runtime.service
var unitFile string

// UnitFile returns the unit file of the runtime, stead-runtime.service.
func UnitFile() string { return unitFile }
