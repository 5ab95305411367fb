package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stead/host"
	"stead/host/fault"
	"stead/host/report"
)

// answerBound is how long a host may take to answer.
const answerBound = 10 * time.Second

// statusOptions are the flags of host status.
type statusOptions struct {
	socket, output string
	wait           waitTime
}

func newHostStatus(all Options) *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status [NAME|UNIT]...",
		Short: "what is declared on this machine, and how it stands",
		Long: "status asks the host of this machine how each declaration stands: its outcome,\n" +
			"the reason, and since when. With names of declarations or units it tells all\n" +
			"that is known of those: state, steps taken, warnings, last log lines.\n\n" +
			"With --wait it answers when all has been converged for a second, and when TIME\n" +
			"is over at the latest.\n\n" +
			"The exit code is 0 when everything named is converged, and 3 when something is\n" +
			"not, or the folder of declarations could not be taken over, or the mesh is out\n" +
			"of reach or was refused.",
		Example: "  stead host status\n  stead host status web backup.timer\n  stead host status --wait 2m\n  stead host status -o json",
		RunE: func(c *cobra.Command, args []string) error {
			if o.output != "" && !slices.Contains(formats(), o.output) {
				return usageError{fmt.Errorf("-o %s: there is no such format", o.output), "the formats are json, yaml and wide"}
			}
			st, err := o.ask(c.Context(), args)
			if err != nil {
				return err
			}
			var answer bytes.Buffer
			if err := o.print(screen{&answer, all.Now(), all.Width}, st, len(args) > 0); err != nil {
				return err
			}
			if _, err := answer.WriteTo(c.OutOrStdout()); err != nil {
				return err
			}
			return judge(st)
		},
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return declared(c.Context(), o.socket), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "answer in `FORMAT`: json, yaml or wide")
	f.Var(&o.wait, "wait", "wait up to `TIME`, such as 30s, until all is converged")
	f.StringVar(&o.socket, "socket", defaultSocket, "ask the host at `PATH`")
	complete(c, "output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	complete(c, "wait", cobra.NoFileCompletions)
	return c
}

func formats() []string { return []string{"json", "yaml", "wide"} }

// ask gets the status, now or when it is good.
func (o statusOptions) ask(ctx context.Context, names []string) (host.Status, error) {
	read := func() (host.Status, error) { return readStatus(ctx, o.socket, names) }
	if o.wait <= 0 {
		return read()
	}
	return await(ctx, time.Duration(o.wait), read)
}

// readStatus gets the status of what is named, of all without names.
func readStatus(ctx context.Context, socket string, names []string) (host.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	st, err := host.ReadStatus(ctx, socket)
	if err != nil {
		return st, err
	}
	st.Reports, err = choose(st.Reports, names)
	return st, err
}

// choose returns the reports that are named, in that order, and all of them
// without names. The result is never nil.
func choose(all []*report.Report, names []string) ([]*report.Report, error) {
	chosen := make([]*report.Report, 0, len(all))
	if len(names) == 0 {
		return append(chosen, all...), nil
	}
	for _, n := range names {
		i := slices.IndexFunc(all, func(r *report.Report) bool {
			return r.Name == n || string(r.Unit) == n || string(r.Unit) == n+".service"
		})
		if i < 0 {
			return nil, fault.New(fault.NotFound, "status", n, fmt.Errorf("nothing of that name is declared on this machine")).
				WithHint("stead host status")
		}
		if !slices.Contains(chosen, all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// judge ends the command with ExitNotWanted when not all is as declared.
func judge(st host.Status) error {
	if wanted(st) {
		return nil
	}
	return errNotWanted
}

// wanted reports whether the folder, or what the mesh declares, was taken over and
// all of st is converged.
func wanted(st host.Status) bool {
	return st.Source.Trouble == "" && !st.Source.Taking && len(st.Source.Leaving) == 0 && !st.Source.Read.IsZero() &&
		!slices.ContainsFunc(st.Reports, func(r *report.Report) bool { return r.Outcome != report.Converged })
}

// declared are the names to complete; none when the host does not answer.
func declared(ctx context.Context, socket string) []string {
	st, err := readStatus(ctx, socket, nil)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(st.Reports))
	for _, r := range st.Reports {
		names = append(names, r.Name)
	}
	return names
}

func (o statusOptions) print(w screen, st host.Status, detail bool) error {
	switch {
	case o.output == "json" || o.output == "yaml":
		return encode(w, o.output, st)
	case detail:
		for i, r := range st.Reports {
			if i > 0 {
				fmt.Fprintln(w)
			}
			w.describe(r)
		}
		return nil
	}
	w.source(st.Source, len(st.Reports) > 0)
	w.overview(st, o.output == "wide")
	return nil
}
