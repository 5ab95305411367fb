package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stead/cmd/stead/contexts"
)

func newContextNATS(r *reach) *cobra.Command {
	var as string
	c := asks(&cobra.Command{
		Use:   "nats [NAME]",
		Short: "write a context for the nats command, of the current one without a name",
		Long: "nats writes a context of the same name for the nats command, the command line of\n" +
			"NATS: with it every node is a NATS service, to list, look at and call as this\n" +
			"context's user. What other NATS clients need it shows: the servers, a .creds file,\n" +
			"the authority to believe, and the prefix of the only inbox on which answers are\n" +
			"heard. The key goes to files of mode 0600 and nowhere else.\n\n" +
			"A context of the nats command that was not written so stays as it is. Newer\n" +
			"credentials reach it with stead context add, and it goes with stead context remove.",
		Example:           "  stead context nats\n  nats --context ws1 micro ls",
		ValidArgsFunction: r.completeContexts,
		Args:              oneAtMost,
		RunE: func(c *cobra.Command, args []string) error {
			store, err := r.store()
			if err != nil {
				return err
			}
			found, err := store.Find(r.named(args))
			if err != nil {
				return err
			}
			written, err := store.NATS(c.Context(), found, cmp.Or(as, found.Name))
			if err != nil {
				return err
			}
			return flush(r.o.screen(c.OutOrStdout()), func(w screen) { w.natsContext(found, written) })
		},
	})
	c.Flags().StringVar(&as, "as", "", "call it `OTHER` there")
	return c
}

func (w screen) natsContext(c contexts.Context, n contexts.NATS) {
	fmt.Fprintf(w, "wrote context %s of the nats command: %s %s\n", n.Name, c.Credentials.Role, c.Credentials.Name)
	table(w, "  ", nil, [][]string{
		{"servers", strings.Join(c.Credentials.URLs, ", ")},
		{"credentials", n.Creds},
		{"authority", n.CA},
		{"inbox prefix", n.Inbox},
	})
	fmt.Fprintf(w, "next: nats --context %s micro ls\n", n.Name)
}
