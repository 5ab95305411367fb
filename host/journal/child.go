package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"stead/host/fault"
)

// maxStderr is how much of what journalctl complains about is kept, in bytes.
const maxStderr = 4 << 10

// child is one running journalctl.
type child struct {
	cmd    *exec.Cmd
	out    io.ReadCloser
	stderr limited
	end    context.CancelFunc
	ctx    context.Context // of the caller
	grep   bool            // entries are matched against a pattern
}

// start starts journalctl, which writes JSON lines until it is done, closed, or
// ctx ends.
func start(ctx context.Context, args ...string) (*child, error) {
	c := &child{ctx: ctx, stderr: limited{left: maxStderr}}
	c.grep = slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, grepFlag) })
	ctx, c.end = context.WithCancel(ctx)
	c.cmd = exec.CommandContext(ctx, "journalctl", append([]string{"--output=json", "--no-pager", "--quiet"}, args...)...)
	c.cmd.WaitDelay = time.Second
	c.cmd.Env = environment()
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.out, err = out, c.cmd.Start()
	}
	if err != nil {
		c.end()
		return nil, fault.New(fault.Failed, "start", "journalctl", err)
	}
	return c, nil
}

// environment is all that journalctl needs. Its messages are matched, so they are
// not to be translated or coloured; times without a zone are in the machine's.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "SYSTEMD_LOG_COLOR=0"}
}

// wait returns how journalctl ended, once everything that it wrote was read.
func (c *child) wait() error {
	err := c.cmd.Wait()
	c.end()
	switch {
	case c.ctx.Err() != nil:
		return fault.New(ended(c.ctx), "read", "journal", context.Cause(c.ctx))
	case err != nil && c.grep && len(c.stderr.Bytes()) == 0:
		return errNothing // it says so by its exit status alone
	case err != nil:
		return complaint(err, clean(c.stderr.Bytes()))
	}
	return nil
}

// kill ends journalctl without looking at how, and waits for it.
func (c *child) kill() {
	c.end()
	_ = c.cmd.Wait()
}

// ended is the class of what a ctx that has ended stops.
func ended(ctx context.Context) fault.Class {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Timeout
	}
	return fault.Canceled
}

// errNothing is how journalctl ends when a pattern matches no entry, or no unit.
var errNothing = errors.New("nothing matches")

// complaint gives what journalctl said its class. Its exit status is 1 for
// everything, so there is only the text (journalctl.c, seen with 252).
func complaint(err error, text string) error {
	class := fault.Failed
	for _, known := range []struct {
		begin string
		class fault.Class
	}{
		{"Failed to parse timestamp", fault.Invalid},
		{"Failed to seek to cursor", fault.Invalid},
		{"Bad pattern", fault.Invalid},
		{"Unknown log level", fault.Invalid},
		{"--since= must be before --until=", fault.Invalid},
		{"Compiled without pattern matching", fault.Unsupported},
		{"Data from the specified boot", fault.NotFound},
		{"No journal boot entry found", fault.NotFound},
		{"Boot ID", fault.NotFound},
		{"No journal files were opened due to insufficient permissions", fault.Denied},
	} {
		if strings.HasPrefix(text, known.begin) {
			class = known.class
		}
	}
	if strings.HasPrefix(text, "Failed to add filter for units: No data available") {
		return errNothing
	}
	if text == "" {
		return fault.New(class, "read", "journal", err)
	}
	return fault.New(class, "read", "journal", errors.New(text))
}

// run returns what journalctl says as JSON lines, maxOutput bytes of it.
func run(ctx context.Context, args ...string) (*bytes.Buffer, error) {
	c, err := start(ctx, args...)
	if err != nil {
		return nil, err
	}
	stdout := limited{left: maxOutput}
	_, err = io.Copy(&stdout, c.out)
	if ended := c.wait(); ended != nil {
		err = ended
	}
	if err != nil {
		return nil, err
	}
	return &stdout.Buffer, nil
}

// limited keeps the first bytes and drops the rest.
type limited struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer; it never fails.
func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	l.Buffer.Write(p[:keep])
	return len(p), nil
}
