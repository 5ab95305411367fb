package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// table is what is printed at the end.
type table struct {
	rows  []row
	notes []string
}

// row is one measurement against its floor.
type row struct {
	work, floor, ours, ratio, limit string
	over                            bool
}

// times adds a row whose limit is a multiple of the floor.
func (t *table) times(work string, floor, ours time.Duration, limit float64) {
	ratio := float64(ours) / float64(floor)
	t.rows = append(t.rows, row{work, short(floor), short(ours), fmt.Sprintf("%.2f ×", ratio), fmt.Sprintf("%.2f ×", limit), ratio > limit})
}

// slower adds a row of something that is not to beat the floor, by more than two
// runs of the floor differ.
func (t *table) slower(work string, floor, other time.Duration) {
	const noise = 0.95
	ratio := float64(other) / float64(floor)
	t.rows = append(t.rows, row{work, short(floor), short(other), fmt.Sprintf("%.2f ×", ratio), fmt.Sprintf("≥ %.2f ×", noise), ratio < noise})
}

// above adds a row whose limit is a time over the floor.
func (t *table) above(work string, floor, ours, limit time.Duration) {
	t.rows = append(t.rows, row{work, short(floor), short(ours), fmt.Sprintf("%+.2f ms", ms(ours-floor)), "+" + amount(ms(limit), "ms"), ours-floor > limit})
}

// most adds a row without a floor.
func (t *table) most(work string, ours, limit float64, unit string) {
	t.rows = append(t.rows, row{work, "", amount(ours, unit), "", amount(limit, unit), ours > limit})
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// String lays the table out.
func (t *table) String() string {
	lines := [][]string{{"work", "floor", "ours", "ratio", "limit", ""}}
	for _, r := range t.rows {
		verdict := "ok"
		if r.over {
			verdict = "OVER"
		}
		lines = append(lines, []string{r.work, r.floor, r.ours, r.ratio, r.limit, verdict})
	}
	wide := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, cell := range l {
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	var s strings.Builder
	for _, l := range lines {
		for i, cell := range l {
			pad := strings.Repeat(" ", wide[i]-len([]rune(cell)))
			if i == 0 {
				cell += pad
			} else {
				cell = "  " + pad + cell
			}
			s.WriteString(cell)
		}
		s.WriteString("\n")
	}
	for _, n := range t.notes {
		s.WriteString("  " + n + "\n")
	}
	return s.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", ms(d))
	}
	return fmt.Sprintf("%.1f ms", ms(d))
}

func amount(v float64, unit string) string {
	return strings.TrimSpace(strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit)
}

// quantile is the smallest of the values that q of them do not exceed.
func quantile(values []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(values))
	return s[max(0, min(len(s)-1, int(q*float64(len(s))+0.999999)-1))]
}

func median(values []time.Duration) time.Duration { return quantile(values, 0.5) }

func all(values []time.Duration) string {
	var words []string
	for _, v := range values {
		words = append(words, short(v))
	}
	return strings.Join(words, ", ")
}
