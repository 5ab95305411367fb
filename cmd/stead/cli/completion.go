package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// shells are those that the library writes completion for and that systemd's
// machines have.
func shells() []string { return []string{"bash", "fish", "zsh"} }

// folders completes the names of folders, for a first argument or a flag.
func folders(_ *cobra.Command, before []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// complete makes c complete the values of its flag by f.
func complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	// It fails for a flag that there is not; the scripts complete each of them.
	_ = c.RegisterFlagCompletionFunc(flag, f)
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "print what makes bash, fish or zsh complete commands and names",
		Long: "completion prints a script; a shell that has read it completes stead's\n" +
			"commands and flags, and the names of declarations, nodes, seats and units, where\n" +
			"the mesh says them at once. For bash the package bash-completion must be\n" +
			"installed.",
		Example:   "  stead completion bash > /etc/bash_completion.d/stead",
		ValidArgs: shells(),
		Args: func(c *cobra.Command, given []string) error {
			if err := one("SHELL")(c, given); err != nil {
				return err
			}
			if !slices.Contains(shells(), given[0]) {
				return usageError{fmt.Errorf("there is no completion for %q", given[0]), "the shells are bash, fish and zsh"}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(c.OutOrStdout(), true)
			case "fish":
				return c.Root().GenFishCompletion(c.OutOrStdout(), true)
			}
			return c.Root().GenZshCompletion(c.OutOrStdout())
		},
	}
}
