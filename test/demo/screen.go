package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// screen is what the demonstration is shown on: what happens at the left edge, behind the time since the beginning, and below what it looks like,
// folded to the terminal. Colour, on a terminal alone, sets the two apart and says nothing more.
type screen struct {
	out    *os.File
	start  time.Time
	colour bool
	width  int // in columns; 0: it is no terminal, and has no end
}

func newScreen(out *os.File) *screen {
	s := &screen{out: out, start: time.Now()}
	if size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil {
		s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		s.width = int(size.Col)
	}
	return s
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

const indent = "   "

// step says what happens next.
func (s *screen) step(format string, args ...any) {
	at := fmt.Sprintf("%4.1f s  ", time.Since(s.start).Seconds())
	for i, part := range fold(fmt.Sprintf(format, args...), s.width-len(at)) {
		if i > 0 {
			at, part = strings.Repeat(" ", len(at)), strings.TrimLeft(part, " ")
		} else {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintln(s.out, s.paint(faint, at)+s.paint(bold, part))
	}
}

// command shows a command line that is run in the node.
func (s *screen) command(line string) { s.text(s.paint(faint, "$ ") + line) }

// line shows one line below a step.
func (s *screen) line(format string, args ...any) { s.text(fmt.Sprintf(format, args...)) }

// text shows text, which may have several lines, as it is.
func (s *screen) text(text string) {
	for line := range strings.Lines(text) {
		for _, part := range fold(strings.TrimRight(line, " \n"), s.width-len(indent)) {
			fmt.Fprintln(s.out, strings.TrimRight(indent+part, " "))
		}
	}
}

// least is the narrowest room that a line is folded into.
const least = 40

// fold breaks a line at spaces so that it fits room columns, further parts below its first word and two deeper. What is in no column, as colours are,
// does not count.
func fold(line string, room int) []string {
	if room < least {
		return []string{line}
	}
	deeper := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+2)
	var parts []string
	for {
		at := overflow(line, room)
		if at < 0 {
			return append(parts, line)
		}
		parts = append(parts, line[:at])
		line = deeper + strings.TrimLeft(line[at:], " ")
	}
}

// overflow is where a line is broken that does not fit room columns: at its last space before, else where it ends; below 0 when it fits.
func overflow(line string, room int) int {
	column, space, escape := 0, -1, false
	start := len(line) - len(strings.TrimLeft(line, " "))
	for i, r := range line {
		switch {
		case escape:
			escape = r != 'm'
			continue
		case r == '\x1b':
			escape = true
			continue
		case r == ' ' && i > start:
			space = i
		}
		if column++; column > room {
			if space > 0 {
				return space
			}
			return i
		}
	}
	return -1
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
