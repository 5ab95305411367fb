package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stead/seats"
)

// usageTemplate is what stands below the description in every help screen.
const usageTemplate = `usage
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{- if .HasAvailableSubCommands}}

commands{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasAvailableLocalFlags}}

flags
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- if index .Annotations "asks the mesh"}}

flags of every command that asks the mesh
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- if .HasExample}}

examples
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help tells more of one.{{end}}
`

// dress gives c and all below it the same help screens, and makes wrong flags
// and arguments usage errors.
func dress(c *cobra.Command) {
	c.SetUsageTemplate(usageTemplate)
	c.DisableFlagsInUseLine = true
	c.Flags().SortFlags = false
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Usage = "show this"
	c.SetFlagErrorFunc(wrongFlag)
	if args := c.Args; args != nil {
		c.Args = func(c *cobra.Command, given []string) error {
			err := args(c, given)
			var usage usageError
			if err != nil && !errors.As(err, &usage) {
				return usageError{err, c.CommandPath() + " --help"}
			}
			return err
		}
	}
	for _, sub := range c.Commands() {
		dress(sub)
	}
}

// wrongFlag says what is wrong with a flag, and how it is written.
func wrongFlag(c *cobra.Command, err error) error {
	if before := c.Flags().Args(); c.HasSubCommands() && len(before) > 0 { // the flag is of a command that there is not
		return c.Args(c, before)
	}
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return usageError{err, c.CommandPath() + " --help"}
	}
	f := value.GetFlag()
	if f.Value.Type() == "int" {
		return usageError{fmt.Errorf("--%s %s: a whole number is wanted", f.Name, value.GetValue()), c.CommandPath() + " --help"}
	}
	return usageError{fmt.Errorf("--%s %s: there is no such %s", f.Name, value.GetValue(), f.Value.Type()), value.Unwrap().Error()}
}

// group makes c a command that only holds others: alone it shows its help, and
// an unknown one among them is answered with the nearest that there is.
func group(c *cobra.Command) *cobra.Command {
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		err := fmt.Errorf("%s has no command %q", c.CommandPath(), given[0])
		if near := c.SuggestionsFor(given[0]); len(near) > 0 {
			return usageError{err, "did you mean " + c.CommandPath() + " " + cmp.Or(seats.Closest(given[0], near), near[0]) + "?"}
		}
		return usageError{err, c.CommandPath() + " --help"}
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// one wants exactly one argument, which the help calls name.
func one(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, given []string) error {
		switch len(given) {
		case 0:
			return fmt.Errorf("%s is missing", name)
		case 1:
			return nil
		}
		return fmt.Errorf("one %s is wanted, and %d are given: %s", name, len(given), strings.Join(given, " "))
	}
}

// none wants no argument.
func none(_ *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	return fmt.Errorf("no argument is wanted, and %q is given", given[0])
}

func oneAtMost(_ *cobra.Command, given []string) error {
	if len(given) > 1 {
		return fmt.Errorf("%q is one argument too many", given[1])
	}
	return nil
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "tell more of a command",
		Long:  "help shows what a command does, its flags and examples.",
		RunE: func(c *cobra.Command, given []string) error {
			found, rest, err := c.Root().Find(given)
			if err != nil {
				return err
			}
			if len(rest) > 0 && found.HasSubCommands() {
				return found.Args(found, rest)
			}
			return found.Help()
		},
	}
}
