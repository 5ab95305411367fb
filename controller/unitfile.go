package controller

import _ "embed" // the unit file

// unitFile is stead-controller.service.
//
//go:embed stead-controller.service
var unitFile string

// UnitFile returns the unit file of the controller, stead-controller.service.
func UnitFile() string { return unitFile }
