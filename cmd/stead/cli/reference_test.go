package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// reference is the page that lists every command.
const reference = "../../../docs/commands.md"

// The page is written by: go test ./cmd/stead/cli -update
func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten from the command tree itself; a test compares the two. Every command takes `--help`, answers on standard output, and\n" +
		"says all else on standard error. Exit codes: 0 done, 1 failed, 2 the command line is wrong, 3 something is not as declared, 4 some nodes\n" +
		"did not answer.\n\nCommands that ask the mesh take besides:\n\n| flag | meaning | default |\n| --- | --- | --- |\n")
	root := newRoot(Options{})
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { b.WriteString(flagRow(f)) })
	b.WriteString("\nThe environment variable `" + contextVariable + "` names a context where `--context` does not.\n")
	for _, c := range root.Commands() {
		document(&b, c)
	}
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(reference, []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile(reference)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "run: go test ./cmd/stead/cli -update")
}

// document writes of c, and of all below it.
func document(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() {
		return
	}
	if c.HasSubCommands() {
		for _, sub := range c.Commands() {
			document(b, sub)
		}
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n`%s`\n\n%s.\n", c.CommandPath(), c.UseLine(), upper(c.Short))
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", c.Long)
	}
	rows := ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			rows += flagRow(f)
		}
	})
	if rows != "" {
		fmt.Fprintf(b, "\n| flag | meaning | default |\n| --- | --- | --- |\n%s", rows)
	}
	if c.Example != "" {
		b.WriteString("\nFor example:\n\n")
		for line := range strings.Lines(c.Example) {
			fmt.Fprintf(b, "- `%s`\n", strings.TrimSpace(line))
		}
	}
}

func flagRow(f *pflag.Flag) string {
	placeholder, meaning := pflag.UnquoteUsage(f)
	meaning = strings.ReplaceAll(meaning, "*", `\*`)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value := ""
	if v := f.DefValue; v != "" && v != "0s" {
		value = "`" + v + "`"
	}
	return fmt.Sprintf("| `%s %s` | %s | %s |\n", name, placeholder, meaning, value)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
