package shape

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"stead/host/unit"
)

// Bounds of addressing.
const (
	MaxNodes  = 4096
	MaxLabels = 64
	maxLabel  = 63 // bytes of a DNS label, a label's key and its value
)

// complete fills in what was not declared. moded says that a file's mode was.
func (s *Declaration) complete(moded bool) {
	if s.Scope == "" {
		s.Scope = unit.System
	}
	if s.OnWithdraw == "" {
		s.OnWithdraw = Restore
	}
	if f := s.File; f != nil {
		if !moded {
			f.Mode = defaultMode
			if s.Sensitive {
				f.Mode = secretMode
			}
		}
		if f.Owner == "" && s.Scope == unit.System {
			f.Owner = "root"
		}
		return
	}
	if s.Unit == "" && s.Name != "" {
		s.Unit = unit.Name(s.Name + ".service")
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if len(s.DropIns) == 0 {
		s.DropIns = nil
	}
}

// judge applies the rules to a complete declaration. A path for which bad
// answers true has been complained about already.
type judge struct {
	*Declaration
	bad    func(path string) bool
	report func(path string, textLine int, rule, cure string)
	// modules says that names of modules' declarations are names.
	modules bool
}

func (j judge) all() {
	j.name()
	j.addressing()
	word(j, "on_withdraw", string(j.OnWithdraw), withdrawals())
	if !slices.Contains(scopes(), string(j.Scope)) {
		word(j, "scope", cmp.Or(string(j.Scope), "\x00"), scopes())
	}
	if j.File != nil {
		j.declaredFile()
		return
	}
	j.unit()
	j.values()
	j.files()
	j.triggers()
	j.contradictions()
}

func (j judge) fail(path, rule, cure string) {
	if !j.bad(path) {
		j.report(path, 0, rule, cure)
	}
}

func (j judge) name() {
	const cure = "use 1 to 63 of a-z, 0-9 and -, with no - at either end"
	name := j.label()
	switch {
	case name == "":
		j.fail("name", "missing", "give the declaration a name: it is its identity")
	case j.modules && OfModule(j.Name) != "":
	case strings.ContainsRune(name, '.'):
		j.fail("name", fmt.Sprintf("%.80q: a name with a dot, MODULE.NAME, is kept for modules", name), "use - in its place")
	case !dnsLabel(name):
		j.fail("name", fmt.Sprintf("%.80q is not a DNS label", name), cure)
	}
}

// label is the name as it is declared.
func (s *Declaration) label() string {
	if s.File == nil {
		return s.Name
	}
	return strings.TrimPrefix(s.Name, FilePrefix)
}

func dnsLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (j judge) unit() {
	if j.bad("unit") || j.Unit == unit.Name(j.Name+".service") && !dnsLabel(j.Name) && !j.modules || j.Unit == "" && j.Name == "" {
		return // complained about, there or at the name it was made of
	}
	n, err := unit.ParseName(string(j.Unit))
	if err != nil {
		rule, cure := nameProblem(string(j.Unit), err)
		j.fail("unit", rule, cure)
		return
	}
	if why, yes := Protected(j.Scope, n); yes {
		j.fail("unit", fmt.Sprintf("%q is protected: %s", n, why), "declare another unit; this one is not changed through stead")
		return
	}
	if t := n.Type(); t == "device" || t == "scope" {
		j.fail("unit", fmt.Sprintf("%q is a %s unit, which systemd makes of what it finds: it has no file to declare and is not started", n, t), "declare a unit of another type")
	}
	j.template(n)
	if len(j.DropIns) > 0 && len(n)+len(".d") > unit.NameMax {
		j.fail("unit", fmt.Sprintf("it has %d bytes, so that the folder of its drop-ins would have more than %d, which no file system takes", len(n), unit.NameMax),
			"use a name of at most 253 bytes, or no dropins")
	}
}

// template refuses for a bare template what only its instances have.
func (j judge) template(n unit.Name) {
	if !n.IsTemplate() {
		return
	}
	for _, f := range []struct {
		field string
		given bool
	}{{"ensure", j.Ensure != Unmanaged}, {"on_change", j.OnChange != ""}, {"triggers", j.Triggers != nil}} {
		if f.given {
			j.fail(f.field, fmt.Sprintf("%q is a bare template: a bare template may have content and enablement, never activity", n),
				fmt.Sprintf("declare an instance, such as %s, or leave %s out", n.WithInstance("one"), f.field))
		}
	}
}

// nameProblem puts the words of unit.ParseName behind the name.
func nameProblem(s string, err error) (rule, cure string) {
	if strings.ContainsRune(s, '/') {
		full, _, _ := fullName(path.Base(s))
		if _, err := unit.ParseName(string(full)); err != nil {
			full = "web.service"
		}
		return fmt.Sprintf("%.80q is a path", s), fmt.Sprintf("a unit is named by its full name, such as %.80s", full)
	}
	why := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		why = cause.Error()
	}
	if rest, ok := strings.CutPrefix(why, "it "); ok {
		return fmt.Sprintf("%.80q %s", s, rest), "use a name by systemd's grammar, such as web.service"
	}
	return fmt.Sprintf("%.80q: %s", s, why), "use a name by systemd's grammar, such as web.service"
}

func (j judge) values() {
	word(j, "ensure", string(j.Ensure), activities())
	word(j, "on_change", string(j.OnChange), changes())
	word(j, "daemon_reload", string(j.DaemonReload), reloadWords())
	if p := string(j.Provider); p != "" && !slices.Contains(providerWords(), p) {
		j.fail("provider", fmt.Sprintf("%.60q is no provider: units are applied by systemd, and others cannot be registered yet", p), "write auto or systemd, or leave it out")
	}
	if j.Timeout < MinTimeout || j.Timeout > MaxTimeout {
		j.fail("timeout", fmt.Sprintf("%s is out of bounds", j.Timeout), "write a time from 1s to 24h")
	}
}

// auto is the word for the default of daemon_reload and provider.
const auto = "auto"

func reloadWords() []string { return []string{auto, string(NeverReload)} }

func providerWords() []string { return []string{auto, string(Systemd)} }

func scopes() []string { return []string{string(unit.System), string(unit.User)} }

func activities() []string { return []string{string(Running), string(Stopped), string(Restarted)} }

func changes() []string {
	return []string{string(RestartOnChange), string(ReloadOnChange), string(ReloadOrRestart), string(IgnoreChange)}
}

func withdrawals() []string { return []string{string(Restore), string(Release)} }

// either joins words by commas, the last one by "or".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// word refuses a value that is none of words; "" is absent.
func word(j judge, path, value string, words []string) {
	if value == "" || slices.Contains(words, value) {
		return
	}
	cure := "write " + either(words)
	if near := Nearest(strings.ToLower(value), words); near != "" {
		cure = "did you mean " + near + "?"
	}
	j.fail(path, fmt.Sprintf("%.60q is no value of this field", value), cure)
}

func (j judge) addressing() {
	var given []string
	for _, a := range []struct {
		field string
		given bool
	}{{"nodes", j.Nodes != nil}, {"labels", j.Labels != nil}, {"all", j.All}} {
		if a.given {
			given = append(given, a.field)
		}
	}
	if len(given) > 1 {
		j.report(given[1], 0, strings.Join(given, " and ")+" are declared", "declare at most one of nodes, labels and all")
	}
	j.nodes()
	j.labels()
}

func (j judge) nodes() {
	if j.Nodes != nil && (len(j.Nodes) == 0 || len(j.Nodes) > MaxNodes) {
		j.fail("nodes", fmt.Sprintf("%d nodes are named", len(j.Nodes)), fmt.Sprintf("name 1 to %d, or leave it out", MaxNodes))
	}
	if j.bad("nodes") {
		return
	}
	first := map[string]int{}
	for i, n := range j.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if !dnsLabel(n) {
			j.fail(path, fmt.Sprintf("%.80q is no node name", n), "a node is named by a DNS label: 1 to 63 of a-z, 0-9 and -")
		}
		if at, twice := first[n]; twice {
			j.fail(path, fmt.Sprintf("%.80q is named twice, first at nodes[%d]", n, at), "delete one of them")
			continue
		}
		first[n] = i
	}
}

func (j judge) labels() {
	if j.Labels != nil && (len(j.Labels) == 0 || len(j.Labels) > MaxLabels) {
		j.fail("labels", fmt.Sprintf("%d labels are named", len(j.Labels)), fmt.Sprintf("name 1 to %d, or leave it out", MaxLabels))
	}
	const cure = "use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends"
	for _, key := range slices.Sorted(maps.Keys(j.Labels)) {
		path := "labels." + printable(key)
		if !LabelWord(key) {
			j.fail(path, fmt.Sprintf("%.80q is no key of a label", key), cure)
		} else if value := j.Labels[key]; !LabelWord(value) {
			j.fail(path, fmt.Sprintf("%.80q is no value of a label", value), cure)
		}
	}
}

// LabelWord reports whether s can be the key or the value of a label: 1 to 63
// letters, digits, -, _ and ., with a letter or digit at both ends.
func LabelWord(s string) bool {
	const ends = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if s == "" || len(s) > maxLabel || strings.Trim(s, ends+"-_.") != "" {
		return false
	}
	return strings.IndexByte(ends, s[0]) >= 0 && strings.IndexByte(ends, s[len(s)-1]) >= 0
}

// contradictions refuses a declaration that asks for nothing, and one that asks
// for what a masked unit cannot have.
func (j judge) contradictions() {
	aspects := []string{"content", "dropins", "ensure", "enabled", "masked", "triggers"}
	given := j.Content != nil || len(j.DropIns) > 0 || j.Ensure != Unmanaged || j.Enabled != nil || j.Masked != nil || len(j.Triggers) > 0
	if !given && !slices.ContainsFunc(aspects, j.bad) {
		j.report("", 0, "it declares nothing", "declare at least one of content, dropins, ensure, enabled, masked and triggers, or delete it")
	}
	if j.Masked == nil || !*j.Masked {
		return
	}
	if j.Ensure == Running || j.Ensure == Restarted {
		j.fail("ensure", fmt.Sprintf("masked: true and %s are declared, and a masked unit does not run", j.Ensure), "write masked: false, or leave one of them out")
	}
	if j.Enabled != nil && *j.Enabled {
		j.fail("enabled", "masked: true and enabled: true are declared, and a masked unit is not enabled", "write masked: false, or leave one of them out")
	}
}
