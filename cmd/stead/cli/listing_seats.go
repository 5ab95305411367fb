package cli

import (
	"fmt"
	"strings"

	"stead/mesh/wire"
)

func (w screen) seats(all []wire.Seat, wide bool) ([]string, [][]string) {
	head := []string{"SEAT", "REQUIRES", "NODES", "HELD", "VERBS"}
	if wide {
		head = []string{"SEAT", "SCOPE", "REQUIRES", "NODES", "HELD", "REVISION", "BY", "CHANGED", "DECISION", "MEANING", "VERBS"}
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		var verbs []string
		for _, v := range s.Verbs {
			verbs = append(verbs, string(v.Name))
		}
		row := []string{string(s.Name), dash(s.Requires), fmt.Sprint(s.Nodes), fmt.Sprint(s.Held)}
		if wide {
			row = []string{string(s.Name), s.Scope, dash(s.Requires), fmt.Sprint(s.Nodes), fmt.Sprint(s.Held),
				fmt.Sprint(s.Revision), person(s.By), w.ago(s.At), dash(s.Decision), s.Meaning}
		}
		rows = append(rows, append(row, strings.Join(verbs, ", ")))
	}
	return head, rows
}

func (w screen) modules(all []wire.Module, wide bool) ([]string, [][]string) {
	head := []string{"MODULE", "VERSION", "REQUIRES", "NODES", "CLAIMS"}
	if wide {
		head = []string{"MODULE", "VERSION", "REQUIRES", "NODES", "REVISION", "BY", "CHANGED", "CLAIMS"}
	}
	rows := make([][]string, 0, len(all))
	for _, m := range all {
		var claims []string
		for _, c := range m.Claims {
			claims = append(claims, string(c))
		}
		row := []string{m.Name, fmt.Sprint(m.Version), dash(m.Requires), fmt.Sprint(m.On)}
		if wide {
			row = append(row, fmt.Sprint(m.Revision), person(m.By), w.ago(m.At))
		}
		rows = append(rows, append(row, dash(strings.Join(claims, ", "))))
	}
	return head, rows
}

func (w screen) holders(all []wire.Holder) ([]string, [][]string) {
	rows := make([][]string, 0, len(all))
	for _, h := range all {
		module := h.Module
		if module == "" {
			module = "nobody"
		}
		rows = append(rows, []string{string(h.Node), string(h.Seat), module, w.ago(h.Since)})
	}
	return []string{"NODE", "SEAT", "HELD BY", "SINCE"}, rows
}
