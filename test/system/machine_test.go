// Package system tests the host as a whole: the program of this tree, started by
// its own unit file on a real systemd in a lab node, and judged from outside.
//
// Each test boots its own node, and each file is named for what it shows. A test
// declares by writing files, as an operator does, and believes what systemd, the
// disk and an own connection to the bus say; the host's word alone proves nothing.
// With STEAD_CHECK=full in the environment the long ones run at full length.
// Times are printed and never judged: a bound only says when to give up.
package system

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host"
	"stead/host/report"
	"stead/test/lab"
)

const (
	folder  = "/etc/stead/declarations"
	etc     = "/etc/systemd/system"
	service = "stead-host.service"
	// patience is when a wait is given up; a loaded machine is slow.
	patience = 60 * time.Second
)

// full says that there is time for the long tests.
func full() bool { return os.Getenv("STEAD_CHECK") == "full" }

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait far more than they compute, so more of them may run at a time
	// than there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// machine is a lab node with the host installed as its own service.
type machine struct {
	*lab.Node
	t *testing.T

	files       map[string]string // what the folder of declarations holds
	generations map[string]uint64 // of each declaration in it
	declared    time.Time         // when the folder was last changed
}

// install boots a node with the program and its unit file, and a folder that
// holds no declaration. The host does not run yet. It makes the test parallel.
func install(t *testing.T) *machine {
	t.Helper()
	return installOn(t, "node")
}

// installOn gives the node a host name.
func installOn(t *testing.T, hostname string) *machine {
	t.Helper()
	t.Parallel()
	m := &machine{Node: lab.Start(t, lab.Options{Hostname: hostname}), t: t, files: map[string]string{}, generations: map[string]uint64{}}
	m.InstallStead(t)
	require.NoError(t, m.CopyIn("../../host/stead-host.service", "/usr/local/lib/systemd/system/"+service))
	m.Run(t, "mkdir", "-p", folder)
	m.Run(t, "systemctl", "daemon-reload")
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			out, err := m.Exec(ctx, "stead", "host", "status", "-o", "wide")
			t.Logf("the host says (%v):\n%s%s", err, out.Stdout, out.Stderr)
		}
	})
	return m
}

// running boots a node with these declarations, by file name, on which the host
// runs and everything is converged.
func running(t *testing.T, files map[string]string) *machine {
	t.Helper()
	m := install(t)
	m.begin(files)
	return m
}

// begin declares, starts the host, and waits until all is converged.
func (m *machine) begin(files map[string]string) {
	m.t.Helper()
	from := m.declare(files)
	m.startHost()
	m.converged(from)
}

// startHost starts the host's service; it returns when that says that it serves.
func (m *machine) startHost() {
	m.t.Helper()
	m.Run(m.t, "systemctl", "start", service)
}

// declare puts files of declarations in place, each at one blow; those whose
// text is "" go. It returns the time before.
func (m *machine) declare(files map[string]string) time.Time {
	m.t.Helper()
	m.declared = time.Now()
	for _, name := range sorted(files) {
		to := path.Join(folder, name+".yaml")
		if files[name] == "" {
			require.NoError(m.t, m.Remove(to))
			continue
		}
		require.NoError(m.t, m.WriteFile("/run/next", []byte(files[name]), 0o644))
		m.Run(m.t, "mv", "/run/next", to)
	}
	m.expect(files)
	return m.declared
}

// replace puts another folder of declarations in the place of the present one:
// files that come one by one may be taken over in parts, which are several
// applies.
func (m *machine) replace(files map[string]string) time.Time {
	m.t.Helper()
	next := folder + ".next"
	m.Run(m.t, "mkdir", next)
	for name, docs := range files {
		require.NoError(m.t, m.WriteFile(path.Join(next, name+".yaml"), []byte(docs), 0o644))
	}
	all := maps.Clone(files)
	for name := range m.files {
		if _, stays := files[name]; !stays {
			all[name] = ""
		}
	}
	m.declared = time.Now()
	m.Run(m.t, "sh", "-c", fmt.Sprintf("mv %s /run/old && mv %s %[1]s && rm -r /run/old", folder, next))
	m.expect(all)
	return m.declared
}

// expect notes which generation each declaration gets by a change of files.
func (m *machine) expect(files map[string]string) {
	before := documentsOf(m.files)
	for name, docs := range files {
		if docs == "" {
			delete(m.files, name)
		} else {
			m.files[name] = docs
		}
	}
	after := documentsOf(m.files)
	for name := range before {
		if after[name] == "" {
			delete(m.generations, name)
		}
	}
	for name, doc := range after {
		if doc != before[name] {
			m.generations[name]++
		}
	}
}

// documentsOf takes files apart into their declarations, by name.
func documentsOf(files map[string]string) map[string]string {
	all := make(map[string]string)
	for _, docs := range files {
		for doc := range strings.SplitSeq(docs, separator) {
			_, rest, _ := strings.Cut(doc, "\nname: ")
			name, _, _ := strings.Cut(rest, "\n")
			all[name] = doc
		}
	}
	return all
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// until waits for cond, and gives up after patience; why, if given, says more.
func (m *machine) until(what string, cond func() bool, why ...*string) {
	m.t.Helper()
	if !m.within(patience, cond) {
		for _, w := range why {
			what += ": " + *w
		}
		m.t.Fatalf("not within %s: %s", patience, what)
	}
}

// within is whether cond comes true in that time.
func (m *machine) within(bound time.Duration, cond func() bool) bool {
	m.t.Helper()
	for end := time.Now().Add(bound); ; time.Sleep(20 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// status asks the host over its socket.
func (m *machine) status() (host.Status, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
	defer cancel()
	return host.ReadStatus(ctx, m.Path("/run/stead/host.sock"))
}

// report is what the host says of a declaration or unit; nil when it says nothing.
func (m *machine) report(name string) *report.Report {
	st, err := m.status()
	if err != nil {
		return nil
	}
	for _, r := range st.Reports {
		if r.Name == name || string(r.Unit) == name {
			return r
		}
	}
	return nil
}

// converged waits until all that is declared, in its newest generation, or what
// is named of it, is converged by looks after from, and what was withdrawn is
// gone. It returns how long that took.
func (m *machine) converged(from time.Time, names ...string) time.Duration {
	m.t.Helper()
	last := ""
	m.until("converged", func() bool {
		last = m.amiss(from, names)
		return last == ""
	}, &last)
	return time.Since(from)
}

// amiss says what is not converged; "" when all is.
func (m *machine) amiss(from time.Time, names []string) string {
	st, err := m.status()
	if err != nil {
		return err.Error()
	}
	why := st.Source.Trouble
	if len(names) == 0 && !st.Source.Accepted.After(m.declared) {
		why += "\nthe folder was not read since it was changed"
	}
	seen := make(map[string]bool)
	for _, r := range st.Reports {
		seen[r.Name] = true
		switch {
		case len(names) > 0 && !slices.Contains(names, r.Name):
		case m.generations[r.Name] == 0:
			why += fmt.Sprintf("\n%s is not declared any more", r.Unit)
		case r.Outcome != report.Converged || r.Generation != m.generations[r.Name] || len(names) > 0 && !r.Looked.After(from):
			why += fmt.Sprintf("\n%s: %s %s %s (generation %d of %d)", r.Unit, r.Outcome, r.Reason, r.Text, r.Generation, m.generations[r.Name])
		}
	}
	for name := range m.generations {
		if !seen[name] && (len(names) == 0 || slices.Contains(names, name)) {
			why += fmt.Sprintf("\n%s has no report", name)
		}
	}
	return why
}

// outcome waits until the host states this outcome and reason of a declaration.
func (m *machine) outcome(name string, o report.Outcome, why report.Reason) *report.Report {
	m.t.Helper()
	var r *report.Report
	m.until(fmt.Sprintf("%s is %s (%s)", name, o, why), func() bool {
		r = m.report(name)
		return r != nil && r.Outcome == o && r.Reason == why
	})
	return r
}

// prop asks systemd for one property of a unit.
func (m *machine) prop(unit, name string) string {
	m.t.Helper()
	return strings.TrimSpace(m.Run(m.t, "systemctl", "show", "--value", "--property="+name, "--", unit))
}

// props asks systemd for one property of many units.
func (m *machine) props(name string, units []string) []string {
	m.t.Helper()
	out := m.Run(m.t, append([]string{"systemctl", "show", "--property=" + name, "--"}, units...)...)
	var all []string
	for line := range strings.Lines(out) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+"="); is {
			all = append(all, value)
		}
	}
	require.Len(m.t, all, len(units), out)
	return all
}

// read is a file of the node; "" when it is not there.
func (m *machine) read(file string) string {
	data, err := m.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data)
}

// link is where a symbolic link of the node points; "" when there is none.
func (m *machine) link(file string) string {
	to, err := os.Readlink(m.Path(file))
	if err != nil {
		return ""
	}
	return to
}

// hostPID is the id, outside the node, of the host's process.
func (m *machine) hostPID() int {
	m.t.Helper()
	inside, err := strconv.Atoi(m.prop(service, "MainPID"))
	require.NoError(m.t, err)
	require.NotZero(m.t, inside, "the host does not run")
	return m.outside(inside)
}

// outside finds the id that a process of the node has on this machine.
func (m *machine) outside(inside int) int {
	m.t.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.PID()))
	require.NoError(m.t, err)
	entries, err := os.ReadDir("/proc")
	require.NoError(m.t, err)
	for _, e := range entries {
		if ns, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err != nil || ns != space {
			continue
		}
		data, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); f[0] == "NSpid:" && f[len(f)-1] == strconv.Itoa(inside) {
				pid, err := strconv.Atoi(e.Name())
				require.NoError(m.t, err)
				return pid
			}
		}
	}
	m.t.Fatalf("no process %d in the node", inside)
	return 0
}

// text is the declaration of a service.
type text struct {
	name    string
	fields  string // further lines of it
	content string // of its unit file
}

// sleeper is the unit file of a service that runs for long; the number makes
// one differ from another.
func sleeper(n int) string {
	return fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n[Install]\nWantedBy=multi-user.target\n", 100000+n)
}

// up declares a service that runs and is enabled.
func up(name, content string) string {
	return text{name, "ensure: running\nenabled: true\n", content}.String()
}

// String is the declaration as a YAML document.
func (d text) String() string {
	s := "shape: service\nname: " + d.name + "\n" + d.fields
	if d.content != "" {
		s += "content: |\n"
		for line := range strings.Lines(d.content) {
			s += "  " + strings.TrimSuffix(line, "\n") + "\n"
		}
	}
	return s
}

const separator = "---\n"

// documents joins declarations to one file.
func documents(all ...string) string { return strings.Join(all, separator) }
