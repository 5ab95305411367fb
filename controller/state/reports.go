package state

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/bucket"
	"stead/mesh/wire"
)

// reports are those of all nodes, one sheet for each.
type reports struct {
	bucket *bucket.Bucket[*sheet]
	watch  *bucket.Watcher[*sheet]
}

func (s *Store) openReports(ctx context.Context) (err error) {
	codec := bucket.Codec[*sheet]{
		Encode: func(s *sheet) ([]byte, error) {
			if s == nil {
				return nil, nil
			}
			return s.raw, nil
		},
		Decode: func(raw []byte) (*sheet, error) { return &sheet{raw: raw}, nil },
	}
	s.report.bucket, err = insist(ctx, s.o, bucket.Options{
		Name: "reports", Description: "what nodes report", MaxBytes: maxReports, MaxValue: maxSheet,
	}, codec)
	if err == nil {
		s.report.watch = bucket.NewWatcher(s.report.bucket, bucket.WatchOptions{})
	}
	return err
}

// Line is what is known of one report without reading it whole.
type Line struct {
	Name       string         `json:"n"`
	UID        string         `json:"u"`
	Generation uint64         `json:"g"`
	Outcome    report.Outcome `json:"o"`
	Reason     report.Reason  `json:"r,omitempty"`
}

// Summary is what a node reported last. It is shared and not changed.
type Summary struct {
	At     time.Time // when it was stored
	Source wire.Source
	Lines  []Line // sorted by name
}

// sheet is what the copy has of a node; nil for nothing.
func (s *Store) sheet(node string) *sheet {
	if e, ok := s.report.watch.Entry(node); ok && !e.Deleted {
		return e.Value
	}
	return nil
}

// Summary is what a node reported last; nil for nothing. It is cheap.
func (s *Store) Summary(node string) *Summary {
	sheet := s.sheet(node)
	if sheet == nil {
		return nil
	}
	h, err := sheet.top()
	if err != nil {
		return nil // what cannot be read is replaced by the next batch
	}
	return &Summary{h.At, h.Source, h.Lines}
}

// Reports are the reports of one node, sorted by name; those of names when any
// are given. None is no error.
func (s *Store) Reports(node string, names ...string) ([]*report.Report, error) {
	sheet := s.sheet(node)
	if sheet == nil {
		return nil, nil
	}
	rows, err := sheet.rows()
	var all []*report.Report
	for _, r := range rows {
		if len(names) > 0 && !slices.Contains(names, r.Name) {
			continue
		}
		var one *report.Report
		if one, err = r.read(); err != nil {
			break
		}
		all = append(all, one)
	}
	if err != nil {
		return nil, fault.New(fault.Failed, "read reports", node, err)
	}
	return all, nil
}

// StoreReports stores a batch, on top of what is stored of the node, and counts as
// Touch. Full: nothing was stored, since the batch follows one that is not there,
// and the host is to send everything. A batch that came before is stored already,
// so any may be sent again. What is too large is cut.
//
// Errors: invalid when the batch breaks a bound; refused when the bucket is full;
// unavailable and timeout when it is to be sent again.
func (s *Store) StoreReports(ctx context.Context, node string, b wire.ReportBatch) (full bool, err error) {
	s.Touch(node)
	if err := checkBatch(node, b); err != nil {
		return false, err
	}
	e, _ := s.report.watch.Entry(node)
	for fresh := false; ; fresh = true {
		switch verdict := weighBatch(e, b); {
		case verdict == done:
			return false, nil
		case verdict == wants && fresh:
			return true, nil
		case verdict == follows:
			now, err := s.merge(e, b)
			if err != nil {
				return false, fault.New(fault.Failed, "store reports", node, err)
			}
			_, err = s.report.bucket.Update(ctx, node, now, e.Revision)
			if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
				return false, err
			}
		}
		// Another controller stored something, or the copy is late.
		if e, err = latest(ctx, s.report.bucket, node); err != nil {
			return false, err
		}
	}
}

// verdict is what to do with a batch.
type verdict int

const (
	follows verdict = iota // on what is stored: store it
	done                   // it is stored
	wants                  // everything is wanted
)

func weighBatch(e bucket.Entry[*sheet], b wire.ReportBatch) verdict {
	var h *head
	if e.Value != nil && !e.Deleted {
		h, _ = e.Value.top() // one that cannot be read counts as none
	}
	switch ours := h != nil && h.Run == b.Run; {
	case ours && b.Seq <= h.Seq:
		return done
	case b.Base == 0, ours && h.Seq == b.Base:
		return follows
	}
	return wants
}

// merge makes the sheet that follows e with b.
func (s *Store) merge(e bucket.Entry[*sheet], b wire.ReportBatch) (*sheet, error) {
	rows, err := before(e, b)
	if err != nil {
		return nil, err
	}
	for _, r := range b.Reports {
		body, err := json.Marshal(bounded(*r))
		if err != nil {
			return nil, err
		}
		rows[r.Name] = row{Line: Line{r.Name, r.UID, r.Generation, r.Outcome, r.Reason}, body: body}
	}
	for _, name := range b.Gone {
		delete(rows, name)
	}
	var all []row
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if r := rows[name]; b.More || !r.old {
			all = append(all, r)
		}
	}
	if len(all) > 2*maxNames { // as many as of before and of now
		return nil, fmt.Errorf("%d names; at most %d", len(all), 2*maxNames)
	}
	h := head{Run: b.Run, Seq: b.Seq, At: s.o.Clock().UTC(), Source: b.Source, Filling: b.More}
	h.Source.Trouble = cut(h.Source.Trouble, maxText)
	return fit(h, all)
}

// before are the rows by name that stay until b says otherwise.
func before(e bucket.Entry[*sheet], b wire.ReportBatch) (map[string]row, error) {
	all := map[string]row{}
	if e.Value == nil || e.Deleted || b.Base == 0 && !b.More {
		return all, nil
	}
	rows, err := e.Value.rows()
	if err != nil && b.Base > 0 {
		return nil, err
	}
	for _, r := range rows {
		r.old = r.old || b.Base == 0
		all[r.Name] = r
	}
	return all, nil
}
