package unit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const big = LineMax

// said is all that a file says, as "section|key|value".
func said(f File) []string {
	var all []string
	for _, a := range f.assignments {
		all = append(all, a.section+"|"+a.key+"|"+a.value)
	}
	return all
}

// TestParseFile has the readings that TestManagerNamed of host/install holds
// against a real manager.
func TestParseFile(t *testing.T) {
	for _, c := range []struct {
		name, text string
		said       string // one assignment a line
		remarks    string // one remark a line
		broken     bool
	}{
		{name: "nothing"},
		{name: "plain", text: "[Unit]\nDescription=a b\n\n[Service]\nExecStart=/bin/true", said: "Unit|Description|a b\nService|ExecStart|/bin/true"},
		{name: "white space", text: " \t[S] \t\n  k \t= \t v w \t\n", said: "S|k|v w"},
		{name: "empty value", text: "[S]\nk=\nk = \n", said: "S|k|\nS|k|"},
		{name: "equals signs", text: "[S]\nk=a=b\nl==c\n", said: "S|k|a=b\nS|l|=c"},
		{name: "comments", text: "# a\n[S]\n;b=c\n  # d=e\nk=v # f\n", said: "S|k|v # f"},
		{name: "continued", text: "[S]\nk=a \\\n  b\\\n\tc\n", said: "S|k|a    b \tc"},
		{name: "comments between continued lines", text: "[S]\nk=a \\\n# x\n ; y \\\nb\n", said: "S|k|a  b"},
		{name: "blank line ends a continued one", text: "[S]\nk=a \\\n\nl=b\n", said: "S|k|a\nS|l|b"},
		{name: "white line ends a continued one", text: "[S]\nk=a \\\n  \nl=b\n", said: "S|k|a\nS|l|b"},
		{name: "an escaped backslash does not continue", text: "[S]\nk=a\\\\\nl=b\n", said: "S|k|a\\\\\nS|l|b"},
		{name: "three backslashes do", text: "[S]\nk=a\\\\\\\nb\n", said: "S|k|a\\\\ b"},
		{name: "ends in a backslash", text: "[S]\nk=a \\", said: "S|k|a"},
		{name: "ends in a comment after a backslash", text: "[S]\nk=a \\\n#b", said: "S|k|a"},
		{name: "CRLF", text: "[S]\r\nk=a \\\r\n b\r\n\r\nl=c\r\n", said: "S|k|a   b\nS|l|c"},
		{name: "CR alone", text: "[S]\rk=a\rl=b", said: "S|k|a\nS|l|b"},
		{name: "LF and CR are one end", text: "[S]\nk=a \\\n\rb\n", said: "S|k|a  b"},
		{name: "zero byte", text: "[S]\x00k=a \\\x00b\nl=c", said: "S|k|a  b\nS|l|c"},
		{name: "nothing joins a zero byte from behind", text: "[S]\nk=a \\\x00\nb\nl=c", said: "S|k|a\nS|l|c", remarks: `line 4: no "=" in it, so systemd skips it: "b"`},
		{name: "BOM", text: "\xef\xbb\xbf[S]\nk=v", said: "S|k|v"},
		{name: "the first BOM counts, wherever it is", text: "[S]\nk=v\n\xef\xbb\xbfl=w\n\xef\xbb\xbfm=x\n", said: "S|k|v\nS|l|w\nS|\ufeffm|x"},
		{name: "a comment behind a BOM is none", text: "\xef\xbb\xbf# c\n[S]\nk=v\n", said: "S|k|v", remarks: `line 1: assignment before the first section, which systemd skips: "# c"`},
		{name: "before any section", text: "k=v\n[S]\nl=w", said: "S|l|w", remarks: `line 1: assignment before the first section, which systemd skips: "k=v"`},
		{name: "no equals sign", text: "[S]\nk\nl=w\n", said: "S|l|w", remarks: `line 2: no "=" in it, so systemd skips it: "k"`},
		{name: "no key", text: "[S]\n = v\n", remarks: `line 2: nothing before the "=", so systemd skips it: "= v"`},
		{name: "unknown and repeated sections", text: "[Servce]\nk=a\n[X-B]\nk=b\n[]\nk=c\n[Servce]\nk=d\n[ S ]\nk=e", said: "Servce|k|a\nX-B|k|b\n|k|c\nServce|k|d\n S |k|e"},
		{name: "open header", text: "[S]\nk=v\n[T\nl=w\n", said: "S|k|v", remarks: `line 3: section header without "]", for which systemd refuses the whole file: "[T"`, broken: true},
		{name: "one bracket", text: "[\n", remarks: `line 1: section header without "]", for which systemd refuses the whole file: "["`, broken: true},
		{name: "comment behind a header", text: "[S] # x\n", remarks: `line 1: section header without "]", for which systemd refuses the whole file: "[S] # x"`, broken: true},
		{name: "quote in a header", text: "[S'T]\n", remarks: `line 1: section header with a quote, backslash or control character, for which systemd refuses the whole file: "[S'T]"`, broken: true},
		{name: "tab in a header", text: "[S\tT]\n", remarks: `line 1: section header with a quote, backslash or control character, for which systemd refuses the whole file: "[S\tT]"`, broken: true},
		{name: "umlaut in a header", text: "[Sä]\nk=v", said: "Sä|k|v"},
		{name: "not UTF-8", text: "[S]\nk=v\nl=\xff\nm=w", said: "S|k|v", remarks: `line 3: it is not valid UTF-8, for which systemd refuses the whole file: "l=\xff"`, broken: true},
		{name: "not UTF-8 in a comment", text: "# \xff\n[S]\nk=v", said: "S|k|v"},
		{name: "noncharacter", text: "[S]\nk=\ufdd0\n", remarks: `line 2: it is not valid UTF-8, for which systemd refuses the whole file: "k=\ufdd0"`, broken: true},
		{name: "replacement character", text: "[S]\nk=\ufffd", said: "S|k|\ufffd"},
		{name: "longest line", text: "[S]\nk=" + strings.Repeat("x", big-3), said: "S|k|" + strings.Repeat("x", big-3)},
		{name: "too long a line", text: "[S]\nk=" + strings.Repeat("x", big-2), remarks: "line 2: it has 1048576 bytes or more, for which systemd refuses the whole file", broken: true},
		{name: "too long a comment", text: "[S]\nk=v\n#" + strings.Repeat("x", big-1), said: "S|k|v", remarks: "line 3: it has 1048576 bytes or more, for which systemd refuses the whole file", broken: true},
		{name: "longest continued line", text: "[S]\nk=\\\n" + strings.Repeat("x", big-3), said: "S|k|" + strings.Repeat("x", big-3)},
		{name: "too long a continued line", text: "[S]\nk=\\\n" + strings.Repeat("x", big-2), remarks: "line 3: with the lines that it continues it has more than 1048576 bytes, for which systemd refuses the whole file", broken: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := ParseFile([]byte(c.text))
			require.Empty(t, cmp.Diff(c.said, strings.Join(said(f), "\n")))
			require.Empty(t, cmp.Diff(c.remarks, strings.Join(f.Remarks, "\n")))
			require.Equal(t, c.broken, f.Broken != "")
		})
	}
}

func TestValues(t *testing.T) {
	f := ParseFile([]byte("[Install]\nWantedBy=a b\n[Service]\nType=simple\n[Install]\nWantedBy=c\nwantedby=d\n"))
	require.Equal(t, []string{"a b", "c"}, f.Values("Install", "WantedBy"))
	require.Equal(t, []string{"a", "b", "c"}, f.List("Install", "WantedBy"))
	require.Nil(t, f.Values("Install", "Alias"))
	require.True(t, f.HasSection("Service"))
	require.False(t, f.HasSection("service"))
	last, ok := f.Last("Install", "WantedBy")
	require.True(t, ok)
	require.Equal(t, "c", last)
	_, ok = f.Last("Service", "WantedBy")
	require.False(t, ok)
	var keys []string
	for k := range f.Entries("Install") {
		if keys = append(keys, k); k == "wantedby" {
			break
		}
	}
	require.Equal(t, []string{"WantedBy", "WantedBy", "wantedby"}, keys)
}

func TestMerge(t *testing.T) {
	f := ParseFile([]byte("x\n[Install]\nWantedBy=a\n"))
	m := f.Merge(ParseFile([]byte("[Install]\nWantedBy=\nWantedBy=b\n")), ParseFile([]byte("[Install]\nWantedBy=c\n[Foo")))
	require.Equal(t, []string{"b", "c"}, m.List("Install", "WantedBy"))
	require.Equal(t, []string{"a"}, f.List("Install", "WantedBy"))
	require.Len(t, m.Remarks, 2)
	require.Contains(t, m.Broken, "[Foo")
	require.Empty(t, f.Broken)
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		value string
		words []string
		open  bool
	}{
		{"", nil, false},
		{" \t ", nil, false},
		{"a  b\tc", []string{"a", "b", "c"}, false},
		{`"a b" 'c d'`, []string{"a b", "c d"}, false},
		{`x"y z"w`, []string{"xy zw"}, false},
		{`"" ''`, []string{"", ""}, false},
		{`"it's" 'a "b"'`, []string{"it's", `a "b"`}, false},
		{`a\x2db c\ d`, []string{`a\x2db`, `c\`, "d"}, false},
		{`\"a" b`, []string{`\a`, "b"}, false},
		{`a b "c d`, []string{"a", "b"}, true},
	} {
		words, err := Words(c.value)
		require.Equal(t, c.words, words, "%q", c.value)
		require.Equal(t, c.open, err != nil, "%q", c.value)
	}
	require.Equal(t, []string{`"a`, `b"`, "c d", "x2d", `\`}, BareWords(`"a b" c\ d \x2d \\`))
	require.Empty(t, BareWords(" \t"))
}

func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"[Unit]\nDescription=a \\\n# c\n b\n[Install]\nWantedBy=multi-user.target\n", "\xef\xbb\xbf[S]\r\nk=v\r\n", "[S]\x00k=\"a b\" c\\\\\n", "k=v\n[S\n", "[S]\nk=\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := ParseFile(data)
		require.Equal(t, file.Broken != "", len(file.Remarks) > 0 && file.Remarks[len(file.Remarks)-1] == file.Broken)
		plain := true
		var again strings.Builder
		for _, a := range file.assignments {
			require.Equal(t, a.value, strings.Trim(a.value, space))
			require.NotContains(t, a.key+a.value+a.section, "\n")
			require.NotEmpty(t, a.key)
			require.True(t, file.HasSection(a.section))
			values := file.Values(a.section, a.key)
			last, ok := file.Last(a.section, a.key)
			require.True(t, ok)
			require.Equal(t, values[len(values)-1], last)
			require.Less(t, len(file.List(a.section, a.key)), len(data)+1)
			if strings.ContainsAny(a.key[:1], "#;[\xef") || strings.HasSuffix(a.value, `\`) {
				plain = false
			}
			again.WriteString("[" + a.section + "]\n" + a.key + "=" + a.value + "\n")
		}
		if plain {
			require.Equal(t, said(file), said(ParseFile([]byte(again.String()))))
		}
		require.Equal(t, append(said(file), said(file)...), said(file.Merge(file)))
	})
}

// TestManyContinuedLines takes minutes where every line copies those before it.
func TestManyContinuedLines(t *testing.T) {
	f := ParseFile([]byte("[S]\nk=" + strings.Repeat("\\\n", big/2) + "v"))
	require.Equal(t, []string{"v"}, f.Values("S", "k"))
}

func BenchmarkParseFile(b *testing.B) {
	text := []byte("[Unit]\nDescription=a service\nAfter=network.target\n\n[Service]\nExecStart=/usr/bin/a --flag \\\n  --other\nRestart=always\nUser=a\n\n[Install]\nWantedBy=multi-user.target\n")
	b.ReportAllocs()
	for b.Loop() {
		ParseFile(text)
	}
}

func TestSystemd247TakesAnySectionHeader(t *testing.T) {
	const text = "[a\"b]\nx=1\n[Service]\nType=simple\n"
	require.NotEmpty(t, ParseFile([]byte(text)).Broken)
	f := ParseFile247([]byte(text))
	require.Empty(t, f.Broken)
	v, _ := f.Last("Service", "Type")
	require.Equal(t, "simple", v)
	require.NotEmpty(t, ParseFile247([]byte("[Service\n")).Broken)
}
