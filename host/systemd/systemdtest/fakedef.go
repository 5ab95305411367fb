package systemdtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"stead/host/unit"
)

// definition is what the fake understands of a unit's files.
type definition struct {
	load  unit.LoadState
	words string // why it is not loaded

	description string
	documents   []string
	fragment    string
	dropIns     []string

	kind        string // Type=
	start       []program
	reload      []program
	stop        []program
	restart     string
	restartSec  time.Duration
	remain      bool
	startFor    time.Duration // TimeoutStartSec; 0 for ever
	noStart     bool
	noStop      bool
	limitBurst  int
	limitWithin time.Duration
	conditions  []condition
	triggers    unit.Name // what a timer, socket or path starts
}

// program is a command as the fake runs it: /bin/true, /bin/false and /bin/sleep
// do what they say, one whose file does not exist cannot be executed, and all
// others run until they are stopped.
type program struct {
	ends  bool
	after time.Duration
	how   exit
}

// condition is a ConditionPathExists= or AssertPathExists= line.
type condition struct {
	assert bool
	text   string // "ConditionPathExists=!/x"
	path   string
	negate bool
}

func (c condition) met() bool {
	_, err := os.Stat(c.path)
	return (err == nil) != c.negate
}

// reloads reports whether a reload job is possible.
func (d *definition) reloads() bool { return len(d.reload) > 0 || d.kind == "notify-reload" }

// parse reads what file says. A setting that the fake does not know is ignored,
// as systemd ignores one that it does not know.
func (d *definition) parse(n unit.Name, file unit.File, broken string) {
	bad := func() {
		d.load, d.words = unit.BadSetting, fmt.Sprintf("Unit %s has a bad unit file setting.", n)
	}
	if broken != "" {
		bad()
		return
	}
	if v, ok := file.Last("Unit", "Description"); ok && v != "" {
		d.description = v
	}
	d.documents = file.List("Unit", "Documentation")
	d.limitBurst, d.limitWithin = 5, 10*time.Second
	if v, ok := file.Last("Unit", "StartLimitBurst"); ok {
		d.limitBurst, _ = strconv.Atoi(v)
	}
	if v, ok := file.Last("Unit", "StartLimitIntervalSec"); ok {
		d.limitWithin = span(v, d.limitWithin)
	}
	d.noStart, d.noStop = yes(file, "Unit", "RefuseManualStart"), yes(file, "Unit", "RefuseManualStop")
	for _, key := range []string{"ConditionPathExists", "AssertPathExists"} {
		for _, v := range values(file, "Unit", key) {
			path, negate := strings.CutPrefix(v, "!")
			d.conditions = append(d.conditions, condition{key[0] == 'A', key + "=" + v, path, negate})
		}
	}
	switch n.Type() {
	case "service":
		if !d.parseService(file) {
			bad()
		}
	case "timer", "socket", "path":
		d.triggers = unit.Name(n.Stem() + ".service")
		if v, ok := file.Last(map[string]string{"timer": "Timer", "socket": "Socket", "path": "Path"}[n.Type()], "Unit"); ok {
			d.triggers = unit.Name(v)
		}
	}
}

// parseService reads [Service]; false when systemd would not load it.
func (d *definition) parseService(file unit.File) bool {
	d.kind = "simple"
	if v, ok := file.Last("Service", "Type"); ok {
		d.kind = v
	}
	d.start, d.reload, d.stop = programs(file, "ExecStart"), programs(file, "ExecReload"), programs(file, "ExecStop")
	d.remain = yes(file, "Service", "RemainAfterExit")
	d.restart, _ = file.Last("Service", "Restart")
	d.restartSec = 100 * time.Millisecond
	if v, ok := file.Last("Service", "RestartSec"); ok {
		d.restartSec = span(v, d.restartSec)
	}
	d.startFor = 90 * time.Second
	if d.kind == "oneshot" {
		d.startFor = 0
	}
	for _, key := range []string{"TimeoutSec", "TimeoutStartSec"} {
		if v, ok := file.Last("Service", key); ok {
			d.startFor = span(v, d.startFor)
		}
	}
	_, named := file.Last("Service", "BusName")
	switch {
	case len(d.start) == 0 && len(d.stop) == 0 && !d.remain, len(d.start) == 0 && d.kind != "oneshot":
		return false
	case len(d.start) > 1 && d.kind != "oneshot":
		return false
	case d.kind == "dbus" && !named:
		return false
	case d.kind == "oneshot" && (d.restart == "always" || d.restart == "on-success"):
		return false
	}
	return true
}

func yes(file unit.File, section, key string) bool {
	v, _ := file.Last(section, key)
	b, _ := unit.ParseBool(v)
	return b
}

func programs(file unit.File, key string) []program {
	var out []program
	for _, line := range values(file, "Service", key) {
		out = append(out, parseProgram(line))
	}
	return out
}

// values are those that count: an empty one takes back all before it.
func values(file unit.File, section, key string) []string {
	var out []string
	for _, v := range file.Values(section, key) {
		if out = append(out, v); v == "" {
			out = nil
		}
	}
	return out
}

func parseProgram(line string) program {
	words := strings.Fields(strings.TrimLeft(line, "@:+!"))
	if len(words) == 0 {
		return program{}
	}
	name, forgiven := strings.CutPrefix(words[0], "-")
	p := program{}
	switch strings.TrimPrefix(name, "/usr") {
	case "/bin/true":
		p = program{ends: true}
	case "/bin/false":
		p = program{ends: true, how: exit{status: 1}}
	case "/bin/sleep":
		if len(words) > 1 && words[1] != "infinity" {
			p = program{ends: true, after: span(words[1], 0)}
		}
	default:
		if _, err := os.Stat(name); err != nil {
			p = program{ends: true, how: exit{status: 203}}
		}
	}
	p.how.code = exited
	if forgiven {
		p.how.status = 0
	}
	return p
}

// span reads a time span such as "90", "300ms", "1min" or "infinity", which is
// 0; or is what a span that it does not know means.
func span(s string, or time.Duration) time.Duration {
	if s == "infinity" {
		return 0
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	if d, err := time.ParseDuration(strings.NewReplacer("min", "m", " ", "").Replace(s)); err == nil {
		return d
	}
	return or
}
