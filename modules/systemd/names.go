package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/shape"
	"stead/host/unit"
)

const (
	// mostNear is how many names a hint has.
	mostNear = 3
	// namesFor is how long names of unit files serve for hints: systemd reads every
	// unit file to list them, and is busy for a second.
	namesFor = 30 * time.Second
)

// isGlob reports whether a name is a pattern, as systemctl tells.
func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// named is the unit that a verb is asked about by name.
func named(verb, name string) (unit.Name, error) {
	if isGlob(name) {
		return "", fault.New(fault.Invalid, verb, fmt.Sprintf("%q", name), errors.New("it is a pattern, and one unit is asked for"))
	}
	n, err := unit.ParseName(unit.Full(name))
	if err != nil {
		return "", fault.New(fault.Invalid, verb, "", err)
	}
	return n, nil
}

// exists reports whether there is such a unit. One whose file was removed while
// it runs, or that failed, still is one.
func exists(load unit.LoadState, active unit.ActiveState) bool {
	return load != unit.NotFound || active != unit.Inactive
}

// unknown is the error for a name or a pattern that no unit of the scope has.
func (v view) unknown(ctx context.Context, verb, name string) error {
	if isGlob(name) {
		err := fault.New(fault.NotFound, verb, fmt.Sprintf("%q", name), fmt.Errorf("no loaded unit of %s scope matches", v.scope))
		return err.WithHint(v.near(ctx, name))
	}
	text, hint := fmt.Sprintf("there is no such unit in %s scope", v.scope), ""
	if n, err := unit.ParseName(name); err == nil && !n.IsTemplate() {
		more, cure := v.elsewhere(ctx, verb, n)
		text, hint = text+more, cure
	}
	if hint == "" {
		hint = v.near(ctx, name)
	}
	return fault.New(fault.NotFound, verb, name, errors.New(text)).WithHint(hint)
}

// nowhere is the error for a name that no unit has in any of the scopes that could be
// read.
func nowhere(ctx context.Context, verb, name string, read []view, blind unread) error {
	if len(read) == 1 && (len(blind) == 0 || fault.Is(blind[0].err, fault.Refused)) { // the other one was not asked about, or there is none
		return read[0].unknown(ctx, verb, name)
	}
	text, hint := "there is no such unit, in neither scope", ""
	if len(blind) > 0 {
		text = fmt.Sprintf("there is no such unit in %s scope; %s scope cannot be read: %s", read[0].scope, blind[0].scope, why(blind[0].err))
	}
	for _, v := range read {
		if hint = v.near(ctx, name); hint != "" {
			break
		}
	}
	return fault.New(fault.NotFound, verb, name, errors.New(text)).WithHint(hint)
}

// near is the hint with the closest names, "" when none is close.
func (v view) near(ctx context.Context, name string) string {
	if called := v.m.owners(v.scope).links[unit.Name(name)]; called != "" {
		return fmt.Sprintf("it is an alias that %s asks for, and that is made when that is enabled", called)
	}
	files := &v.m.files
	if v.scope == unit.User {
		files = &v.m.userFiles
		aside, cancel := context.WithTimeout(ctx, asideFor)
		defer cancel()
		ctx = aside
	}
	known := files.get(ctx, v)
	if units, err := v.Units(ctx, unit.Filter{All: true}); err == nil {
		for _, u := range units {
			if exists(u.Load, u.Active) {
				known = append(known, u.Name)
			}
		}
	}
	near := closest(name, known)
	if len(near) == 0 {
		return ""
	}
	texts := make([]string, len(near))
	for i, n := range near {
		texts[i] = string(n)
	}
	return "did you mean " + strings.Join(texts, ", ") + "?"
}

// fileNames are the names of all unit files, for hints alone: they may be a while
// old.
type fileNames struct {
	mu    sync.Mutex // held while they are read, by one for all
	names []unit.Name
	at    time.Time
}

// get returns a copy.
func (f *fileNames) get(ctx context.Context, r lister) []unit.Name {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.at) > namesFor {
		if files, err := r.Files(ctx, unit.Filter{}); err == nil {
			f.names, f.at = f.names[:0:0], time.Now()
			for _, l := range files {
				f.names = append(f.names, l.Name)
			}
		}
	}
	return slices.Clone(f.names)
}

// closest returns those of known that name, or a pattern, was probably meant to
// be, the most likely first, mostNear at most.
func closest(name string, known []unit.Name) []unit.Name {
	w := wantedOf(name, known)
	type ranked struct {
		name unit.Name
		rank int
	}
	var all []ranked
	for _, n := range known {
		if rank := w.rank(n); rank > 0 && !slices.Contains(all, ranked{n, rank}) {
			all = append(all, ranked{n, rank})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		if len(a.name) != len(b.name) {
			return len(a.name) - len(b.name)
		}
		return strings.Compare(string(a.name), string(b.name))
	})
	out := make([]unit.Name, 0, mostNear)
	for _, r := range all[:min(len(all), mostNear)] {
		out = append(out, r.name)
	}
	return out
}

// wanted is what a person wrote, in the parts that are compared.
type wanted struct {
	stem, kind string // kind is "" when it was not said
	best       string // of the stems that there are, the one that differs least; "" when all differ much
	prefix     bool   // only the beginning of a stem is compared
}

func wantedOf(name string, known []unit.Name) wanted {
	w := wanted{stem: strings.ToLower(literal(name)), prefix: isGlob(name)}
	if !w.prefix && unit.CheckName(name) == nil {
		w.stem, w.kind = strings.ToLower(unit.Name(name).Stem()), unit.Name(name).Type()
	}
	stems := make([]string, 0, len(known))
	for _, n := range known {
		stems = append(stems, w.compared(n))
	}
	w.best = shape.Nearest(w.stem, stems)
	return w
}

// compared is the part of a name that is held against the stem.
func (w wanted) compared(n unit.Name) string {
	stem := strings.ToLower(n.Stem())
	if w.prefix {
		stem = stem[:min(len(stem), len(w.stem))]
	}
	return stem
}

// rank says how near n is: 1 is the nearest, 0 is not at all.
func (w wanted) rank(n unit.Name) int {
	if len(w.stem) < 2 {
		return 0
	}
	rank := 0
	switch other := w.compared(n); {
	case other == w.best && other != "":
		rank = 1
	case w.best != w.stem && shape.Nearest(w.stem, []string{other}) != "":
		rank = 3
	case len(w.stem) >= 3 && strings.Contains(strings.ToLower(n.Stem()), w.stem):
		rank = 5
	default:
		return 0
	}
	if w.kind != "" && w.kind != n.Type() {
		rank++
	}
	return rank
}

// literal is the longest part of a pattern that is plain text, without a suffix.
func literal(pattern string) string {
	longest := ""
	for _, part := range strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("*?[]!^", r) }) {
		if i := strings.LastIndexByte(part, '.'); i >= 0 && unit.CheckName("x"+part[i:]) == nil {
			part = part[:i]
		}
		part = strings.TrimRight(part, ".")
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
