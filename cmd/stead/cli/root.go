// Package cli is the command tree of stead, one file for each command.
//
// Commands are made by functions that return a *cobra.Command; they own no
// state, write their answer to standard output and all else to standard error,
// and return errors. Only Main turns an error into "error:" and "hint:" lines
// and an exit code: 0 done, 1 failed, 2 usage, 3 not in the wanted state, 4 some
// nodes did not answer.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/host/shape"
)

// The exit codes of every command.
const (
	ExitDone      = 0
	ExitFailed    = 1
	ExitUsage     = 2
	ExitNotWanted = 3 // the answer is complete, and something is not as declared
	ExitSilent    = 4 // some nodes did not answer
)

// Options are what a command runs with.
type Options struct {
	Args     []string
	In       io.Reader
	Out, Err io.Writer
	Width    int // columns of the terminal that Out is; 0: it is none
	Version  string
	Now      func() time.Time    // the clock of "since when"; nil: time.Now
	Env      func(string) string // the environment; nil: an empty one
}

// screen is out as a place for an answer.
func (o Options) screen(out io.Writer) screen { return screen{out, o.Now(), o.Width} }

// errNotWanted ends a command whose answer was given, and was not a good one.
var errNotWanted = errors.New("not in the wanted state")

// errSilent ends a command whose answer lacks that of some nodes.
var errSilent = errors.New("some nodes did not answer")

// usageError is a command line that cannot be understood, and its cure.
type usageError struct {
	error
	hint string
}

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, o Options) int {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	o.Err = &tame{Writer: o.Err}
	if o.Width > 0 {
		o.Out = &tame{Writer: o.Out} // what a program reads is as it is
	}
	root := newRoot(o)
	root.SetArgs(joinWait(joinBoot(o.Args)))
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.Err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, errNotWanted):
		return ExitNotWanted
	case errors.Is(err, errSilent):
		return ExitSilent
	case errors.Is(err, errTold):
		return ExitFailed
	case errors.As(err, &usage):
		complain(o.Err, usage.error, usage.hint)
		return ExitUsage
	}
	complain(o.Err, err, "")
	return ExitFailed
}

// complain writes an error and its cure.
func complain(w io.Writer, err error, hint string) {
	var problems shape.Problems
	var held refusal
	switch {
	case errors.As(err, &held):
		held.complain(w)
		return
	case errors.As(err, &problems):
		fmt.Fprint(w, "error: ")
		// The terminal that cannot be written to has no other place to say so.
		_ = problems.Format(w, "")
	default:
		fmt.Fprintf(w, "error: %s\n", strings.TrimSpace(err.Error()))
	}
	var f *fault.Error
	if hint == "" && errors.As(err, &f) {
		hint = f.Hint
	}
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}

func newRoot(o Options) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "stead",
		Short: "keep the systemd units of machines as they are declared",
		Long: "stead keeps the systemd units of machines as they are declared.\n\n" +
			"A declaration says what is to be so of one unit: its file, its drop-ins,\n" +
			"whether it runs and whether it is enabled. The host applies it, and puts it\n" +
			"right when it drifts.\n\n" +
			"In a mesh, declarations are applied once and come to every node that they\n" +
			"address.",
		Version:       o.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetVersionTemplate("stead {{.Version}}\n")
	root.InitDefaultVersionFlag()
	if f := root.Flags().Lookup("version"); f != nil { // there is none without a version
		f.Usage = "print the version"
	}
	r := &reach{o: o}
	r.flags(root.PersistentFlags())
	root.AddCommand(newUp(o), newController(o), newHost(o), newRuntime(o), newEscalate(), newCredentials())
	root.AddCommand(newApply(r), newDiff(r), newWithdraw(r), newGet(r), newDescribe(r), newEvents(r), newPause(r), newResume(r), newNode(r), newContext(r))
	root.AddCommand(newUnits(r), newStatus(r), newStart(r), newStop(r), newRestart(r), newEnable(r), newDisable(r), newJournal(r), newCall(r))
	root.AddCommand(newExplain(o), newCompletion(), newVersion(o))
	complete(root, "context", r.completeContexts)
	complete(root, "timeout", cobra.NoFileCompletions)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	dress(root)
	return root
}

func newVersion(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of this program",
		Args:  none,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "stead", o.Version)
			return err
		},
	}
}
