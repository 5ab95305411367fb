package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Journal reads the node's journal with journalctl and its arguments, in short-monotonic form unless they say otherwise: inside, or from
// outside by this machine's journalctl while the node is off.
func (n *Node) Journal(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--no-pager", "--quiet", "--output=short-monotonic"}, args...)
	var cmd *exec.Cmd
	if n.PID() != 0 {
		cmd = n.Command(ctx, append([]string{"journalctl"}, args...)...)
	} else {
		cmd = exec.CommandContext(ctx, "journalctl", append(args, "--directory="+n.Disk("/var/log/journal"))...)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("read the journal of lab node %q: %w: %s", n.Name(), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
