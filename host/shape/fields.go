package shape

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"stead/host/unit"
)

// text reads a text at path. Nothing else is made a text of.
func (r *reading) text(path string, n *yaml.Node) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		r.literal[path] = n.Style&yaml.LiteralStyle != 0
		return n.Value, true
	}
	cure := "write a text"
	if n.Kind == yaml.ScalarNode {
		cure = fmt.Sprintf("put it in quotes: %.60q", n.Value)
	}
	r.wrong(path, n, "a text", cure)
	return "", false
}

// wrong reports a wrong type, but for what foreign has reported.
func (r *reading) wrong(path string, n *yaml.Node, want, cure string) {
	if n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 && !coreTag(n) {
		r.bad[path] = true
		return
	}
	r.fail(path, kindOf(n)+" where "+want+" is wanted", cure)
}

func (r *reading) boolean(path string, n *yaml.Node) (value, ok bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && (n.Value == "true" || n.Value == "false") {
		return n.Value == "true", true
	}
	cure := "write true or false"
	if n.Kind == yaml.ScalarNode {
		if v, err := unit.ParseBool(n.Value); err == nil {
			cure = fmt.Sprintf("write %t: only true and false, without quotes, are truth values", v)
		}
	}
	r.wrong(path, n, "true or false", cure)
	return false, false
}

// shape reads which shape the document is of; which one it is read as was settled
// before.
func (r *reading) shape(n *yaml.Node) {
	s, ok := r.text("shape", n)
	if _, known := shapeOf(s); ok && !known {
		names := make([]string, 0, 2)
		for _, k := range shapes() {
			names = append(names, k.Name)
		}
		cure := "write shape: " + either(names)
		if near := Nearest(strings.ToLower(s), names); near != "" {
			cure = "did you mean " + near + "?"
		}
		r.fail("shape", fmt.Sprintf("this version's vocabulary has no shape %.60q", s), cure)
	}
}

func (r *reading) name(n *yaml.Node) {
	if s, ok := r.text("name", n); ok && s != "" {
		r.declared.Name = s
		if r.declared.File != nil {
			r.declared.Name = FilePrefix + s
		}
	}
}

func (r *reading) unit(n *yaml.Node) {
	s, ok := r.text("unit", n)
	if !ok {
		return
	}
	full, rule, cure := fullName(s)
	if s == "" {
		rule, cure = "it is empty", "write a unit name, or leave it out: it is the name with .service then"
	}
	if rule != "" {
		r.fail("unit", rule, cure)
		return
	}
	r.declared.Unit = full
}

func (r *reading) nodes(n *yaml.Node) {
	r.declared.Nodes = r.list("nodes", n, "write a list: [web1, web2]")
}

func (r *reading) triggers(n *yaml.Node) {
	r.declared.Triggers = r.list("triggers", n, "write a list: [/etc/web.conf]")
}

// list reads a list of texts; nil is none.
func (r *reading) list(field string, n *yaml.Node, cure string) []string {
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode {
			cure = fmt.Sprintf("write a list: [%.60s]", printable(n.Value))
		}
		r.wrong(field, n, "a list", cure)
		return nil
	}
	all := make([]string, 0, len(n.Content))
	for i, c := range n.Content {
		path := fmt.Sprintf("%s[%d]", field, i)
		r.lines[path] = c.Line + r.offset
		if s, ok := r.text(path, c); ok {
			all = append(all, s)
		} else {
			r.bad[field] = true
		}
	}
	return all
}

func (r *reading) labels(n *yaml.Node) {
	r.declared.Labels = r.texts("labels", n, "write a map: {role: web}")
}

func (r *reading) everywhere(n *yaml.Node) {
	r.declared.All, _ = r.boolean("all", n)
}

func (r *reading) content(n *yaml.Node) {
	if s, ok := r.text("content", n); ok {
		r.declared.Content = &s
	}
}

func (r *reading) dropins(n *yaml.Node) {
	r.declared.DropIns = r.texts("dropins", n, "write a map of file names to texts")
}

// texts reads a map of texts; a null value is absent.
func (r *reading) texts(path string, n *yaml.Node, cure string) map[string]string {
	if n.Kind != yaml.MappingNode {
		r.wrong(path, n, "a map", cure)
		return nil
	}
	all := map[string]string{}
	for key, value := range pairs(n) {
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.ShortTag() != "!!str" {
			r.bad[path] = true
			if key.Tag != "!!merge" && key.Kind != yaml.AliasNode {
				r.report(key.Line+r.offset, path, kindOf(key)+" where a text is wanted", fmt.Sprintf("put it in quotes: %.60q", key.Value))
			}
			continue
		}
		below := path + "." + printable(key.Value)
		if r.twice(below, key) {
			r.bad[path] = true
			continue
		}
		r.lines[below] = value.Line + r.offset
		if null(value) {
			continue
		}
		if s, ok := r.text(below, value); ok {
			all[key.Value] = s
		} else {
			r.bad[path] = true
		}
	}
	return all
}

// word reads a text that is one word of words; which of them is a rule. "" is none.
func (r *reading) word(path string, n *yaml.Node, words []string) string {
	s, ok := r.text(path, n)
	if ok && s == "" {
		r.fail(path, "it is empty", "write "+either(words)+", or leave it out")
	}
	return s
}

func (r *reading) scope(n *yaml.Node) {
	r.declared.Scope = unit.Scope(r.word("scope", n, scopes()))
}

func (r *reading) ensure(n *yaml.Node) { r.activity("ensure", n) }

// state is the old name of ensure.
func (r *reading) state(n *yaml.Node) { r.activity("state", n) }

// activity reads ensure under either of its names.
func (r *reading) activity(name string, n *yaml.Node) {
	if r.ensureAs != "" {
		r.fail("state", "ensure and state are declared, and state is the old name of ensure", "delete state")
		return
	}
	r.ensureAs = name
	r.declared.Ensure = Ensure(r.word(name, n, activities()))
	r.bad["ensure"] = r.bad[name]
}

func (r *reading) enabled(n *yaml.Node) {
	if v, ok := r.boolean("enabled", n); ok {
		r.declared.Enabled = &v
	}
}

func (r *reading) masked(n *yaml.Node) {
	if v, ok := r.boolean("masked", n); ok {
		r.declared.Masked = &v
	}
}

func (r *reading) onChange(n *yaml.Node) {
	r.declared.OnChange = OnChange(r.word("on_change", n, changes()))
}

func (r *reading) timeout(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		r.fail("timeout", fmt.Sprintf("the number %.40s has no unit", n.Value), fmt.Sprintf("write %.40ss for seconds", n.Value))
		return
	}
	s, ok := r.text("timeout", n)
	if !ok {
		return
	}
	d, err := parseDuration(s)
	switch {
	case err != nil:
		r.fail("timeout", fmt.Sprintf("%.60q %v", s, err), "write whole numbers with units, such as 90s, 2m or 1h30m")
	case d < MinTimeout || d > MaxTimeout:
		r.fail("timeout", fmt.Sprintf("%.60q is out of bounds", s), "write a time from 1s to 24h")
	default:
		r.declared.Timeout = d
	}
}

func (r *reading) onWithdraw(n *yaml.Node) {
	r.declared.OnWithdraw = OnWithdraw(r.word("on_withdraw", n, withdrawals()))
}

// fullName makes a unit name of what was declared: ".service" is added to a name
// without the suffix of a unit type. It refuses a suffix that is nearly one.
func fullName(s string) (n unit.Name, rule, cure string) {
	dot := strings.LastIndexByte(s, '.')
	if s == "" || strings.ContainsRune(s, '/') {
		return unit.Name(s), "", "" // the grammar of names says it better
	}
	if _, err := unit.ParseName("x." + s[dot+1:]); err == nil && dot >= 0 {
		return unit.Name(s), "", ""
	}
	if dot >= 0 {
		if near := Nearest(s[dot+1:], unitTypes()); near != "" {
			return "", fmt.Sprintf("%.80q has no suffix of a unit type", s), fmt.Sprintf("did you mean %.80q? otherwise write %.80q", s[:dot+1]+near, s+".service")
		}
	}
	return unit.Name(s + ".service"), "", ""
}

func unitTypes() []string {
	return []string{"service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope"}
}

func (r *reading) daemonReload(n *yaml.Node) {
	if s := r.word("daemon_reload", n, reloadWords()); s != auto {
		r.declared.DaemonReload = DaemonReload(s)
	}
}

func (r *reading) provider(n *yaml.Node) {
	if s := r.word("provider", n, providerWords()); s != auto {
		r.declared.Provider = Provider(s)
	}
}

func (r *reading) sensitive(n *yaml.Node) {
	r.declared.Sensitive, _ = r.boolean("sensitive", n)
}

func (r *reading) path(n *yaml.Node) { r.declared.File.Path, _ = r.text("path", n) }

func (r *reading) owner(n *yaml.Node) { r.declared.File.Owner = r.login("owner", n) }

func (r *reading) group(n *yaml.Node) { r.declared.File.Group = r.login("group", n) }

// login reads a name that the node has; "" is none.
func (r *reading) login(path string, n *yaml.Node) string {
	s, ok := r.text(path, n)
	if ok && s == "" {
		r.fail(path, "it is empty", "write a name that the node has, or leave it out")
	}
	return s
}

// mode reads four octal digits as they stand: YAML would take them for a number,
// of whichever base.
func (r *reading) mode(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!int" {
		r.wrong("mode", n, "a mode", modeCure)
		return
	}
	mode, rule := parseMode(n.Value)
	if rule != "" {
		r.fail("mode", rule, modeCure)
		return
	}
	r.declared.File.Mode, r.moded = mode, true
}
