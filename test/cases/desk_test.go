package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host"
	"stead/host/report"
	"stead/seats"
	"stead/test/lab"
)

// name is that of a declaration of this test: the id of the case alone, or with
// a suffix.
func (d *desk) name(suffix string) string {
	return strings.TrimSuffix(d.id+"-"+suffix, "-")
}

// names of all that is declared.
func (d *desk) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.declared))
}

// exec runs a command on the node.
func (d *desk) exec(args ...string) lab.Output {
	d.Helper()
	out, err := d.node.Exec(d.Context(), args...)
	require.NoError(d, err)
	return out
}

// run runs a command on the node that must succeed.
func (d *desk) run(args ...string) string {
	d.Helper()
	return d.node.Run(d, args...)
}

// sh runs a script on the node that must succeed.
func (d *desk) sh(script string) string {
	d.Helper()
	return d.run("sh", "-ec", script)
}

// prop asks systemd for a property of a unit.
func (d *desk) prop(unit, property string) string {
	d.Helper()
	return strings.TrimSpace(d.run("systemctl", "show", "--value", "--property="+property, "--", unit))
}

// write puts a file on the node.
func (d *desk) write(file, text string) {
	d.Helper()
	require.NoError(d, d.node.WriteFile(file, []byte(text), 0o644))
}

// foreign writes unit files that nobody declares, by name, below /etc/systemd/system
// or by path, and loads them. They and their links are gone when the test ends.
func (d *desk) foreign(units map[string]string) {
	d.Helper()
	var files []string
	for name, text := range units {
		file := name
		if !path.IsAbs(name) {
			file = path.Join(etc, name)
		}
		d.write(file, text)
		files = append(files, file)
	}
	d.Cleanup(func() {
		for _, f := range files {
			script := `systemctl --no-block stop -- "$1" 2>&1; find /etc/systemd/system -type l -lname "*/$1" -delete; rm -f "$2"`
			if out, err := d.node.Exec(context.Background(), "sh", "-c", script, "sh", path.Base(f), f); err != nil || out.Code != 0 {
				d.Errorf("remove %s: %v %s", f, err, out.Stderr)
			}
		}
	})
	d.run("systemctl", "daemon-reload")
}

// read is a file of the node; "" when it is not there.
func (d *desk) read(file string) string {
	data, err := d.node.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data)
}

// link is where a symbolic link of the node points; "" when there is none.
func (d *desk) link(file string) string {
	to, err := os.Readlink(d.node.Path(file))
	if err != nil {
		return ""
	}
	return to
}

// until waits for cond, and gives up after patience; why, if given, says more.
func (d *desk) until(what string, cond func() bool, why ...*string) {
	d.Helper()
	if !lab.Await(patience, cond) {
		for _, w := range why {
			what += ": " + *w
		}
		d.Fatalf("not within %s: %s", patience, what)
	}
}

// stead gives a command, with input for it when there is any.
func (d *desk) stead(input string, args ...string) lab.Output {
	d.Helper()
	var stdout, stderr bytes.Buffer
	c := d.node.Command(d.Context(), append([]string{"stead"}, args...)...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
	err := c.Run()
	require.NotNil(d, c.ProcessState, "stead %q: %v", args, err)
	return lab.Output{Stdout: stdout.String(), Stderr: stderr.String(), Code: lab.ExitCode(c.ProcessState)}
}

// service is a declaration for all nodes of a mesh of one. Its unit, absent, is
// NAME.service.
type service struct {
	name    string
	fields  string // further lines of it
	content string // of its unit file
}

func (s service) String() string {
	doc := fmt.Sprintf("---\nshape: service\nname: %s\nall: true\n%s", s.name, s.fields)
	if doc[len(doc)-1] != '\n' {
		doc += "\n"
	}
	if s.content != "" {
		doc += "content: |\n  " + strings.TrimSuffix(strings.ReplaceAll(s.content, "\n", "\n  "), "  ")
	}
	return doc
}

// service declares the unit that bears the test's name, with this suffix.
func (d *desk) service(suffix, fields, content string) service {
	return service{d.name(suffix), fields, content}
}

// apply declares, all at once. The mesh must take it.
func (d *desk) apply(docs ...service) {
	d.Helper()
	var text strings.Builder
	for _, s := range docs {
		text.WriteString(s.String())
	}
	d.applyText(text.String())
}

// applyText declares what is written in YAML.
func (d *desk) applyText(text string) {
	d.Helper()
	out := d.stead(text, "apply", "-f", "-", "--yes", "-o", "json")
	require.Zero(d, out.Code, "apply:\n%s%s%s", text, out.Stdout, out.Stderr)
	var reply struct {
		Changes []struct {
			Name, UID  string
			Generation uint64
		}
	}
	require.NoError(d, json.Unmarshal([]byte(out.Stdout), &reply), out.Stdout)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range reply.Changes {
		d.declared[c.Name] = given{c.UID, c.Generation}
	}
}

// refused declares what the mesh must not take; it returns the words.
func (d *desk) refused(docs ...service) string {
	d.Helper()
	var text strings.Builder
	for _, s := range docs {
		text.WriteString(s.String())
	}
	out := d.stead(text.String(), "apply", "-f", "-", "--yes")
	require.Equal(d, 1, out.Code, "apply: %s%s", out.Stdout, out.Stderr)
	require.Contains(d, out.Stderr, "error: ")
	return out.Stderr
}

// withdraw ends declarations, all when none is named, and waits until the host
// gave them up.
func (d *desk) withdraw(names ...string) {
	d.Helper()
	if len(names) == 0 {
		names = d.names()
	}
	out := d.stead("", append([]string{"withdraw", "--yes", "--force"}, names...)...)
	require.Zero(d, out.Code, "withdraw: %s%s", out.Stdout, out.Stderr)
	d.mu.Lock()
	for _, n := range names {
		delete(d.declared, n)
	}
	d.mu.Unlock()
	d.until(fmt.Sprintf("%q are given up", names), func() bool {
		return !slices.ContainsFunc(d.reports(), func(r *report.Report) bool { return slices.Contains(names, r.Name) })
	})
}

// reports are all that the host says; none when it does not answer.
func (d *desk) reports() []*report.Report {
	ctx, cancel := context.WithTimeout(d.Context(), 10*time.Second)
	defer cancel()
	st, err := host.ReadStatus(ctx, d.node.Path("/run/stead/host.sock"))
	if err != nil {
		return nil
	}
	return st.Reports
}

// report is what the host says of a declaration in the generation that was last
// applied; nil when it says nothing of it yet.
func (d *desk) report(name string) *report.Report {
	d.mu.Lock()
	want := d.declared[name]
	d.mu.Unlock()
	for _, r := range d.reports() {
		if r.Name == name && r.UID == want.uid && r.Generation == want.generation {
			return r
		}
	}
	return nil
}

// says waits until the host states this outcome and reason of a declaration, in
// words that hold all these.
func (d *desk) says(name string, o report.Outcome, why report.Reason, words ...string) *report.Report {
	d.Helper()
	var r *report.Report
	last := "there is no report of that generation"
	d.until(fmt.Sprintf("%s is %s (%s): %q", name, o, why, words), func() bool {
		if r = d.report(name); r == nil {
			return false
		}
		last = fmt.Sprintf("it is %s (%s): %s", r.Outcome, r.Reason, r.Text)
		return r.Outcome == o && r.Reason == why && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(r.Text+"\n"+r.Hint, w) })
	}, &last)
	return r
}

// converged waits until all these, or all that is declared, is converged.
func (d *desk) converged(names ...string) {
	d.Helper()
	if len(names) == 0 {
		names = d.names()
	}
	for _, n := range names {
		d.says(n, report.Converged, "")
	}
}

// again waits until the host has looked at a declaration once more.
func (d *desk) again(name string) *report.Report {
	d.Helper()
	from := time.Now()
	var r *report.Report
	d.until("the host looks at "+name+" again", func() bool {
		r = d.report(name)
		return r != nil && r.Looked.After(from)
	})
	return r
}

// quotes waits until the report of a declaration holds these lines of the log, which
// are read after the outcome is known.
func (d *desk) quotes(name string, lines ...string) {
	d.Helper()
	last := ""
	d.until(fmt.Sprintf("the report of %s quotes %q", name, lines), func() bool {
		r := d.report(name)
		if r == nil {
			return false
		}
		last = strings.Join(r.Lines, "\n")
		return !slices.ContainsFunc(lines, func(l string) bool { return !strings.Contains(last, l) })
	}, &last)
}

// steps are the actions that a report says were taken on what bears this name.
func steps(r *report.Report, action, object string) []report.Step {
	var some []report.Step
	for _, s := range r.Steps {
		if s.Action == action && strings.HasSuffix(s.Object, object) {
			some = append(some, s)
		}
	}
	return some
}

// answer decodes what the node replied to a verb that was asked with -o json.
func answer[R any](d *desk, args ...string) R {
	d.Helper()
	type told struct {
		Reply R
		Error json.RawMessage
	}
	var all struct{ Answers []told }
	d.until("an answer", func() bool { // a manager that reloads for thirty others may not say it in time
		all.Answers = nil
		out := d.stead("", append(args, "-n", hostname, "-o", "json")...)
		require.NoError(d, json.Unmarshal([]byte(out.Stdout), &all), "stead %q: %s%s", args, out.Stdout, out.Stderr)
		require.Len(d, all.Answers, 1, "stead %q: %s%s", args, out.Stdout, out.Stderr)
		return !strings.Contains(string(all.Answers[0].Error), `"class": "timeout"`)
	})
	require.Empty(d, string(all.Answers[0].Error), "stead %q", args)
	return all.Answers[0].Reply
}

// status asks the verb for one unit of the system scope.
func (d *desk) status(unit string) seats.UnitStatus {
	d.Helper()
	units := answer[seats.StatusReply](d, "status", unit, "--system").Units
	require.Len(d, units, 1)
	return units[0]
}

// unchanged applies a declaration that converged once more, as another generation,
// and wants no step of it.
func (d *desk) unchanged(s service) {
	d.Helper()
	before := d.report(s.name)
	require.NotNil(d, before)
	s.fields += "timeout: 3m\n"
	d.apply(s)
	r := d.says(s.name, report.Converged, "")
	require.Greater(d, r.Generation, before.Generation)
	require.Equal(d, before.Steps, r.Steps, "%s was right, and something was done", s.name)
}
