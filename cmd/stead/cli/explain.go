package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/host/shape"
)

func newExplain(o Options) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "explain [SHAPE[.FIELD]]",
		Short: "say what can be declared: shapes, their fields, and the rules",
		Long: "explain tells what this version of stead can declare: every shape, the fields of\n" +
			"one, or what one field means, its type, what holds without it, the values that\n" +
			"it takes, and what is refused. It asks nobody; what the host of a node can apply\n" +
			"is in: stead get nodes -o yaml.",
		Example:           "  stead explain\n  stead explain service\n  stead explain service.on_change",
		Args:              oneAtMost,
		ValidArgsFunction: completeFields,
		RunE: func(c *cobra.Command, args []string) error {
			e, err := explained(shape.Vocabulary(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			out := o.screen(c.OutOrStdout())
			if output.coded() {
				return encode(out, string(output), e.answer())
			}
			return flush(out, func(w screen) { w.explain(e, output == "wide") })
		},
	}
	formatFlag(c, &output)
	return c
}

// explanation is what was asked for: all shapes, or one of them, or one field.
type explanation struct {
	shapes []shape.Shape
	shape  *shape.Shape
	field  *shape.Field
}

// answer is what programs get: shapes, one shape, or one field.
func (e explanation) answer() any {
	switch {
	case e.field != nil:
		return e.field
	case e.shape != nil:
		return e.shape
	}
	return e.shapes
}

// explained finds what is called SHAPE or SHAPE.FIELD; "" is everything. Errors:
// not_found, with the closest name as its hint.
func explained(all []shape.Shape, name string) (explanation, error) {
	e := explanation{shapes: all}
	if name == "" {
		return e, nil
	}
	kind, field, one := strings.Cut(name, ".")
	i := slices.IndexFunc(all, func(s shape.Shape) bool { return s.Name == kind })
	if i < 0 {
		return e, noShape(all, kind, field)
	}
	if e.shape = &all[i]; !one {
		return e, nil
	}
	k := slices.IndexFunc(e.shape.Fields, func(f shape.Field) bool { return f.Name == field })
	if k < 0 {
		hint := "stead explain " + kind
		if near := shape.Nearest(field, fieldNames(*e.shape)); near != "" {
			hint = fmt.Sprintf("did you mean %s? stead explain %s.%s", near, kind, near)
		}
		return e, fault.New(fault.NotFound, "explain", "", fmt.Errorf("the shape %s has no field %.80q", kind, field)).WithHint(hint)
	}
	e.field = &e.shape.Fields[k]
	return e, nil
}

// noShape is the error of a name that no shape has. It may be that of a field.
func noShape(all []shape.Shape, kind, field string) error {
	var names, fields []string
	for _, s := range all {
		names = append(names, s.Name)
		for _, f := range fieldNames(s) {
			fields = append(fields, s.Name+"."+f)
		}
	}
	hint := "the shapes are " + strings.Join(names, ", ") + ": stead explain"
	if near := shape.Nearest(kind, names); near != "" {
		hint = fmt.Sprintf("did you mean %s? stead explain %s", near, strings.TrimSuffix(near+"."+field, "."))
	} else if i := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, "."+kind) }); i >= 0 && field == "" {
		hint = "it is a field: stead explain " + fields[i]
	}
	return fault.New(fault.NotFound, "explain", "", errors.New("there is no shape "+fmt.Sprintf("%.80q", kind))).WithHint(hint)
}

func fieldNames(s shape.Shape) []string {
	names := make([]string, 0, len(s.Fields))
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	return names
}

// completeFields completes shapes, and behind a dot the fields of one.
func completeFields(_ *cobra.Command, before []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	kind, _, one := strings.Cut(start, ".")
	for _, s := range shape.Vocabulary() {
		if !one {
			names = append(names, s.Name, s.Name+".")
			continue
		}
		for _, f := range s.Fields {
			if s.Name == kind {
				names = append(names, s.Name+"."+f.Name+"\t"+f.Meaning)
			}
		}
	}
	if !one {
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// explain tells of everything, of one shape, or of one field.
func (w screen) explain(e explanation, wide bool) {
	switch {
	case e.field != nil:
		w.explainField(e.shape.Name, *e.field)
	case e.shape != nil:
		w.explainShape(*e.shape, wide)
	default:
		rows := make([][]string, 0, len(e.shapes))
		for _, s := range e.shapes {
			rows = append(rows, []string{s.Name, fmt.Sprint(s.Version), fmt.Sprint(len(s.Fields)), s.Meaning})
		}
		head := []string{"SHAPE", "VERSION", "FIELDS", "MEANING"}
		if !wide {
			w.cut(head, rows)
		}
		table(w, "", head, rows)
	}
}

func (w screen) explainShape(s shape.Shape, wide bool) {
	fmt.Fprintf(w, "%s   version %d\n", s.Name, s.Version)
	w.paragraph("meaning", s.Meaning)
	fmt.Fprintln(w)
	head := []string{"FIELD", "TYPE", "MEANING"}
	if wide {
		head = []string{"FIELD", "TYPE", "DEFAULT", "BOUND", "MEANING"}
	}
	rows := make([][]string, 0, len(s.Fields))
	for _, f := range s.Fields {
		if wide {
			rows = append(rows, []string{f.Name, f.Type, without(f), f.Bound, f.Meaning})
			continue
		}
		rows = append(rows, []string{f.Name, f.Type, f.Meaning})
	}
	if !wide {
		w.narrowed(2).cut(head, rows)
	}
	table(w, "  ", head, rows)
	fmt.Fprintf(w, "\nstead explain %s.FIELD tells all of one.\n", s.Name)
}

func (w screen) explainField(kind string, f shape.Field) {
	fmt.Fprintf(w, "%s.%s   %s\n", kind, f.Name, f.Type)
	w.paragraph("meaning", f.Meaning)
	w.paragraph("default", without(f))
	w.paragraph("bound", f.Bound)
	w.paragraph("rule", f.Rule)
}

// without is what holds when a field is not declared.
func without(f shape.Field) string {
	if f.Default == "" {
		return "none: it is required"
	}
	return f.Default
}

// paragraph is a fact in as many lines as it takes, each as long as the screen, or
// as reads well where there is none.
func (w screen) paragraph(label, text string) {
	const indent, reads = 12, 80
	room := reads - indent
	if w.width > 0 {
		room = max(w.width-indent, reasonLeast)
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > room {
			fmt.Fprintf(w, "  %-9s %s\n", label, line)
			label, line = "", ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintf(w, "  %-9s %s\n", label, dash(line))
}
