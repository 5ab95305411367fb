package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/report"
)

// outdone states which unit file systemd reads in the place of the declared one:
// the unit is another than was declared, and is let be.
func outdone(in Input, fragment string, d *Decision) bool {
	for _, w := range in.Disk.Wants {
		if w.Why == "content" && fragment != "" && fragment != w.Path {
			d.fail(report.Shadowed, "%s wins over the declared %s", fragment, w.Path)
			d.Hint = "rm " + fragment
			return true
		}
	}
	return false
}

// shadowed adds which drop-in systemd reads in the place of a declared one to an
// outcome that would otherwise be good. The unit is kept running all the same.
func (d *Decision) shadowed(in Input) {
	for _, w := range in.Disk.Wants {
		wins := in.Disk.Shadowed[w.Path]
		switch {
		case wins == "":
		case d.Outcome == report.Converged || d.Reason == report.Settling:
			d.fail(report.Shadowed, "%s wins over the declared %s", wins, w.Path)
			d.Hint = "rm " + wins
		default:
			d.warn("%s wins over the declared %s", wins, w.Path)
		}
	}
	d.foreign(in)
}

// foreign warns of drop-ins of others that systemd reads after what is declared:
// what they set counts.
func (d *Decision) foreign(in Input) {
	first, declared := "", false
	for _, w := range in.Disk.Wants {
		switch w.Why {
		case "content":
			first, declared = "", true
		case "drop-in":
			if name := filepath.Base(w.Path); !declared {
				first, declared = name, true
			}
		}
	}
	if !declared {
		return
	}
	var later []string
	for _, p := range in.Disk.DropIns {
		ours := slices.ContainsFunc(in.Disk.Wants, func(w Want) bool {
			return w.Why == "drop-in" && filepath.Base(w.Path) == filepath.Base(p) // a shadowed one has failed
		})
		if !ours && filepath.Base(p) > first {
			later = append(later, p)
		}
	}
	const most = 3
	switch n := len(later) - most; {
	case len(later) == 0:
		return
	case n > 0:
		later = append(later[:most], fmt.Sprintf("and %d more", n))
	}
	d.warn("drop-ins of others are read after what is declared: %s", strings.Join(later, ", "))
}
