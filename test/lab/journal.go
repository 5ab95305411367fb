package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Journal reads the node's journal with this machine's journalctl and its arguments, in short-monotonic form unless they say otherwise. The
// node may be off. What the node's journald has not written to its files yet is flushed first.
func (n *Node) Journal(ctx context.Context, args ...string) (string, error) {
	if n.PID() != 0 {
		_, _ = n.Exec(ctx, "journalctl", "--sync")
	}
	cmd := exec.CommandContext(ctx, "journalctl", append([]string{"--directory", n.Disk("/var/log/journal"), "--no-pager", "--quiet",
		"--output=short-monotonic"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("read the journal of lab node %q: %w: %s", n.Name(), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
