package report

// Reasons that are of declared files.
const (
	Writing   Reason = "writing" // of Waiting: it is being written
	BadTarget Reason = "target"  // of Refused: what stands at its path, or on the way there, is not replaced or followed
	NoLogin   Reason = "login"   // of Refused: the node has no such owner or group
)
