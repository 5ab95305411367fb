package unit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatch has the rules of fnmatch(3); the contract of host/systemd holds some
// against a manager.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, matches, not string // separated by spaces
	}{
		{"", "", "a"},
		{"a.service", "a.service", "b.service a.services xa.service"},
		{"*", "a a.b /x", ""},
		{"a*", "a ab a/b", "ba"},
		{"*a", "a ba", "ab"},
		{"a*b*c", "abc axbxc abbcc", "acb ab"},
		{"**a**", "a bab", "b"},
		{"?", "a ä *", "aa"},
		{"a?c", "abc a?c aäc", "ac abbc"},
		{"[abc]", "a b c", "d ab"},
		{"[a-c]x", "ax bx cx", "dx ax. -x"},
		{"[!a-c]", "d -", "a"},
		{"[^a-c]", "d ^", "a"},
		{"[]a]", "] a", "b"},
		{"[!]a]", "b", "] a"},
		{"[a-]", "a -", "b"},
		{"[-a]", "a -", "b"},
		{"[z-a]", "", "a z m"},
		{"[a", "[a", "a"},
		{"[", "[", "a"},
		{"x[!", "x[!", "xa"},
		{"[[:digit:]_]*", "1 _x 9", "a"},
		{"[![:upper:]]", "a 1", "A"},
		{"[[:nonsense:]]", "", "a :"},
		{`a\x2db`, `a\x2db`, "a-b"},
		{`a\*`, `a\ a\b`, "a*"},
		{`[\]`, `\`, "]"},
		{"[ä-ö]", "ä ö", "a"},
		{"*.*", "a.b .", "ab"},
	} {
		for _, s := range strings.Split(c.matches, " ") {
			if s != "" || c.pattern == "" {
				require.True(t, Match(c.pattern, s), "%q %q", c.pattern, s)
			}
		}
		for _, s := range strings.Fields(c.not) {
			require.False(t, Match(c.pattern, s), "%q %q", c.pattern, s)
		}
	}
	many := strings.Repeat("a", 200)
	require.False(t, Match(strings.Repeat("*a", 50)+"b", many), "and it ends")
}

func TestClasses(t *testing.T) {
	for name, chars := range map[string]string{
		"alnum": "aZ5", "alpha": "aZ", "digit": "09", "lower": "az", "upper": "AZ", "xdigit": "aF0", "punct": "-.:_", "graph": "a-", "print": "a ",
		"space": " \t\n", "blank": " \t", "cntrl": "\x01\x7f",
	} {
		for i := range len(chars) {
			require.True(t, Match("[[:"+name+":]]", chars[i:i+1]), "%s %q", name, chars[i])
		}
		none := "\x01"
		if name == "cntrl" {
			none = "a"
		}
		require.False(t, Match("[[:"+name+":]]", none), name)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("[a-c]*", "abc")
	f.Add("[[:digit:]", "1")
	f.Add("[!", "\xff")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		Match(pattern, s)
		if !strings.ContainsAny(pattern, "*?[") {
			require.Equal(t, pattern == s, Match(pattern, s))
		}
		require.True(t, Match(pattern+"*", pattern) || strings.ContainsAny(pattern, "[*?"))
	})
}
