package seats

import (
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/subject"
)

// Closest returns the name of names that name was probably meant to be, "" when
// none is near: one that differs by a letter or two, or the only one that holds
// it whole.
func Closest(name string, names []string) string {
	if near := shape.Nearest(strings.ToLower(name), names); near != "" {
		return near
	}
	var holding []string
	for _, n := range names {
		if len(name) >= 3 && strings.Contains(n, strings.ToLower(name)) {
			holding = append(holding, n)
		}
	}
	if len(holding) == 1 {
		return holding[0]
	}
	return ""
}

// Unknown is the error of class not_found for a name that is none of names: what
// is its kind ("seat", "verb"). The hint is the closest one, or all there are
// when they are few.
func Unknown(what, name string, names []string) *fault.Error {
	err := fault.New(fault.NotFound, "", "", fmt.Errorf("no %s is called %q", what, name))
	if near := Closest(name, names); near != "" {
		return err.WithHint("did you mean " + near + "?")
	}
	if len(names) == 0 || len(names) > 12 {
		return err
	}
	all := slices.Clone(names)
	slices.Sort(all)
	return err.WithHint("there are: " + strings.Join(all, ", "))
}

// Find returns the seat of that name among all, and an error as Unknown makes it
// when there is none.
func Find(all []Seat, name string) (Seat, error) {
	var names []string
	for _, s := range all {
		if string(s.Name) == name {
			return s, nil
		}
		names = append(names, string(s.Name))
	}
	return Seat{}, Unknown("seat", name, names)
}

// Find returns the verb of that name, and an error as Unknown makes it when the
// seat has none.
func (s Seat) Find(name string) (Verb, error) {
	if v, ok := s.Verb(subject.Verb(name)); ok {
		return v, nil
	}
	var names []string
	for _, v := range s.Verbs {
		names = append(names, string(v.Name))
	}
	return Verb{}, Unknown("verb of seat "+string(s.Name), name, names)
}
