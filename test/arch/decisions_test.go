package arch

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write decisions/README.md anew")

// record is one decision record.
type record struct {
	number, title, status, date string
	file                        *source
	sections                    map[string]string
}

// recordSections are the parts of a record, in their order.
var recordSections = []string{"Context", "Options", "Outcome", "Consequences", "Confirmation"}

// onePage is how many lines a record may have.
const onePage = 80

const indexPath = "decisions/README.md"

var (
	recordName   = regexp.MustCompile(`^decisions/(\d{4})-([a-z0-9-]+)\.md$`)
	recordStatus = regexp.MustCompile(`^(proposed|accepted|rejected|superseded by \d{4})$`)
	recordDate   = regexp.MustCompile(`^20\d\d-(0[1-9]|1[0-2])-([0-2]\d|3[01])$`)
	testName     = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	folderName   = regexp.MustCompile("`((?:host|seats|modules|runtime|controller|mesh|cmd|test)/[a-z0-9/._-]*[a-z0-9])`")
)

// readRecord reads a record of the form
//
//	# TITLE
//
//	- status: accepted
//	- date: 2026-11-30
//
//	## Context
//	…
func readRecord(f *source) record {
	m := recordName.FindStringSubmatch(f.path)
	r := record{number: m[1], file: f, sections: map[string]string{}}
	section := ""
	for line := range strings.Lines(f.text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# ") && r.title == "":
			r.title = line[2:]
		case strings.HasPrefix(line, "- status: ") && section == "":
			r.status = strings.TrimPrefix(line, "- status: ")
		case strings.HasPrefix(line, "- date: ") && section == "":
			r.date = strings.TrimPrefix(line, "- date: ")
		case strings.HasPrefix(line, "## "):
			section = line[3:]
			r.sections[section] = ""
		case section != "":
			r.sections[section] += line + "\n"
		}
	}
	return r
}

func records(t *tree) []record {
	var all []record
	for _, f := range t.files {
		if recordName.MatchString(f.path) {
			all = append(all, readRecord(f))
		}
	}
	return all
}

// checkDecisions holds each record against its form, the numbers against each
// other, and the index against the records.
func checkDecisions(t *tree) []finding {
	var out []finding
	for _, f := range t.files {
		if strings.HasPrefix(f.path, "decisions/") && f.path != indexPath && !recordName.MatchString(f.path) {
			out = append(out, finding{f.path, 0, "a record is named NNNN-title-is-the-decision.md"})
		}
	}
	all := records(t)
	for i, r := range all {
		if want := fmt.Sprintf("%04d", i+1); r.number != want {
			out = append(out, finding{r.file.path, 0, "the number should be " + want})
		}
		out = append(out, r.formFaults()...)
		out = append(out, r.confirmationFaults(t)...)
	}
	index := t.file(indexPath)
	if len(all) > 0 && (index == nil || index.text != indexOf(all)) {
		out = append(out, finding{indexPath, 0, "not what the records say: go test ./test/arch -run TestDecisionIndex -update"})
	}
	return out
}

func (r record) formFaults() []finding {
	var out []finding
	bad := func(format string, args ...any) {
		out = append(out, finding{r.file.path, 0, fmt.Sprintf(format, args...)})
	}
	if r.title == "" {
		bad("no title")
	}
	if !recordStatus.MatchString(r.status) {
		bad("status %q is none of proposed, accepted, rejected, superseded by NNNN", r.status)
	}
	if !recordDate.MatchString(r.date) {
		bad("date %q is no YYYY-MM-DD", r.date)
	}
	if n := strings.Count(r.file.text, "\n"); n > onePage {
		bad("%d lines are more than a page", n)
	}
	for _, s := range recordSections {
		if strings.TrimSpace(r.sections[s]) == "" {
			bad("section %q is missing or empty", s)
		}
	}
	options := r.sections["Options"]
	names := strings.Count(options, "**") / 2
	if names < 2 || strings.Count(options, "Good: ") < names || strings.Count(options, "Bad: ") < names {
		bad("options: at least two, each in bold with its Good: and its Bad:")
	}
	if !strings.Contains(r.sections["Outcome"], "because") {
		bad("outcome: it does not say because of what")
	}
	if !strings.Contains(r.sections["Consequences"], "Bad: ") {
		bad("consequences: none of them is Bad:")
	}
	return out
}

// confirmationFaults wants what keeps a record true to exist: tests and folders
// that it names, and at least one of them.
func (r record) confirmationFaults(t *tree) []finding {
	var out []finding
	tests := testNames(t)
	text := r.sections["Confirmation"]
	named := 0
	for _, m := range testName.FindAllStringSubmatch(text, -1) {
		named++
		if !tests[m[1]] {
			out = append(out, finding{r.file.path, 0, "no test is named " + m[1]})
		}
	}
	for _, m := range folderName.FindAllStringSubmatch(text, -1) {
		named++
		there := slices.ContainsFunc(t.files, func(f *source) bool { return f.path == m[1] || strings.HasPrefix(f.path, m[1]+"/") })
		if !there && !slices.Contains(growing, m[1]) {
			out = append(out, finding{r.file.path, 0, "there is no " + m[1]})
		}
	}
	if named == 0 {
		out = append(out, finding{r.file.path, 0, "confirmation: it names neither a test nor the folder of one"})
	}
	return out
}

func testNames(t *tree) map[string]bool {
	re := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	names := map[string]bool{}
	for _, f := range t.files {
		if f.isTest() {
			for _, m := range re.FindAllStringSubmatch(f.text, -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// indexOf is the text of decisions/README.md.
func indexOf(all []record) string {
	var b strings.Builder
	b.WriteString("# Decisions\n\nOne page for each decision. Once one is accepted only its status changes.\n" +
		"This index is made from the records by `go test ./test/arch -run TestDecisionIndex -update`.\n\n" +
		"| number | decision | status | date |\n|---|---|---|---|\n")
	for _, r := range all {
		fmt.Fprintf(&b, "| %s | [%s](%s) | %s | %s |\n", r.number, r.title, path.Base(r.file.path), r.status, r.date)
	}
	return b.String()
}

// TestDecisionIndex writes the index when it is run with -update, and otherwise
// holds it against the records.
func TestDecisionIndex(t *testing.T) {
	here, err := load(os.DirFS(root))
	require.NoError(t, err)
	want := indexOf(records(here))
	file := filepath.Join(root, indexPath)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}
