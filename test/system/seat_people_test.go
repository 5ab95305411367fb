package system

import (
	"testing"

	"stead/test/lab"
)

// TestTheSeatIsForWhomItMayServe has an operator and a viewer ask two nodes for
// every verb, right and wrong, over the mesh, and looks at what the audit has of it.
func TestTheSeatIsForWhomItMayServe(t *testing.T) {
	if lab.AmInside() { // on the controller's node, beside the credentials of both
		alice, vera := personOf(t, "/root/alice.json"), personOf(t, "/root/vera.json")
		t.Run("viewer", func(t *testing.T) { viewing(t, alice, vera) })
		t.Run("audit", func(t *testing.T) { recorded(t, alice) })
		return
	}
	r := startSeats(t, "ws1", "ws2")
	r.ctl.Run(t, "stead", "credentials", "viewer", "vera", "--out", "/root/vera.json")
	r.ctl.Run(t, "stead", "context", "add", "/root/vera.json")
	r.done("context", "use", "alice")
	r.input()
	r.ctl.RunTest(t, "/proc/self/exe", "-test.run", "^TestTheSeatIsForWhomItMayServe$")
	r.recordedLate()
}
