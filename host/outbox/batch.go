package outbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"stead/host/report"
	"stead/mesh/wire"
)

// Bounds of what one report may hold when it is sent, in bytes and in lines.
const (
	maxReport = 64 << 10
	maxLine   = 1 << 10
	maxLines  = 20
)

// sum is of what a report says. When the unit was last looked at says nothing by
// itself.
type sum [sha256.Size]byte

// sums remembers those of the reports that were there last: a report is never
// changed, so the same one has the same sum.
type sums map[*report.Report]sum

// chosen is what is to be sent of one declaration.
type chosen struct {
	report *report.Report
	sum    sum
}

// choose returns what is to be sent, by the names of declarations. One that is
// being moved from a unit to another has a report of each, and that of the unit
// that is being given back becomes a warning in the other.
func (s *sums) choose(reports []*report.Report) map[string]chosen {
	kept := make(sums, len(reports))
	all := make(map[string]chosen, len(reports))
	for _, r := range reports {
		one := chosen{r, s.of(r)}
		kept[r] = one.sum
		other, twice := all[r.Name]
		if twice {
			one = merge(one.report, other.report)
		}
		all[r.Name] = one
	}
	*s = kept
	return all
}

func (s *sums) of(r *report.Report) sum {
	if known, ok := (*s)[r]; ok {
		return known
	}
	return sumOf(r)
}

func sumOf(r *report.Report) sum {
	said := *r
	said.Looked = said.Since // a time that is there in any case
	data, _ := json.Marshal(said)
	return sha256.Sum256(data)
}

// merge joins the reports of two units of one declaration.
func merge(a, b *report.Report) chosen {
	if leaving(a) && !leaving(b) || leaving(a) == leaving(b) && cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Scope, b.Scope)) > 0 {
		a, b = b, a
	}
	both, other := *a, string(b.Unit)
	if a.Scope != b.Scope {
		other += " of scope " + string(b.Scope)
	}
	both.Warnings = append(slices.Clip(both.Warnings), fmt.Sprintf("%s: %s %s %s", other, b.Outcome, b.Reason, b.Text))
	return chosen{&both, sumOf(&both)}
}

func leaving(r *report.Report) bool { return r.Reason == report.Withdrawing }

// fit cuts a report to what one message can carry; the log lines and the oldest
// steps go first.
func fit(r *report.Report) *report.Report {
	if data, err := json.Marshal(r); err == nil && len(data) <= maxReport {
		return r
	}
	cut := *r
	cut.Text, cut.Hint = short(cut.Text), short(cut.Hint)
	cut.Warnings, cut.Lines = lines(cut.Warnings), lines(cut.Lines)
	cut.Steps = slices.Clone(cut.Steps[max(0, len(cut.Steps)-maxLines):])
	for i := range cut.Steps {
		s := &cut.Steps[i]
		s.Object, s.Reason, s.Error = short(s.Object), short(s.Reason), short(s.Error)
	}
	return &cut
}

func lines(all []string) []string {
	cut := slices.Clone(all[max(0, len(all)-maxLines):])
	for i := range cut {
		cut[i] = short(cut[i])
	}
	return cut
}

// sameSource compares what matters of where declarations come from; that it was
// looked at again is no news.
func sameSource(a, b wire.Source) bool {
	return a.Mesh == b.Mesh && a.Epoch == b.Epoch && a.Current() == b.Current() && a.Revision == b.Revision && a.Trouble == b.Trouble && slices.Equal(a.Kept, b.Kept)
}
