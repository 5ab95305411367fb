package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.yaml.in/yaml/v3"
)

// gap is what stands between two columns.
const gap = 3

// table writes aligned columns, three spaces apart, without lines or colour,
// each row behind indent. Without a head there is no head line.
func table(w io.Writer, indent string, head []string, rows [][]string) {
	if head != nil {
		rows = append([][]string{head}, rows...)
	}
	wide := widths(rows)
	for _, row := range rows {
		fmt.Fprintln(w, aligned(indent, wide, row))
	}
}

// aligned is one line of a table, behind indent.
func aligned(indent string, wide []int, row []string) string {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(text.Pad(cell, wide[i], ' '))
	}
	return strings.TrimRight(indent+b.String(), " ")
}

// widths are those of the columns of a table, in columns of the screen, with the
// gap to the next.
func widths(rows [][]string) []int {
	var wide []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], text.StringWidthWithoutEscSequences(cell)+gap)
		}
	}
	return wide
}

func sum(all []int) int {
	n := 0
	for _, i := range all {
		n += i
	}
	return n
}

// encode writes v as JSON, or as YAML with the same names in the same order.
func encode(w io.Writer, format string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		if data, err = asYAML(data); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(data), "\n"))
	return err
}

// asYAML writes JSON, which is YAML, in the style of people.
func asYAML(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	plain(&doc)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// plain takes braces, brackets and quotes away where YAML needs none.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

// screen is where an answer for people goes, and the moment of which it speaks.
type screen struct {
	io.Writer
	now   time.Time
	width int // in columns; 0: it is no terminal, and has no end
}

// fits reports whether a line of n columns needs no second one.
func (w screen) fits(n int) bool { return w.width == 0 || n <= w.width }

// ago writes how long ago t was, in its largest unit.
func (w screen) ago(t time.Time) string {
	d := w.now.Sub(t)
	switch {
	case t.IsZero():
		return dash("")
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// since is ago within a sentence.
func (w screen) since(t time.Time) string {
	if ago := w.ago(t); !t.IsZero() && ago != "now" {
		return ago + " ago"
	}
	return w.ago(t)
}

// when writes a moment, with its day when that is not today.
func (w screen) when(t time.Time) string { return w.format(t, "15:04:05") }

func (w screen) format(t time.Time, clock string) string {
	t = t.Local()
	if now := w.now.Local(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(clock)
	}
	return t.Format("2006-01-02 " + clock)
}
