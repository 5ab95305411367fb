package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// follow is a command that goes on in the background, whose lines are shown as they come.
type follow struct {
	stop context.CancelFunc
	ends chan error

	mu    sync.Mutex // guards what follows
	lines []string
	begun time.Time // since when times are shown
}

// startFollow begins to show what a command line prints on n, behind a bar. The first line is not shown: it says that the command is at work.
func (m *meshDemo) startFollow(ctx context.Context, n machine, line string) (*follow, error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := n.Command(ctx, "sh", "-c", "exec "+line)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	m.text(m.paint(faint, "$ ") + line + m.paint(faint, " &"))
	f := &follow{stop: stop, ends: make(chan error, 1)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if f.take(s.Text()) > 1 {
				m.text(m.paint(faint, fmt.Sprintf("│ %7s  %s", span(f.since()), message(s.Text()))))
			}
		}
		f.ends <- cmd.Wait()
	}()
	return f, nil
}

// message is a line of the journal without time, host and number, which are of no interest here.
func message(line string) string {
	if _, rest, ok := strings.Cut(line, "]: "); ok {
		return rest
	}
	return line
}

// take keeps a line, and returns how many there are.
func (f *follow) take(line string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
	return len(f.lines)
}

// begin says that the time is now that times are shown since.
func (f *follow) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Now()
}

func (f *follow) since() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.begun)
}

// has waits until a line behind the first n has these words.
func (f *follow) has(ctx context.Context, n int, words string) error {
	return until(ctx, fmt.Sprintf("it is followed to %q", words), func() (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, line := range f.lines[min(n, len(f.lines)):] {
			if strings.Contains(line, words) {
				return true, nil
			}
		}
		return false, nil
	})
}

// end interrupts the command.
func (f *follow) end() error {
	f.stop()
	select {
	case <-f.ends:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("what was followed does not end")
	}
}
