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
	seen, blind, err := look(ctx, m.views(a.Scope), func(ctx context.Context, v view) (unit.Details, error) { return v.Details(ctx, n) })
	if err != nil {
		return reply, err
	}
	reply.Unreadable = blind.named()
	var read []view
	for _, l := range seen {
		read = append(read, l.view)
		if d := l.got; exists(d.Load, d.Active) {
			s := statusOf(d)
			s.Scope, s.DeclaredBy = string(l.scope), m.owners(l.scope).of(namesOf(d)...)
			l.lines(ctx, &s, a.Lines)
			reply.Units = append(reply.Units, s)
		}
	}
	if len(reply.Units) == 0 && len(read) > 0 {
		return reply, nowhere(ctx, "status", string(n), read, blind)
	}
	return reply, nil
}

// lines fills in the last log lines.
func (v view) lines(ctx context.Context, s *seats.UnitStatus, asked *int) {
	count := defaultLines
	if asked != nil {
		count = *asked
	}
	if count == 0 {
		return
	}
	if !tool.MayReadLogs(ctx) {
		s.LinesError = "log lines are for who may read the journal"
		return
	}
	lines, err := v.tail(ctx, unit.Name(s.ID), count)
	if err != nil {
		s.LinesError = cut(err.Error(), mostText)
		return
	}
	size := 0
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
