package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreFoldedAtSpaces(t *testing.T) {
	const long = "  claim of seat node-service-manager by module refused"
	for _, c := range []struct {
		name, line string
		room       int
		want       []string
	}{
		{"it fits", long, 60, []string{long}},
		{"it fits to the column", long, 54, []string{long}},
		{"it does not", long, 53, []string{"  claim of seat node-service-manager by module", "    refused"}},
		{"no terminal", long, -10, []string{long}},
		{"colours are in no column", "\x1b[2m" + long + "\x1b[0m", 54, []string{"\x1b[2m" + long + "\x1b[0m"}},
		{"no space", "a123456789b123456789c123456789d123456789e123", 40, []string{"a123456789b123456789c123456789d123456789", "  e123"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, fold(c.line, c.room)) })
	}
}
