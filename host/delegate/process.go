package delegate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// process is one child, from start to end. It is never used again.
type process struct {
	cmd   *exec.Cmd
	in    *os.File
	out   io.Reader
	pipe  *os.File // out's
	ended chan struct{}
	sent  map[string]bool // digests of the services that it has; of whoever has the turn
	news  pace            // of what it says without being asked; of who hears

	mu      sync.Mutex // guards what follows
	cause   error
	id      uint64
	waiting chan result // of the call under way; nil for none
	units   int         // that it asks about
	raw     bool        // and whether it is answered with bytes
	said    string      // the last line of its standard error
}

type result struct {
	reply reply
	raw   []byte
}

// start makes a child, which ends with ctx.
func (d *Delegate) start(ctx context.Context) (*process, error) {
	failed := func(err error) (*process, error) {
		return nil, fault.New(fault.Failed, "act as an account", d.o.Login.Name, err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer inR.Close() //nolint:errcheck // the child has it
	outR, outW, err := os.Pipe()
	if err != nil {
		_ = inW.Close()
		return failed(err)
	}
	defer outW.Close() //nolint:errcheck // the child has it
	cmd := d.o.Login.Command(ctx, d.o.Arguments...)
	cmd.Stdin, cmd.Stdout = inR, outW
	p := &process{cmd: cmd, in: inW, out: bufio.NewReaderSize(outR, 64<<10), pipe: outR, ended: make(chan struct{}), sent: make(map[string]bool)}
	cmd.Stderr = &lines{take: p.say, end: p.end}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		_, _ = inW.Close(), outR.Close()
		return failed(err)
	}
	return p, nil
}

// end ends the child for a reason; the first one counts.
func (p *process) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != nil {
		return
	}
	if why == nil {
		why = errors.New("it ended")
	}
	p.cause = why
	_ = p.cmd.Process.Kill()
	_, _ = p.in.Close(), p.pipe.Close()
	close(p.ended)
}

// reap waits for the end of a child that was killed, beside everything else, and
// calls done then: one that is stuck in the kernel ends when that lets it go. What it
// returns is closed behind that.
func (p *process) reap(done func()) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = p.cmd.Wait()
		done()
	}()
	return gone
}

func (p *process) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said != "" {
		return fmt.Errorf("%w (it said: %s)", p.cause, p.said)
	}
	return p.cause
}

func (p *process) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = clean(line, 300)
}

// call asks, and waits for the answer. The caller has the turn.
func (p *process) call(a ask, raw []byte, patience time.Duration) (reply, []byte, error) {
	back := make(chan result, 1)
	p.mu.Lock()
	p.id++
	a.ID, p.waiting, p.units, p.raw = p.id, back, len(a.Queries)+len(a.Changes)+len(a.Paths), a.Op == opSnapshot || a.Op == opPeek
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting = nil
		p.mu.Unlock()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	wrote := make(chan error, 1)
	go func() { wrote <- send(p.in, a, raw) }()
	for {
		select {
		case err := <-wrote:
			if err != nil {
				p.end(fmt.Errorf("it takes nothing more: %w", err))
			}
			wrote = nil
		case r := <-back:
			return r.reply, r.raw, nil
		case <-p.ended:
			return reply{}, nil, fault.New(fault.Unavailable, string(a.Op), "", p.why())
		case <-timer.C:
			err := fault.New(fault.Timeout, string(a.Op), "", fmt.Errorf("the process that acts as the account gave no answer in %s", patience))
			p.end(err)
			return reply{}, nil, err
		}
	}
}

// answer hands the answer to whoever waits; false when nobody does.
func (p *process) answer(r reply, raw []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil || r.ID != p.id {
		return false
	}
	p.waiting <- result{r, raw}
	p.waiting = nil
	return true
}

// allowed is how many bytes the next message may have.
func (p *process) allowed() (text, raw int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raw {
		raw = maxRaw
	}
	return replyBase + p.units*replyUnit, raw
}

func (p *process) mostParts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return partsBase + p.units*partsUnit
}

// lines takes a stream for lines of bounded length, of which the last counts.
type lines struct {
	take func(string)
	end  func(error) // of who says too much
	rest []byte
	said int
}

func (l *lines) Write(b []byte) (int, error) {
	const most, mostSaid = 4 << 10, 1 << 20
	if l.said += len(b); l.said > mostSaid {
		l.end(fmt.Errorf("it broke the rules: it complains of more than %d bytes", mostSaid))
		return 0, errTooMuch
	}
	l.rest = append(l.rest, b...)
	if end := bytes.LastIndexByte(l.rest, '\n'); end >= 0 {
		begin := bytes.LastIndexByte(l.rest[:end], '\n') + 1
		l.take(string(l.rest[begin:min(end, begin+most)]))
		l.rest = append(l.rest[:0], l.rest[end+1:]...)
	}
	if over := len(l.rest) - most; over > 0 {
		l.rest = append(l.rest[:0], l.rest[over:]...)
	}
	return len(b), nil
}

var errTooMuch = errors.New("nobody listens")

// clean makes a line of what an account's process says.
func clean(s string, most int) string { return unit.Shown(s, most) }

func lookupGroup(id string) (string, error) {
	g, err := user.LookupGroupId(id)
	if err != nil {
		return "", err
	}
	return g.Name, nil
}
