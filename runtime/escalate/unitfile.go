package escalate

import _ "embed" // the unit files

// The unit files, as they lie beside this one.
var (
	//go:embed stead-escalate.socket
	socketUnit string
	//go:embed stead-escalate.service
	serviceUnit string
)

// SocketUnit returns the unit file stead-escalate.socket.
func SocketUnit() string { return socketUnit }

// ServiceUnit returns the unit file stead-escalate.service. It starts
// "/usr/local/bin/stead escalate" with the listener as its first descriptor.
func ServiceUnit() string { return serviceUnit }
