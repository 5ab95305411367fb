package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"stead/host"
	"stead/host/fault"
	"stead/host/report"
)

// statusBound is how long a host may take to answer.
const statusBound = 10 * time.Second

func newHostStatus() *cobra.Command {
	var socket, output string
	c := &cobra.Command{
		Use:   "status [NAME|UNIT]...",
		Short: "what is declared on this machine, and how it stands",
		Long: "status asks the host of this machine how each declaration stands: its outcome, the reason, and since\n" +
			"when. With names of declarations or units it tells all that is known of those: state, steps taken,\n" +
			"warnings, last log lines.\n\n" +
			"The exit code is 0 when everything named is converged, and 3 when something is not.",
		Example: "  stead host status\n  stead host status web\n  stead host status -o json",
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "wide", "json", "yaml"}, output) {
				return usageError{fmt.Errorf("-o %s: the formats are json, yaml and wide", output), c.CommandPath()}
			}
			ctx, cancel := context.WithTimeout(c.Context(), statusBound)
			defer cancel()
			st, err := host.ReadStatus(ctx, socket)
			if err != nil {
				return err
			}
			all := st.Reports
			if st.Reports, err = choose(all, args); err != nil {
				return err
			}
			if err := printStatus(c.OutOrStdout(), st, output, len(args) > 0); err != nil {
				return err
			}
			return judge(st)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json, yaml or wide")
	c.Flags().StringVar(&socket, "socket", defaultSocket, "where the host answers")
	return c
}

// choose returns the reports that args name, all of them without args.
func choose(all []*report.Report, args []string) ([]*report.Report, error) {
	if len(args) == 0 {
		return all, nil
	}
	var chosen []*report.Report
	for _, a := range args {
		i := slices.IndexFunc(all, func(r *report.Report) bool {
			return r.Name == a || string(r.Unit) == a || string(r.Unit) == a+".service"
		})
		if i < 0 {
			return nil, fault.New(fault.NotFound, "status", a, fmt.Errorf("nothing of that name is declared on this machine")).
				WithHint("stead host status")
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// judge ends the command with ExitNotWanted when anything is not converged or
// the folder could not be taken over.
func judge(st host.Status) error {
	if st.Source.Trouble != "" {
		return errNotWanted
	}
	for _, r := range st.Reports {
		if r.Outcome != report.Converged {
			return errNotWanted
		}
	}
	return nil
}

func printStatus(w io.Writer, st host.Status, output string, detail bool) error {
	switch {
	case output == "json" || output == "yaml":
		return encode(w, output, st)
	case detail:
		for i, r := range st.Reports {
			if i > 0 {
				fmt.Fprintln(w)
			}
			describe(w, r)
		}
		return nil
	}
	source(w, st.Source)
	overview(w, st.Reports, output == "wide")
	return nil
}

// source says where the declarations come from, and what is the matter with it.
func source(w io.Writer, s host.Source) {
	switch {
	case s.Trouble == "":
		return
	case s.Accepted.IsZero():
		fmt.Fprintf(w, "%s: %s; nothing was accepted yet\n", s.Folder, s.Trouble)
	default:
		fmt.Fprintf(w, "%s: %s; what was accepted at %s stays in force\n", s.Folder, s.Trouble, s.Accepted.Format("15:04:05"))
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "  %s\n", p)
	}
	fmt.Fprintln(w)
}

func overview(w io.Writer, reports []*report.Report, wide bool) {
	if len(reports) == 0 {
		fmt.Fprintln(w, "nothing is declared on this machine")
		return
	}
	head := []string{"UNIT", "DECLARATION", "OUTCOME", "SINCE", "REASON"}
	if wide {
		head = []string{"SCOPE", "UNIT", "DECLARATION", "GEN", "LOAD", "ACTIVE", "ENABLED", "PID", "OUTCOME", "SINCE", "REASON"}
	}
	rows := make([][]string, 0, len(reports))
	tally := map[report.Outcome]int{}
	for _, r := range reports {
		tally[r.Outcome]++
		why := reason(r)
		if wide {
			rows = append(rows, []string{string(r.Scope), string(r.Unit), r.Name, fmt.Sprint(r.Generation), string(r.State.Load),
				state(r.State), r.State.Enabled, pid(r.State), string(r.Outcome), ago(r.Since), why})
			continue
		}
		rows = append(rows, []string{string(r.Unit), r.Name, string(r.Outcome), ago(r.Since), text.Snip(why, 100, "…")})
	}
	table(w, head, rows)
	if n := tally[report.Converged]; n < len(reports) {
		var parts []string
		for _, o := range []report.Outcome{report.Converged, report.Waiting, report.Failed, report.Refused, report.Contested, report.Paused} {
			if tally[o] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", tally[o], o))
			}
		}
		fmt.Fprintf(w, "%d declared: %s\n", len(reports), strings.Join(parts, ", "))
	}
}

func reason(r *report.Report) string {
	switch {
	case r.Text == "":
		return string(r.Reason)
	case r.Reason == "" || strings.HasPrefix(r.Text, string(r.Reason)) || strings.HasPrefix(r.Text, strings.ReplaceAll(string(r.Reason), "-", " ")):
		return r.Text
	}
	return string(r.Reason) + ": " + r.Text
}

func state(s report.State) string {
	if s.Active == "" {
		return "–"
	}
	return fmt.Sprintf("%s (%s)", s.Active, s.Sub)
}

func pid(s report.State) string {
	if s.MainPID == 0 {
		return "–"
	}
	return fmt.Sprint(s.MainPID)
}
