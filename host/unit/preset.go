package unit

import (
	"slices"
	"strings"
)

// The presets of a unit file.
const (
	PresetEnabled  = "enabled"
	PresetDisabled = "disabled"
	PresetIgnored  = "ignored"
)

// Presets are the rules that say whether a unit file is meant to be enabled
// (systemd.preset(5)). Its zero value has none, which enables everything. Values
// are never changed once they are made.
type Presets struct{ rules []presetRule }

type presetRule struct {
	pattern   string
	instances []string // of the template that pattern then is
	preset    string
}

// ParsePresets reads the texts of preset files, which count in the order in
// which they come. A line that is no rule is skipped, as systemd skips it.
func ParsePresets(texts ...string) Presets {
	var p Presets
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if rule, ok := parsePreset(strings.Trim(line, space)); ok {
				p.rules = append(p.rules, rule)
			}
		}
	}
	return p
}

func parsePreset(line string) (presetRule, bool) {
	if line == "" || line[0] == '#' || line[0] == ';' {
		return presetRule{}, false
	}
	word, rest := line, ""
	if i := strings.IndexAny(line, space); i >= 0 {
		word, rest = line[:i], strings.TrimLeft(line[i:], space)
	}
	switch word {
	case "disable":
		return presetRule{pattern: rest, preset: PresetDisabled}, rest != ""
	case "ignore":
		return presetRule{pattern: rest, preset: PresetIgnored}, rest != ""
	case "enable":
	default:
		return presetRule{}, false
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return presetRule{}, false
	}
	rule := presetRule{pattern: words[0], instances: words[1:], preset: PresetEnabled}
	if len(rule.instances) > 0 && (CheckName(rule.pattern) != nil || !Name(rule.pattern).IsTemplate()) {
		return presetRule{}, false
	}
	return rule, true
}

// Of says what is meant for a unit file: by the first rule that matches its name,
// or enabled when none does.
func (p Presets) Of(n Name) string {
	for _, r := range p.rules {
		if r.matches(n) {
			return r.preset
		}
	}
	return PresetEnabled
}

// matches also reports true for a template of which instances are meant.
func (r presetRule) matches(n Name) bool {
	if len(r.instances) > 0 && n.Template() == Name(r.pattern) {
		if n.IsTemplate() || slices.Contains(r.instances, n.Instance()) {
			return true
		}
	}
	return Match(r.pattern, string(n))
}

// HasPreset reports whether systemctl shows a preset for a unit file in that
// state: for the others nobody has a choice.
func HasPreset(state string) bool {
	switch state {
	case "alias", "static", "generated", "transient":
		return false
	}
	return true
}
