package unit

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether all of s matches the glob pattern, as systemd has them:
// fnmatch(3) with FNM_NOESCAPE. "*" and "?" match any character, a backslash is
// one like others, "[…]" is a set of characters, ranges and classes such as
// [:digit:] that "!" or "^" inverts; one that is not closed is plain text.
func Match(pattern, s string) bool {
	star, back := -1, 0 // the last "*", and where in s it ends at the earliest
	p, i := 0, 0
	for i < len(s) {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch n, ok := matchOne(pattern[p:], s[i:i+size]); {
		case p < len(pattern) && pattern[p] == '*':
			star, back = p, i
			p++
		case ok:
			p, i = p+n, i+size
		case star >= 0:
			_, size := utf8.DecodeRuneInString(s[back:])
			back += size
			p, i = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne reports whether the first element of pattern, which is no "*",
// matches the character c, and how long it is.
func matchOne(pattern, c string) (n int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if n, ok, closed := matchSet(pattern, c); closed {
			return n, ok
		}
		return 1, c == "["
	}
	_, size := utf8.DecodeRuneInString(pattern)
	return size, pattern[:size] == c
}

// matchSet is matchOne for a set; closed is false when it has no end.
func matchSet(pattern, c string) (n int, ok, closed bool) {
	at := 1
	invert := at < len(pattern) && (pattern[at] == '!' || pattern[at] == '^')
	if invert {
		at++
	}
	r, _ := utf8.DecodeRuneInString(c)
	in := false
	for first := true; at < len(pattern); first = false {
		if pattern[at] == ']' && !first {
			return at + 1, in != invert, true
		}
		if strings.HasPrefix(pattern[at:], "[:") {
			if end := strings.Index(pattern[at+2:], ":]"); end >= 0 {
				in = in || class(pattern[at+2:at+2+end], c)
				at += end + 4
				continue
			}
		}
		low, size := utf8.DecodeRuneInString(pattern[at:])
		at += size
		high := low
		if at+1 < len(pattern) && pattern[at] == '-' && pattern[at+1] != ']' {
			high, size = utf8.DecodeRuneInString(pattern[at+1:])
			at += 1 + size
		}
		in = in || low <= r && r <= high
	}
	return 0, false, false
}

// class reports whether c is in a class of ASCII characters, which is what unit
// names are made of.
func class(name, c string) bool {
	b := c[0]
	lower, upper, digit := b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9'
	hex := digit || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
	graph := b > ' ' && b < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "xdigit":
		return hex
	case "punct":
		return graph && !lower && !upper && !digit
	case "graph":
		return graph
	case "print":
		return graph || b == ' '
	case "space":
		return b == ' ' || b >= '\t' && b <= '\r'
	case "blank":
		return b == ' ' || b == '\t'
	case "cntrl":
		return b < ' ' || b == 0x7f
	}
	return false
}
