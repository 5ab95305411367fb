package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tame writes text to a terminal without what that would obey: much of what is
// shown was chosen by others, as the description of a unit that belongs to an
// account. What draws over lines of its own writes past it.
type tame struct {
	io.Writer
	rest []byte // the beginning of a letter that was not written whole
}

func (p *tame) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= end; i++ {
		if utf8.RuneStart(text[end-i]) {
			if !utf8.FullRune(text[end-i:]) {
				end -= i
			}
			break
		}
	}
	p.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(p.Writer, strings.Map(shown, string(text[:end]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// shown is what is shown of a letter.
func shown(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return '?'
	}
	return r
}

// past is where w writes to at last.
func past(w io.Writer) io.Writer {
	switch w := w.(type) {
	case screen:
		return past(w.Writer)
	case *tame:
		return w.Writer
	}
	return w
}
