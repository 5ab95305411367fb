package shape

import (
	"fmt"
	"path"
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
	const written = "write the absolute path of a file or folder, such as /etc/web.conf"
	switch {
	case t == "":
		return "is empty", written
	case strings.HasPrefix(t, "file:"):
		return fmt.Sprintf("cites a declared file, which version %d of the service shape does not have", ServiceVersion), "write the file's absolute path"
	case strings.ContainsFunc(t, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "holds a control character", "give the file another name, or name its folder"
	case t[0] != '/':
		return "is no absolute path", written
	case len(t) > maxPath:
		return fmt.Sprintf("has %d bytes; a path has at most %d", len(t), maxPath), written
	case path.Clean(t) != t:
		return "is not written out", fmt.Sprintf("write %.80s", path.Clean(t))
	}
	for name := range strings.SplitSeq(t, "/") {
		if len(name) > maxName {
			return fmt.Sprintf("has a name of %d bytes; a file's has at most %d", len(name), maxName), written
		}
	}
	return "", ""
}
