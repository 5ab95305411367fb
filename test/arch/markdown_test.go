package arch

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const document = "# T\n" +
	"```console exit=3\n$ stead host status web\nweb  failed\n…\n$ stead host status \\\n> --json\n> x\n> printed\n```\n" +
	"- in a list:\n\n  ```sh\n  a\n    b\n  ```\n" +
	"~~~yaml\n```\n~~~\n"

func TestBlocksAndTheirCommands(t *testing.T) {
	blocks, err := Blocks("d.md", document)
	require.NoError(t, err)
	require.Equal(t, []Block{
		{File: "d.md", Line: 2, Tag: Console, Exit: 3, Text: "$ stead host status web\nweb  failed\n…\n$ stead host status \\\n> --json\n> x\n> printed\n"},
		{File: "d.md", Line: 13, Tag: Script, Text: "a\n  b\n"},
		{File: "d.md", Line: 17, Tag: "yaml", Text: "```\n"},
	}, blocks)

	commands, err := blocks[0].Commands()
	require.NoError(t, err)
	require.Equal(t, []Command{
		{Line: 3, Text: "stead host status web\n", Output: "web  failed\n…\n"},
		{Line: 6, Text: "stead host status \\\n--json\nx\nprinted\n", Exit: 3},
	}, commands)

	script, err := blocks[1].Commands()
	require.NoError(t, err)
	require.Equal(t, []Command{{Line: 14, Text: "a\n  b\n"}}, script)

	none, err := blocks[2].Commands()
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestBlocksThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"never closed":         {"\n```sh\na\n", "d.md:2: block is never closed"},
		"unknown attribute":    {"```sh quiet\n```\n", `d.md:1: "quiet" is no attribute of a sh block`},
		"exit is no number":    {"```sh exit=x\n```\n", `d.md:1: "exit=x" is no attribute of a sh block`},
		"attribute of another": {"```yaml exit=1\n```\n", `d.md:1: "exit=1" is no attribute of a yaml block`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Blocks("d.md", c.text)
			require.EqualError(t, err, c.want)
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"output first": {"x\n$ a\n", `d.md:5: a console block begins with "$ " and a command`},
		"empty":        {"", "d.md:4: a console block without a command"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Block{File: "d.md", Line: 4, Tag: Console, Text: c.text}.Commands()
			require.EqualError(t, err, c.want)
		})
	}
}

func TestOutputMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"", "", true},
		{"", "\n \n", true},
		{"", "x\n", false},
		{"a\nb\n", "a  \nb", true},
		{"a\n", "a\nb\n", false},
		{"a\nb\n", "a\n", false},
		{"…\n", "", true},
		{"a\n…\nz\n", "a\nz\n", true},
		{"a\n…\nz\n", "a\nz\nb\nz\n", true},
		{"a\n…\nz\n", "a\nz\nb\n", false},
		{"took … ms", "took 12 ms", true},
		{"took … ms", "took 12 s", false},
		{"a…b…c", "a1b2bc", true},
		{"a…a", "a", false},
	} {
		require.Equal(t, c.ok, Command{Output: c.want}.Matches(c.got), "%q and %q", c.want, c.got)
	}
}

func TestDocumentsOfATree(t *testing.T) {
	got, err := Documents(fstest.MapFS{
		"README.md": {}, "docs/b.md": {}, "docs/a/c.md": {}, "docs/examples/web.yaml": {}, "decisions/0001-x.md": {},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"README.md", "docs/a/c.md", "docs/b.md"}, got)

	got, err = Documents(fstest.MapFS{"go.mod": {}})
	require.NoError(t, err)
	require.Empty(t, got)
}

func FuzzBlocks(f *testing.F) {
	f.Add(document)
	f.Add("````\n```\n````")
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := Blocks("d.md", text)
		if err != nil {
			return
		}
		for _, b := range blocks {
			commands, err := b.Commands()
			require.True(t, err != nil || len(commands) > 0 == b.Run())
			for _, c := range commands {
				require.Greater(t, c.Line, b.Line)
			}
		}
	})
}
