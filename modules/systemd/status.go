package systemd

import (
	"context"
	"encoding/json"
	"fmt"

	"stead/host/fault"
	"stead/host/unit"
	"stead/runtime/tool"
	"stead/seats"
)

const (
	// defaultLines are the log lines of a status.
	defaultLines = 10
	// mostLines bounds them in bytes of JSON, mostText a text that a unit file brings,
	// mostWords and mostTexts each in a list of them and how many there are: an answer
	// fits into one message whatever a unit file says.
	mostLines = 384 << 10
	mostText  = 8 << 10
	mostWords = 512
	mostTexts = 64
)

// Status is the verb: all that systemd says of one unit, in each scope that has it.
func (m *Module) Status(ctx context.Context, a seats.StatusArguments) (seats.StatusReply, error) {
	reply := seats.StatusReply{Units: []seats.UnitStatus{}}
	n, err := named("status", a.Unit)
	if err != nil {
		return reply, err
	}
	seen, blind, err := look(ctx, m.views(a.Scope), func(ctx context.Context, v view) (told, error) { return v.told(ctx, n, a.Lines) })
	if err != nil {
		return reply, err
	}
	reply.Unreadable = blind.named()
	var read []view
	for _, l := range seen {
		read = append(read, l.view)
		if d := l.got; exists(d.Load, d.Active) {
			s := statusOf(d.Details)
			s.Scope, s.DeclaredBy = string(l.scope), m.owners(l.scope).of(namesOf(d.Details)...)
			d.into(&s)
			reply.Units = append(reply.Units, s)
		}
	}
	if len(reply.Units) == 0 && len(read) > 0 {
		return reply, nowhere(ctx, "status", string(n), read, blind)
	}
	return reply, nil
}

// told is what there is to say of a unit in one scope.
type told struct {
	unit.Details
	tail
}

// told asks about a unit. Most are asked about by their own name, which the journal
// has: its lines take ten times as long as all else, and are not waited for twice.
func (v view) told(ctx context.Context, n unit.Name, lines *int) (told, error) {
	early, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := v.tailing(early, n, lines)
	d, err := v.Details(ctx, n)
	if err != nil || d.ID != n || !exists(d.Load, d.Active) {
		cancel()
	}
	t := told{Details: d, tail: begun()}
	if err == nil && d.ID != n && exists(d.Load, d.Active) {
		t.tail = v.tailing(ctx, d.ID, lines)()
	}
	return t, err
}

// tail are the last log lines of a unit, or why there are none.
type tail struct {
	lines []string
	why   string
}

// tailing begins to read the last log lines, and returns what waits for them.
func (v view) tailing(ctx context.Context, n unit.Name, asked *int) (wait func() tail) {
	count := defaultLines
	if asked != nil {
		count = *asked
	}
	switch {
	case count == 0:
		return func() tail { return tail{} }
	case !tool.MayReadLogs(ctx):
		return func() tail { return tail{why: "log lines are for who may read the journal"} }
	}
	got := make(chan tail, 1)
	go func() {
		lines, err := v.tail(ctx, n, count)
		if err != nil {
			got <- tail{why: cut(err.Error(), mostText)}
			return
		}
		got <- tail{lines: lines}
	}()
	return func() tail { return <-got }
}

// into fills the lines in, as many as fit into one answer.
func (t tail) into(s *seats.UnitStatus) {
	s.LinesError = t.why
	lines, size := t.lines, 0
	for i := len(lines) - 1; i >= 0; i-- {
		text, _ := json.Marshal(lines[i]) // a text always encodes
		if size += len(text) + 1; size > mostLines {
			s.LinesError = fmt.Sprintf("the first %d of %d lines do not fit into one answer", i+1, len(lines))
			lines = lines[i+1:]
			break
		}
	}
	s.Lines = lines
}

func (v view) tail(ctx context.Context, n unit.Name, count int) ([]string, error) {
	j, err := v.journal(ctx)
	if err != nil {
		return nil, err
	}
	return j.Tail(ctx, n, count)
}

// namesOf are all names of a unit, its own first.
func namesOf(d unit.Details) []unit.Name { return append([]unit.Name{d.ID}, d.Names...) }

func statusOf(d unit.Details) seats.UnitStatus {
	s := seats.UnitStatus{
		ID: string(d.ID), Names: texts(d.Names), Description: cut(d.Description, mostText),
		Load: string(d.Load), LoadError: cut(d.LoadError, mostText), Active: string(d.Active), Sub: d.Sub,
		Enablement: d.Enablement, Preset: d.Preset, Result: d.Result, ExitCode: d.ExitCode, ExitStatus: d.ExitStatus,
		Since: d.Since, MainPID: d.MainPID, Memory: d.Memory, CPU: d.CPU, Tasks: d.Tasks, Restarts: d.Restarts, Unset: d.Unset,
		Fragment: d.Fragment, DropIns: d.DropIns, NeedReload: d.NeedReload,
		TriggeredBy: texts(d.TriggeredBy), Triggers: texts(d.Triggers), Job: string(d.Job.Type), Invocation: d.Invocation,
	}
	for _, c := range d.Unmet {
		s.Unmet = append(s.Unmet, c.Text)
	}
	s.Documents, s.Unmet = fewer(d.Documents), fewer(s.Unmet)
	return s
}

func texts(names []unit.Name) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, string(n))
	}
	return out
}

// fewer bounds a list that a unit file brings.
func fewer(all []string) []string {
	var out []string
	for i, text := range all {
		if i == mostTexts {
			return append(out, fmt.Sprintf("… and %d more", len(all)-i))
		}
		out = append(out, cut(text, mostWords))
	}
	return out
}

// cut shortens a text between two characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}

// about is the class, operation and object that a verb's own error has.
func about(class fault.Class, verb string, n unit.Name, format string, args ...any) *fault.Error {
	return fault.New(class, verb, string(n), fmt.Errorf(format, args...))
}
