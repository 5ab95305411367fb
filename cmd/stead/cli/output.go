package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.yaml.in/yaml/v3"
)

// table writes aligned columns, two spaces apart, without lines or colour.
func table(w io.Writer, head []string, rows [][]string) {
	wide := make([]int, len(head))
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i, cell := range row {
			wide[i] = max(wide[i], text.StringWidthWithoutEscSequences(cell))
		}
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(text.Pad(cell, wide[i]+3, ' '))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// encode writes v as JSON or YAML with the same names.
func encode(w io.Writer, format string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		var plain any
		if err := yaml.Unmarshal(data, &plain); err != nil { // JSON is YAML
			return err
		}
		if data, err = yaml.Marshal(plain); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(data), "\n"))
	return err
}

// ago writes how long ago t was, in its largest unit or two.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return "–"
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

// when writes a moment, with its day when that is not today.
func when(t time.Time) string {
	t = t.Local()
	now := time.Now()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
