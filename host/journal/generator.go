package journal

import (
	"bufio"
	"context"
	"slices"
	"strconv"
	"strings"

	"stead/host/unit"
)

// Bounds of what generators are asked about.
const (
	mostGenerators = 20
	generatorLines = 200
)

// generators returns what generators said in this boot in which the unit is named:
// one that should have been made and is not there has no lines of its own, and
// systemd says nothing of it (systemd.generator(7)).
func (r Reader) generators(ctx context.Context, n unit.Name, count int, boot string) ([]string, error) {
	if r.Scope == unit.User {
		return nil, nil // those of an account log under its own name
	}
	known, err := run(ctx, "--field=SYSLOG_IDENTIFIER")
	if err != nil {
		return nil, err
	}
	args := []string{"--all", "--output-fields=MESSAGE", "--lines=" + strconv.Itoa(generatorLines)}
	none := len(args)
	for lines := bufio.NewScanner(known); lines.Scan() && len(args) < none+mostGenerators; {
		if strings.HasSuffix(lines.Text(), "generator") {
			args = append(args, "--identifier="+lines.Text())
		}
	}
	if len(args) == none {
		return nil, nil
	}
	if boot != "" {
		args = append(args, "_BOOT_ID="+boot)
	}
	out, err := run(ctx, args...)
	if err != nil {
		return nil, err
	}
	lines, err := parse(out)
	stem := n.Stem()
	path := "/" + strings.ReplaceAll(stem, "-", "/")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return !strings.Contains(l, stem) && !(n.Type() != "service" && strings.Contains(l, path))
	})
	return lines[max(0, len(lines)-count):], err
}
