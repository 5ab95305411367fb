package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// screen is what the demonstration is shown on: what happens at the left edge, behind the time since the beginning, and what it looks like below.
// Colour, on a terminal alone, sets the two apart and says nothing more.
type screen struct {
	out    *os.File
	start  time.Time
	colour bool
}

func newScreen(out *os.File) *screen {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &screen{out: out, start: time.Now(), colour: err == nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// The ways in which a terminal shows text.
const (
	bold  = "1"
	faint = "2"
)

func (s *screen) paint(how, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + how + "m" + text + "\x1b[0m"
}

const indent = "          "

// step says what happens next.
func (s *screen) step(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s  %s\n", s.paint(faint, fmt.Sprintf("%6.1f s", time.Since(s.start).Seconds())), s.paint(bold, fmt.Sprintf(format, args...)))
}

// command shows a command line that is run in the node.
func (s *screen) command(line string) { s.text(s.paint(faint, "$ ") + line) }

// line shows one line below a step.
func (s *screen) line(format string, args ...any) { s.text(fmt.Sprintf(format, args...)) }

// text shows text, which may have several lines, as it is.
func (s *screen) text(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(s.out, strings.TrimRight(indent+line, " \n"))
	}
}

// result shows what came of a step.
func (s *screen) result(format string, args ...any) {
	fmt.Fprintf(s.out, "%s%s\n", indent, s.paint(bold, "→ "+fmt.Sprintf(format, args...)))
}

// span writes a time as people do: 3.2 ms, 41 ms, 1.4 s.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
