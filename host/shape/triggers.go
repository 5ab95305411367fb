package shape

import (
	"fmt"
	"strings"
)

// Bounds of triggers.
const (
	MaxTriggers = 64
	maxPath     = 4095 // bytes of a path: PATH_MAX without its NUL
	maxName     = 255  // bytes of one name in it
)

// triggers judges the paths whose change refreshes the unit.
func (j judge) triggers() {
	if j.Triggers != nil && (len(j.Triggers) == 0 || len(j.Triggers) > MaxTriggers) {
		j.fail("triggers", fmt.Sprintf("%d paths are named", len(j.Triggers)), fmt.Sprintf("name 1 to %d, or leave it out", MaxTriggers))
	}
	if j.bad("triggers") {
		return
	}
	first := map[string]int{}
	for i, t := range j.Triggers {
		at := fmt.Sprintf("triggers[%d]", i)
		if earlier, twice := first[t]; twice {
			j.fail(at, fmt.Sprintf("%.80q is named twice, first at triggers[%d]", t, earlier), "delete one of them")
			continue
		}
		first[t] = i
		if rule, cure := triggerProblem(t); rule != "" {
			j.fail(at, fmt.Sprintf("%.80q %s", t, rule), cure)
		}
	}
}

// triggerProblem says why t is no path of a trigger; "" when it is one.
func triggerProblem(t string) (rule, cure string) {
	const written = "write the absolute path of a file or folder, such as /etc/web.conf, or file:NAME for a declared file"
	switch {
	case strings.HasPrefix(t, FilePrefix):
		label := strings.TrimPrefix(t, FilePrefix)
		if module, rest, owned := strings.Cut(label, "."); owned && dnsLabel(module) && dnsLabel(rest) || dnsLabel(label) {
			return "", ""
		}
		return "cites no declared file: a name is 1 to 63 of a-z, 0-9 and -, with no - at either end", "write file:NAME, with the name of a declaration of shape file"
	case strings.ContainsFunc(t, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "holds a control character", "give the file another name, or name its folder"
	}
	return writtenOut("", t, written)
}
