package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// InstallNATS puts the nats command, the command line of NATS, into the node, as /usr/local/bin/nats. It is what make builds; where it was not built the
// test fails.
func (n *Node) InstallNATS(t testing.TB) {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the tree: %v", err)
	}
	command := filepath.Join(filepath.Dir(string(mod)), "build", "bin", "nats")
	if _, err := os.Stat(command); err != nil {
		t.Fatalf("the nats command is not built, make need-nats builds it: %v", err)
	}
	if err := n.CopyIn(command, "/usr/local/bin/nats"); err != nil {
		t.Fatal(err)
	}
}
