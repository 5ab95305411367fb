package unit

// NoUID is Process.UID of a unit that runs as nobody in particular.
const NoUID = ^uint32(0)

// Process is the main process of a service, as its manager states it.
type Process struct {
	PID        uint32 // 0: there is none
	UID        uint32 // of the account that the unit runs as; NoUID when it does not say one
	Invocation string // InvocationID in hex of this run
}

// Mark tells apart what a manager said of a unit at two moments: while it is the
// same, the manager said nothing new of it. The zero Mark is none: whatever it says
// now is not heard.
type Mark struct{ connection, words uint64 }

// MarkOf is the mark behind so many words of a connection, which is not 0.
func MarkOf(connection, words uint64) Mark { return Mark{connection, words} }

// Ties are how a unit stands, by itself and to others, as its manager has it in
// memory. The lists are sorted.
type Ties struct {
	ID         Name
	Load       LoadState
	Active     ActiveState // "": there is no such unit, and nothing else is said
	Sub        string
	Invocation string // InvocationID in hex; "" for none

	Names       []Name // all of its own
	TriggeredBy []Name // units that start it
	StopsWith   []Name // units that are stopped, and restarted, with it
	Conflicts   []Name // units that are stopped when it is started
}
