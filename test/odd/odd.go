// Package odd makes units of all types in odd states on a node, and says what
// systemctl tells of them, in the words of host/unit: a yardstick for whatever
// tells the same by another way.
//
// Make puts the units there, a hundred and more, in some seconds, and Say entries
// into the journal that no text can hold. Names are all that is worth asking about.
// Details, Units and Files are what systemctl show, list-units and list-unit-files
// print. They ask nobody else, so nothing of stead can be wrong on both sides of a
// comparison. Compare is the comparison for whoever serves the verbs of
// node-service-manager.
package odd

import (
	_ "embed" // make.sh
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stead/host/unit"
)

//go:embed make.sh
var script string

//go:embed make-user.sh
var userScript string

// Run runs a command on the node, which must succeed, and returns its standard
// output.
type Run func(args ...string) string

// Make makes the units. The node should have nothing else to do, and is not to be
// used for anything else afterwards.
func Make(run Run) { run("bash", "-c", script) }

// MakeUser makes units of an account whose manager runs, as Make does of the system.
func MakeUser(run Run, login string) { run("bash", "-c", userScript, "odd", login) }

// AsUser is run with systemctl and journalctl as the account itself calls them, which
// may read the journal.
func AsUser(run Run, login string) Run {
	uid := strings.TrimSpace(run("id", "-u", login))
	return func(args ...string) string {
		as := []string{"setpriv", "--reuid", login, "--regid", login, "--groups", "systemd-journal", "env", "XDG_RUNTIME_DIR=/run/user/" + uid}
		switch args[0] {
		case "systemctl":
			args = append([]string{"systemctl", "--user"}, args[1:]...)
		case "sh": // a line for a shell: systemctl in it is the account's
			args = append(args[:2:2], append([]string{strings.ReplaceAll(args[2], "systemctl ", "systemctl --user ")}, args[3:]...)...)
		}
		return run(append(as, args...)...)
	}
}

// Missing are names of no unit, of every type.
var Missing = []unit.Name{
	"odd-no.service", "odd-no.socket", "odd-no.target", "dev-odd_no.device", "run-odd_no.mount", "run-odd_no.automount",
	"dev-odd_no.swap", "odd-no.timer", "odd-no.path", "odd-no.slice", "odd-no.scope", "odd-no@x.service",
}

// Names are the primary and other names of all units that are loaded, of all that
// have a file whose name holds "odd", and Missing. Templates are not among them.
func Names(run Run) []unit.Name {
	names := slices.Clone(Missing)
	for _, u := range Units(run, "--all") {
		names = append(names, u.Name)
	}
	for _, f := range Files(run, "*odd*") {
		if !f.Name.IsTemplate() {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Units is what systemctl list-units says, sorted by name. Jobs have no id there.
func Units(run Run, args ...string) []unit.Listed {
	var rows []struct{ Unit, Load, Active, Sub, Job, Description string }
	text := run(append([]string{"systemctl", "list-units", "--full", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return []unit.Listed{{Description: fmt.Sprintf("systemctl says %.200q: %v", text, err)}} // which compares to nothing
	}
	out := make([]unit.Listed, 0, len(rows))
	for _, r := range rows {
		out = append(out, unit.Listed{
			Name: unit.Name(r.Unit), Description: r.Description, Load: unit.LoadState(r.Load), Active: unit.ActiveState(r.Active), Sub: r.Sub,
			Job: unit.Job{Type: unit.JobType(r.Job)},
		})
	}
	slices.SortFunc(out, func(a, b unit.Listed) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out
}

// Files is what systemctl list-unit-files says, sorted by name. It tells no paths.
func Files(run Run, args ...string) []unit.ListedFile {
	var rows []map[string]*string
	text := run(append([]string{"systemctl", "list-unit-files", "--full", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return []unit.ListedFile{{Path: fmt.Sprintf("systemctl says %.200q: %v", text, err)}} // which compares to nothing
	}
	out := make([]unit.ListedFile, 0, len(rows))
	for _, r := range rows {
		l := unit.ListedFile{Name: unit.Name(cell(r, "unit_file")), State: cell(r, "state")}
		for _, column := range []string{"preset", "vendor_preset"} { // the latter on systemd 247
			l.Preset += cell(r, column)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b unit.ListedFile) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out
}

// cell is one of a row's, "" for null.
func cell(row map[string]*string, column string) string {
	if p := row[column]; p != nil {
		return *p
	}
	return ""
}

// Details is what systemctl show says, but for conditions, which it does not
// print, and for why a figure is not there: Unset has no reasons.
func Details(run Run, name unit.Name) unit.Details {
	p := properties(run("systemctl", "show", "--all", "--timestamp=us+utc", "--", string(name)))
	d := unit.Details{
		ID: unit.Name(p["Id"]), Names: p.names("Names"), Description: p["Description"], Documents: p.words("Documentation"),
		Load: unit.LoadState(p["LoadState"]), Active: unit.ActiveState(p["ActiveState"]), Sub: p["SubState"],
		Enablement: p["UnitFileState"], Preset: p["UnitFilePreset"], Fragment: p["FragmentPath"], DropIns: p.words("DropInPaths"),
		NeedReload: p["NeedDaemonReload"] == "yes", Invocation: p["InvocationID"],
		Triggers: p.names("Triggers"), TriggeredBy: p.names("TriggeredBy"), Result: p["Result"], Unset: map[string]string{},
	}
	if _, words, ok := strings.Cut(p["LoadError"], " "); ok {
		d.LoadError = strings.Trim(words, `"`)
	}
	if id := p["Job"]; id != "" {
		d.Job = job(run, id)
	}
	p.since(&d)
	for key, into := range map[string]**uint64{"MemoryCurrent": &d.Memory, "CPUUsageNSec": &d.CPU, "TasksCurrent": &d.Tasks} {
		if figure, err := strconv.ParseUint(p[key], 10, 64); err == nil {
			*into = &figure
		}
	}
	p.process(&d)
	for key, unset := range map[string]bool{
		unit.FigureSince: d.Since == nil, unit.FigureMainPID: d.MainPID == nil, unit.FigureMemory: d.Memory == nil, unit.FigureCPU: d.CPU == nil,
		unit.FigureTasks: d.Tasks == nil, unit.FigureRestarts: d.Restarts == nil, unit.FigureExitStatus: d.ExitStatus == nil,
	} {
		if unset {
			d.Unset[key] = ""
		}
	}
	return d
}

// shown is the output of systemctl show.
type shown map[string]string

func properties(text string) shown {
	p := shown{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			p[key] = value
		}
	}
	return p
}

// words are those of a list, which systemctl quotes as a shell would.
func (p shown) words(key string) []string {
	var out []string
	var word strings.Builder
	text, quoted, begun := p[key], false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted, begun = !quoted, true
		case c == '\\' && quoted && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case c == ' ' && !quoted:
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

func (p shown) names(key string) []unit.Name {
	out := []unit.Name{}
	for _, n := range p.words(key) {
		out = append(out, unit.Name(n))
	}
	slices.Sort(out)
	return out
}

// since is the time that systemctl status shows behind the active state.
func (p shown) since(d *unit.Details) {
	key := "ActiveExitTimestamp"
	switch d.Active {
	case unit.Active, unit.Reloading, unit.Refreshing:
		key = "ActiveEnterTimestamp"
	case unit.Inactive, unit.FailedState:
		key = "InactiveEnterTimestamp"
	case unit.Activating:
		key = "InactiveExitTimestamp"
	}
	if at, err := time.Parse("Mon 2006-01-02 15:04:05.999999 MST", p[key]); err == nil {
		at = at.UTC()
		d.Since = &at
	}
}

func (p shown) process(d *unit.Details) {
	number := func(key string) (int, bool) {
		n, err := strconv.Atoi(p[key])
		return n, err == nil
	}
	if n, ok := number("NRestarts"); ok {
		r := uint32(n) //nolint:gosec // it was one before it was printed
		d.Restarts = &r
	}
	if n, ok := number("MainPID"); ok && n != 0 {
		pid := uint32(n) //nolint:gosec // as above
		d.MainPID = &pid
	}
	code, _ := number("ExecMainCode")
	if status, ok := number("ExecMainStatus"); ok && code != 0 {
		d.ExitCode, d.ExitStatus = map[int]string{1: "exited", 2: "killed", 3: "dumped"}[code], &status
	}
}

// job is what systemctl list-jobs says of a job.
func job(run Run, id string) unit.Job {
	for line := range strings.Lines(run("systemctl", "list-jobs", "--plain", "--no-legend", "--full")) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == id {
			number, _ := strconv.ParseUint(id, 10, 32)
			return unit.Job{ID: uint32(number), Type: unit.JobType(f[2])}
		}
	}
	return unit.Job{}
}
