// Package inner is run in a lab node by the tests of package lab, which choose by -test.run.
package inner

import (
	"os"
	"testing"
)

func TestPasses(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Log("--- FAIL: TestPrinted (0.00s)") })
	print("no newline here")
}

func TestFails(t *testing.T) { t.Error("on purpose") }

func TestSkips(t *testing.T) { t.Skip("on purpose") }

func TestExits(*testing.T) { os.Exit(3) }

func TestSystemd(t *testing.T) {
	comm, err := os.ReadFile("/proc/1/comm")
	if err != nil || string(comm) != "systemd\n" {
		t.Fatalf("PID 1 is %q, %v", comm, err)
	}
}
