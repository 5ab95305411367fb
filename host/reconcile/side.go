package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stead/host/report"
	"stead/host/unit"
)

// side is the reading of log lines and of the verifier's warnings, which takes
// long and is done beside the loop, one batch at a time.
type side struct {
	busy   bool
	asked  time.Time // since when something is wanted; zero when nothing is
	done   chan advice
	lines  map[unit.Name]bool
	verify map[unit.Name]string
}

// advice is what one batch of side work found.
type advice struct {
	lines    map[unit.Name][]string
	warnings map[unit.Name][]string
}

const (
	// sideBound is how long one batch of side work may take.
	sideBound = 30 * time.Second
	// sideHold is how long jobs in flight hold side work back: it takes much of a
	// core, which units that start can use better, and jobs that hang must not keep
	// log lines from those who wait for them.
	sideHold = 5 * time.Second
)

// wantLines asks for the last log lines of a unit in trouble, once for each
// trouble.
func (s *side) wantLines(m *managed, r *report.Report) {
	key := fmt.Sprint(r.Reason, " ", r.Text, " ", m.status.Invocation, " ", m.track.Tries)
	if m.linesFor == key {
		return
	}
	m.linesFor = key
	if s.lines == nil {
		s.lines = make(map[unit.Name]bool)
	}
	s.lines[m.name] = true
}

func (s *side) wantVerify(m *managed) {
	file, ok := m.definition()
	if !ok {
		return
	}
	if s.verify == nil {
		s.verify = make(map[unit.Name]string)
	}
	s.verify[m.name] = file
	m.verified = nil // that was of the file before
}

// due is when a batch is to begin; zero when none is wanted, or one is under way.
func (s *side) due(now time.Time, flying int) time.Time {
	if s.busy || (len(s.lines) == 0 && len(s.verify) == 0) {
		return time.Time{}
	}
	if s.asked.IsZero() {
		s.asked = now
	}
	if flying == 0 {
		return now
	}
	return s.asked.Add(sideHold)
}

// start begins a batch when one is due.
func (s *side) start(ctx context.Context, a adviser, now time.Time, flying int) {
	if due := s.due(now, flying); due.IsZero() || now.Before(due) {
		return
	}
	s.asked = time.Time{}
	names := make([]unit.Name, 0, len(s.lines))
	for n := range s.lines {
		names = append(names, n)
	}
	files := s.verify
	s.busy, s.lines, s.verify = true, nil, nil
	ctx, cancel := context.WithTimeout(ctx, sideBound)
	go func() {
		defer cancel()
		var out advice
		if len(names) > 0 {
			out.lines = a.Lines(ctx, names)
		}
		if len(files) > 0 {
			out.warnings = a.Verify(ctx, files)
		}
		s.done <- out
	}()
}

// wait ends when no batch is under way.
func (s *side) wait() {
	if s.busy {
		<-s.done
	}
}

// refusal finds the line in which systemd says why it cannot load a unit.
func refusal(m *managed, lines []string) string {
	for _, l := range slices.Backward(lines) {
		if _, words, ok := strings.Cut(l, string(m.name)+": "); ok && strings.Contains(words, "Refusing") {
			return words
		}
	}
	return ""
}

// loadText adds the words to a text that lacks them.
func (m *managed) loadText(text string) string {
	if m.words == "" || m.mem.Sensitive || strings.Contains(text, m.words) {
		return text
	}
	return text + " " + m.words
}

// advised puts what was found into the reports.
func (l *Loop) advised(a advice) {
	l.side.busy = false
	for n, lines := range a.lines {
		if m := l.units[n]; m != nil && m.rep != nil {
			m.lines = lines
			if m.rep.Outcome == report.Failed {
				r := *m.rep
				r.Lines = m.shownLines()
				if r.Reason == report.BadUnit {
					m.words = refusal(m, lines)
					r.Text = m.loadText(r.Text)
				}
				m.rep = &r
			}
		}
	}
	for n, warnings := range a.warnings {
		if m := l.units[n]; m != nil && m.rep != nil {
			m.verified = warnings
			r := *m.rep
			r.Warnings = m.allWarnings()
			m.rep = &r
		}
	}
	l.publish()
}
