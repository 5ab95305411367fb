package unit

import (
	"errors"
	"fmt"
	"strings"
)

// Words splits a value into words at white space, as systemd reads lists such
// as WantedBy= and Alias=: quotes are taken off and hold a word together,
// backslashes stay. With an error, an open quote, the words before it are
// returned too: systemd uses them.
func Words(value string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote byte
	inWord := false
	for i := range len(value) {
		c := value[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case strings.IndexByte(space, c) >= 0:
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return words, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// BareWords splits a value into words at white space, as systemd reads Also=:
// quotes are letters like others, and a backslash is taken off and makes the
// byte behind it a letter.
func BareWords(value string) []string {
	var words []string
	var word strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			i++
			word.WriteByte(value[i])
		case strings.IndexByte(space, c) < 0:
			word.WriteByte(c)
		case word.Len() > 0:
			words = append(words, word.String())
			word.Reset()
		}
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// ParseBool reads a boolean as systemd does: 1, yes, y, true, t, on and 0, no,
// n, false, f, off, in any case.
func ParseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "yes", "y", "true", "t", "on":
		return true, nil
	case "0", "no", "n", "false", "f", "off":
		return false, nil
	}
	return false, fmt.Errorf("%.80q is not a boolean; systemd takes yes and no, true and false, on and off, 1 and 0", s)
}
