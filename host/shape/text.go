package shape

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"stead/host/unit"
)

// files judges content and drop-ins.
func (j judge) files() {
	if j.Content != nil {
		j.file("content", *j.Content, MaxContent)
	}
	size, most := 0, 0
	for _, name := range slices.Sorted(maps.Keys(j.DropIns)) {
		path := "dropins." + printable(name)
		if !dropInName(name) {
			j.fail(path, fmt.Sprintf("%.80q is no name of a drop-in", name), "use a-z, 0-9 and -, then .conf; at most 255 bytes")
			continue
		}
		size, most = size+len(j.DropIns[name]), max(most, len(j.DropIns[name]))
		j.file(path, j.DropIns[name], MaxDropIns)
	}
	if size > MaxDropIns && most <= MaxDropIns {
		j.fail("dropins", fmt.Sprintf("they have %d bytes; at most %d are taken in all", size, MaxDropIns), "put large data into a file of its own that the unit reads")
	}
	j.busName()
}

// busName refuses a service of type dbus without a bus name: the manager of
// systemd 247 was seen to die of loading one, and later ones refuse it.
func (j judge) busName() {
	if j.Content == nil || j.Unit == "" || !strings.HasSuffix(string(j.Unit), ".service") {
		return
	}
	f := unit.ParseFile([]byte(*j.Content))
	for _, name := range slices.Sorted(maps.Keys(j.DropIns)) {
		f = f.Merge(unit.ParseFile([]byte(j.DropIns[name])))
	}
	kind, _ := f.Last("Service", "Type")
	if name, _ := f.Last("Service", "BusName"); kind == "dbus" && name == "" {
		j.report("content", lineOf(*j.Content, "Type=dbus"), "Type=dbus without BusName=, which the manager of systemd 247 does not survive", "give it the BusName= that it takes on the bus, or another Type=")
	}
}

func dropInName(s string) bool {
	stem, ok := strings.CutSuffix(s, ".conf")
	return ok && stem != "" && len(s) <= 255 && strings.Trim(stem, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// file judges one text that is written byte for byte.
func (j judge) file(path, text string, limit int) {
	if j.bad(path) {
		return
	}
	switch {
	case text == "":
		rule, cure := "it is empty; systemd takes an empty unit file for a mask", "write the unit file, or leave content out"
		if path != "content" {
			rule, cure = "it is empty; all it would do is hide a drop-in of that name elsewhere", "write a comment into it if that is meant, or leave it out"
		}
		j.fail(path, rule, cure)
		return
	case len(text) > limit:
		j.fail(path, fmt.Sprintf("it has %d bytes; at most %d are taken", len(text), limit), "put large data into a file of its own that the unit reads")
		return
	}
	for _, p := range textProblems(text) {
		j.report(path, p.line, p.rule, p.cure)
	}
	for _, p := range j.reaches(unit.ParseFile([]byte(text))) {
		j.report(path, lineOf(text, p.word), p.rule, p.cure)
	}
}

// textProblems finds what would not be read as it stands. Lines count within
// the text, from 1.
func textProblems(text string) []rawProblem {
	var found []rawProblem
	first := func(needle, rule, cure string) {
		if i := strings.Index(text, needle); i >= 0 {
			found = append(found, rawProblem{1 + strings.Count(text[:i], "\n"), rule, cure})
		}
	}
	first("\x00", "it holds a NUL byte, at which systemd ends the line", "delete it")
	first("\r", "it holds a carriage return (CR, CRLF), at which systemd ends the line", "use Unix line ends")
	if strings.HasPrefix(text, "\uFEFF") {
		found = append(found, rawProblem{1, "it begins with a byte order mark (BOM)", "delete it"})
	}
	if !utf8.ValidString(text) {
		at := 0
		for r, size := rune(0), 0; r != utf8.RuneError || size != 1; at += size {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		found = append(found, rawProblem{1 + strings.Count(text[:at-1], "\n"), "it is not valid UTF-8", "write UTF-8"})
	}
	last := bytes.TrimSuffix([]byte(text), []byte("\n"))
	if line := last[bytes.LastIndexByte(last, '\n')+1:]; bytes.HasSuffix(line, []byte(`\`)) {
		found = append(found, rawProblem{1 + bytes.Count(last, []byte("\n")), `it ends with a backslash, which continues a line that is not there`, "delete the backslash, or write the line"})
	}
	return found
}

// reach is an assignment that would reach a protected unit.
type reach struct{ word, rule, cure string }

// reaches finds the assignments in f through which the unit would stop or
// replace a protected unit. That a stop spreads by Conflicts=, PropagatesStopTo=
// and RequiredBy= was seen on systemd 252.
func (j judge) reaches(f unit.File) []reach {
	var found []reach
	look := func(key string, words []string, guarded func(unit.Scope, unit.Name) (string, bool)) {
		for _, w := range words {
			n, ok := expand(j.Unit, w)
			if why, yes := guarded(j.Scope, n); ok && yes {
				found = append(found, reach{w, fmt.Sprintf("%s=%s reaches a protected unit: %s", key, n, why), "delete it"})
			}
		}
	}
	for _, key := range []string{"Conflicts", "PropagatesStopTo"} {
		for _, value := range f.Values("Unit", key) {
			words, _ := unit.Words(value)
			look(key, words, StandsOn)
		}
	}
	look("RequiredBy", f.List("Install", "RequiredBy"), StandsOn)
	look("Alias", f.List("Install", "Alias"), Protected)
	look("Also", f.List("Install", "Also"), Protected)
	return found
}

// expand replaces the specifiers in word that depend on the name n alone, and
// returns the unit name that this makes, if it is one. Names with specifiers
// that depend on the machine are none; whoever writes links looks at their final
// names again.
func expand(n unit.Name, word string) (unit.Name, bool) {
	if _, err := unit.ParseName(string(n)); err == nil {
		last := n.Prefix()[strings.LastIndexByte(n.Prefix(), '-')+1:]
		word = strings.NewReplacer("%n", string(n), "%N", n.Stem(), "%p", n.Prefix(), "%i", n.Instance(), "%j", last, "%%", "%").Replace(word)
	}
	name, err := unit.ParseName(word)
	return name, err == nil
}

// lineOf returns the first line of text that holds word, from 1.
func lineOf(text, word string) int {
	i := strings.Index(text, word)
	if i < 0 {
		return 0
	}
	return 1 + strings.Count(text[:i], "\n")
}
