package unit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestWhatOthersSayIsShownAsALine(t *testing.T) {
	for said, shown := range map[string]string{
		"":                            "",
		"Unit x.service not found.":   "Unit x.service not found.",
		"red \x1b[31m, bell \a, \x7f": "red ?[31m, bell ?, ?",
		"one\ntwo\tthree\r":           "one two three?",
		"\xff\xfe ü \u009b2J \u202e":  "?? ü ?2J ?",
	} {
		require.Equal(t, shown, Shown(said, 100))
	}
	require.Equal(t, "abc (cut)", Shown("abcdef", 3))
	require.Equal(t, "a (cut)", Shown("aü", 2), "no half of a letter")
	require.Equal(t, "aü (cut)", Shown("aüb", 3))
}

func FuzzShown(f *testing.F) {
	f.Add("\x1b]0;x\a", 4)
	f.Fuzz(func(t *testing.T, said string, most int) {
		most = max(0, min(most, 1<<12))
		shown := Shown(said, most)
		require.True(t, utf8.ValidString(shown))
		require.LessOrEqual(t, len(shown), most+len(" (cut)"))
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }))
	})
}
