package shape

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rest = "ensure: running\n"

func TestParseRefusesBytes(t *testing.T) {
	const escape = "write it as an escape in a double-quoted text"
	refused(t, map[string]bad{
		"invalid UTF-8":     {head + rest + "# \xff\n", 4, "", "the byte 0xff is not valid UTF-8", "save the file as UTF-8"},
		"cut UTF-8":         {head + rest + "# \xc3", 4, "", "the byte 0xc3 is not valid UTF-8", "save the file as UTF-8"},
		"NUL":               {head + rest + "# \x00\n", 4, "", "the file holds a NUL byte", "it is no text, or was written only in part: write it again"},
		"BOM":               {"\uFEFF" + head + rest, 1, "", "the file begins with a byte order mark (BOM)", "save it as UTF-8 without BOM"},
		"CRLF":              {"# x\nshape: service\r\nname: web\r\n", 2, "", "the line holds a carriage return (CR, CRLF)", "save the file with Unix line ends"},
		"next line":         {head + "content: |\n  a=\u0085b\n", 4, "", "U+0085 would break the line for YAML", escape},
		"line separator":    {head + "content: |\n  a=\u2028  b\n", 4, "", "U+2028 would break the line for YAML", escape},
		"control character": {head + rest + "# \x1b[2J\n", 4, "", "the control character U+001B is not allowed", escape + " (control characters)"},
	})
	_, problems := Parse("f", []byte("a\r\n\x00\n\xff\n\xfe\n"))
	require.Equal(t, []int{1, 2, 3}, []int{problems[0].Line, problems[1].Line, problems[2].Line})
	require.Len(t, problems, 3)
}

func TestParseRefusesForeignYAML(t *testing.T) {
	refused(t, map[string]bad{
		"anchor":         {head + "ensure: &x running\n", 3, "web", `the YAML anchor "x" is not read`, "delete it, and write the value out where it was used"},
		"anchor on root": {"--- &x\n" + head + rest, 1, "web", `the YAML anchor "x" is not read`, "delete it, and write the value out where it was used"},
		"unknown alias":  {head + "ensure: *x\n", 3, "", "not YAML: unknown anchor 'x' referenced", "anchors and aliases are not read: write the value out"},
		"merge key":      {head + "ensure: running\n<<: {enabled: true}\n", 4, "web", "the YAML merge key << is not read", "write the fields out"},
		"foreign tag":    {head + "ensure: !x running\n", 3, "web", `the YAML tag "!x" is not read`, "delete it"},
	})
	_, problems := Parse("f", []byte(head+"ensure: running\ncontent: !!binary aGVsbG8=\n"))
	require.Equal(t, `the YAML tag "!!binary" is not read`, problems[0].Rule)
	_, problems = Parse("f", []byte(head+"ensure: &a running\nunit: *a\ndropins: *a\nenabled: *a\nnodes: *a\ntimeout: *a\n"))
	require.Len(t, problems, 2) // one anchor, one alias: nothing is said of the values
	_, problems = Parse("f", []byte("# x\n%YAML 1.1\n---\n"+head+rest))
	require.Equal(t, Problems{{"f", 2, "", "a YAML directive (%) is not read", "delete the line"}}, problems)
	_, problems = Parse("f", []byte(head+"ensure: !!str running\nenabled: !!bool true\n"))
	require.Empty(t, problems)
}

// The line is the one a person has to mend, also where the parser names the
// beginning of the mapping.
func TestParseNamesTheLineOfASyntaxError(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		line int
		rule string
	}{
		"first line":           {"a: b: c\n", 1, "not YAML: mapping values are not allowed in this context"},
		"tab":                  {head + "dropins:\n\ta.conf: x\n", 4, "not YAML: found character that cannot start any token"},
		"colon in a value":     {head + "# x\nensure: a: b\n", 4, "not YAML: mapping values are not allowed in this context"},
		"open list":            {head + "nodes: [a, b\nensure: running\n", 3, "not YAML: did not find expected ',' or ']'"},
		"open map":             {head + "labels: {a: b\nensure: running\n", 3, "not YAML: did not find expected ',' or '}'"},
		"open quote":           {head + "ensure: \"running\n", 3, "not YAML: found unexpected end of stream"},
		"block is dedented":    {head + "content: |\n    [Unit]\n   a=b\nensure: running\n", 5, "not YAML: did not find expected key"},
		"dedented by a line":   {head + "ensure: running\nnodes:\n- a\nfoo\nenabled: true\n", 6, "not YAML: could not find expected ':'"},
		"a value that goes on": {head + "ensure: running\n  - a\nenabled: true\n", 3, `"running - a" is no value of this field`},
		"item among fields":    {head + "ensure: running\n- a\nenabled: true\n", 4, "not YAML: did not find expected key"},
		"field among items":    {head + "nodes:\n  - a\n  enabled: true\n", 5, "not YAML: did not find expected '-' indicator"},
	} {
		t.Run(name, func(t *testing.T) {
			for lead := range 3 {
				_, problems := Parse("f", []byte(strings.Repeat("---\n", lead)+c.doc))
				require.NotEmpty(t, problems)
				require.Equal(t, c.line+lead, problems[0].Line, problems[0].Rule)
				require.Equal(t, c.rule, problems[0].Rule)
			}
		})
	}
}

// bombs are documents that are small to write and large to parse.
func bombs() map[string]string {
	n := maxDocument
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	var tags strings.Builder
	for i := 0; tags.Len() < n-20; i++ {
		fmt.Fprintf(&tags, "%%TAG !a%d! x\n", i)
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	return map[string]string{
		"laughs": laughs, "flow map": "{" + fill("a,")[:n-1], "flow list": "[" + fill("a,")[:n-1], "keys": fill("a:\n"), "items": fill("-\n"),
		"deep lists": fill("["), "deep items": fill("- "), "deep keys": fill("? "), "deep enough": strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
		"questions": fill("?\n"), "comments": fill("#\n"), "items and comments": strings.Repeat("- #x\n", maxStructure/2), "anchors": fill("- &a a\n"),
		"directives": tags.String() + "---\n", "one word": fill("a"), "blank lines": "a: |\n" + fill("\n")[:n-6], "lines": fill("a\n"),
		"empty lists": "[" + strings.Repeat("[],", maxStructure/2-1), "allowed nodes": "{" + strings.Repeat("a,", maxStructure-1) + "}",
		"unknown fields": strings.Repeat("\"\\a\":\n", maxStructure),
	}
}

// A bomb costs time and memory within bounds, and so does a file of nothing but
// bombs.
func TestParseOfABombIsBounded(t *testing.T) {
	for name, bomb := range bombs() {
		t.Run(name, func(t *testing.T) {
			live, allocated, took := cost(func() { Parse("f", []byte(bomb)) })
			require.Less(t, live, uint64(64<<20), "bytes in use at once")
			require.Less(t, allocated, uint64(256<<20), "bytes taken in all")
			require.Less(t, took, 10*time.Second)
		})
	}
	file := []byte(strings.Repeat("{"+strings.Repeat("a,", maxStructure-1)+"}\n---\n", MaxBatch/(2*maxStructure+5)))
	require.Greater(t, len(file), MaxBatch-maxDocument)
	live, _, _ := cost(func() {
		_, problems := Parse("f", file)
		require.NotEmpty(t, problems)
	})
	require.Less(t, live, uint64(96<<20))
}

// cost runs f and returns the most bytes that were in use at once, as seen by a
// sampler, and the bytes that were allocated in all.
func cost(f func()) (live, allocated uint64, took time.Duration) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		var most uint64
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	start := time.Now()
	f()
	took = time.Since(start)
	close(stop)
	most := <-done
	runtime.ReadMemStats(&now)
	return most - min(most, before.HeapAlloc), now.TotalAlloc - before.TotalAlloc, took
}

// A file that is larger than a batch is not even looked at.
func TestParseRefusesAFileOverTheBatch(t *testing.T) {
	_, problems := Parse("f", make([]byte, MaxBatch+1))
	require.Equal(t, Problems{{File: "f", Rule: "the file has 16777217 bytes; a batch has at most 16777216", Cure: "declare less in one folder"}}, problems)
	_, problems = Parse("f", []byte(head+"---\n"+strings.Repeat("# a\n", maxDocument/4+1)))
	require.Len(t, problems, 2)
	require.Equal(t, 3, problems[1].Line)
	require.Contains(t, problems[1].Rule, "the document has ")
}
