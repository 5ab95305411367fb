package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/wire"
)

// Bounds of what one node may report, beyond which it is refused or cut.
const (
	maxNames    = 2 * wire.MaxEntries // what is declared, and what is on its way out
	maxName     = 253
	maxWord     = 64
	maxText     = 2 << 10
	maxLine     = 512
	maxLines    = 20
	maxSteps    = 32
	maxWarnings = 16
)

// checkBatch returns an error of class invalid for a batch that breaks a bound.
func checkBatch(node string, b wire.ReportBatch) error {
	why := ""
	switch {
	case b.Run == "" || len(b.Run) > maxWord || b.Seq == 0 || b.Base >= b.Seq:
		why = "run, number and base do not fit"
	case len(b.Reports) > maxNames || len(b.Gone) > maxNames || len(b.Source.Kept) > maxNames:
		why = fmt.Sprintf("more than %d names", maxNames)
	}
	for _, r := range b.Reports {
		switch {
		case r == nil || r.Name == "" || len(r.Name) > maxName:
			why = "a report has no name"
		case len(r.UID) > maxWord || len(r.Outcome) > maxWord || len(r.Reason) > maxWord:
			why = "the report of " + r.Name + " has a word of more than 64 bytes"
		}
	}
	if why != "" {
		return fault.New(fault.Invalid, "store reports", node, errors.New(why))
	}
	return nil
}

// bounded is r, cut to what is kept of one report.
func bounded(r report.Report) report.Report {
	r.Text, r.Hint, r.Origin = cut(r.Text, maxText), cut(r.Hint, maxText), cut(r.Origin, maxText)
	r.Lines, r.Warnings = cutAll(last(r.Lines, maxLines)), cutAll(last(r.Warnings, maxWarnings))
	r.Steps = append([]report.Step(nil), last(r.Steps, maxSteps)...)
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Action, s.Object, s.Reason, s.Error = cut(s.Action, maxWord), cut(s.Object, maxLine), cut(s.Reason, maxLine), cut(s.Error, maxLine)
	}
	return r
}

// cuts make a sheet that is too large smaller, one after the other: first what
// nobody looks for, last what says how things stand.
var cuts = [...]func(*report.Report){
	func(r *report.Report) {
		if r.Outcome == report.Converged {
			r.Lines, r.Steps, r.Warnings = nil, nil, last(r.Warnings, 2)
		}
	},
	func(r *report.Report) {
		r.Lines, r.Steps, r.Warnings = last(r.Lines, 5), last(r.Steps, 3), last(r.Warnings, 2)
	},
	func(r *report.Report) {
		r.Lines, r.Steps, r.Warnings, r.Origin, r.Text, r.Hint = nil, nil, nil, "", cut(r.Text, 200), cut(r.Hint, 200)
	},
}

// fit packs rows, cut as far as they must be.
func fit(h head, rows []row) (*sheet, error) {
	for level := 0; ; level++ {
		size := 0
		for _, r := range rows {
			size += len(r.body)
		}
		if size <= maxUnpacked/2 {
			s, err := pack(h, rows)
			if err != nil || len(s.raw) <= maxSheet {
				return s, err
			}
		}
		if level > len(cuts) {
			return nil, errors.New("the names alone are too large")
		}
		for i := range rows {
			if err := rows[i].cut(level); err != nil {
				return nil, err
			}
		}
	}
}

// cut makes the report smaller, or takes it away where there is no such cut.
func (r *row) cut(level int) error {
	if level >= len(cuts) || r.body == nil {
		r.body = nil
		return nil
	}
	full, err := r.read()
	if err == nil {
		cuts[level](full)
		r.body, err = json.Marshal(full)
	}
	return err
}

// cut is s, and no more than n bytes of it.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

func cutAll(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, cut(s, maxLine))
	}
	return out
}

func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
