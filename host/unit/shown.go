package unit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown makes a line for people of words that somebody else chose, as a unit file
// or a manager: at most that many bytes of it, nothing that a terminal obeys, and
// a question mark for what is no text.
func Shown(words string, most int) string {
	cut := len(words) > most
	if cut {
		for most > 0 && !utf8.RuneStart(words[most]) {
			most--
		}
		words = words[:most]
	}
	words = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, words)
	if cut {
		words += " (cut)"
	}
	return words
}
