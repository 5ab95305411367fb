package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/cmd/stead/contexts"
	"stead/mesh/identity"
)

func newContext(r *reach) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "context",
		Short: "choose which mesh commands ask, and as whom",
		Long: "A context is a name for a file of credentials: which mesh is asked, at which\n" +
			"addresses, and as whom. One of them is the current one; --context or the\n" +
			"environment variable STEAD_CONTEXT takes another for one command.",
	})
	c.AddCommand(newContextList(r), newContextUse(r), newContextAdd(r), newContextRemove(r), newContextShow(r), newContextNATS(r))
	return c
}

// contextView is a context as it is shown: without its secret.
type contextView struct {
	Name    string        `json:"name"`
	Current bool          `json:"current"`
	Path    string        `json:"path"`
	Mesh    string        `json:"mesh,omitempty"`
	Role    identity.Role `json:"role,omitempty"`
	As      string        `json:"as,omitempty"`
	Servers []string      `json:"servers,omitempty"`
	Expires time.Time     `json:"expires,omitzero"`
	Seen    int           `json:"seen,omitempty"` // declarations whose state is remembered
	Error   string        `json:"error,omitempty"`
}

func viewOf(c contexts.Context) contextView {
	v := contextView{Name: c.Name, Current: c.Current, Path: c.Path}
	if c.Err != nil {
		v.Error = c.Err.Error()
		return v
	}
	v.Mesh, v.Role, v.As, v.Servers, v.Expires = c.Credentials.Mesh, c.Credentials.Role, c.Credentials.Name, c.Credentials.URLs, c.Credentials.Expires()
	return v
}

func newContextList(r *reach) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:     "list",
		Short:   "list the contexts",
		Long:    "list shows the contexts of the user who runs it; * is the current one.",
		Example: "  stead context list",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := r.store()
			if err != nil {
				return err
			}
			all, err := store.List()
			if err != nil {
				return err
			}
			views := make([]contextView, 0, len(all))
			for _, one := range all {
				views = append(views, viewOf(one))
			}
			out := r.o.screen(c.OutOrStdout())
			if output.coded() {
				return encode(out, string(output), views)
			}
			return flush(out, func(w screen) { w.contexts(views, output == "wide") })
		},
	}
	formatFlag(c, &output)
	return c
}

func (w screen) contexts(all []contextView, wide bool) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no contexts")
		return
	}
	head := []string{"CONTEXT", "ROLE", "AS", "SERVERS"}
	if wide {
		head = append(head, "MESH", "EXPIRES", "FILE")
	}
	rows := make([][]string, 0, len(all))
	for _, v := range all {
		name := "  " + v.Name
		if v.Current {
			name = "* " + v.Name
		}
		row := []string{name, dash(string(v.Role)), dash(v.As), dash(strings.Join(v.Servers, ", "))}
		if v.Error != "" {
			row[3] = v.Error
		}
		if wide {
			row = append(row, dash(v.Mesh), w.expiry(v.Expires), v.Path)
		}
		rows = append(rows, row)
	}
	head[0] = "  " + head[0]
	table(w, "", head, rows)
}

// expiry is the day on which credentials end.
func (w screen) expiry(t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case !t.After(w.now):
		return "over since " + t.Local().Format(time.DateOnly)
	}
	return t.Local().Format(time.DateOnly)
}

func newContextUse(r *reach) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "make a context the current one",
		Example:           "  stead context use home",
		Args:              one("NAME"),
		ValidArgsFunction: r.completeContexts,
		RunE: func(c *cobra.Command, args []string) error {
			store, err := r.store()
			if err != nil {
				return err
			}
			used, err := store.Use(c.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "using %s: %s\n", used.Name, who(used))
			return err
		},
	}
}

func who(c contexts.Context) string {
	return fmt.Sprintf("%s %s at %s", c.Credentials.Role, c.Credentials.Name, strings.Join(c.Credentials.URLs, ", "))
}

func newContextAdd(r *reach) *cobra.Command {
	return &cobra.Command{
		Use:   "add [NAME] FILE",
		Short: "make a context of a file of credentials",
		Long: "add copies a file of credentials of an operator or viewer, and names the copy:\n" +
			"NAME, or that of the user. The first context is the current one. Newer\n" +
			"credentials of the same user take the place of older ones.",
		Example: "  stead context add home alice.json",
		Args: func(_ *cobra.Command, given []string) error {
			switch len(given) {
			case 0:
				return errors.New("FILE is missing: it holds credentials")
			case 1, 2:
				return nil
			}
			return fmt.Errorf("%q is one argument too many", given[2])
		},
		RunE: func(c *cobra.Command, args []string) error {
			store, err := r.store()
			if err != nil {
				return err
			}
			file := args[len(args)-1]
			credentials, err := contexts.Read(file)
			if err != nil {
				return err
			}
			if !slices.Contains([]identity.Role{identity.Operator, identity.Viewer}, credentials.Role) {
				return usageError{fmt.Errorf("%s holds credentials of a %s, and people are operators and viewers", file, credentials.Role), "stead context add --help"}
			}
			name := credentials.Name
			if len(args) == 2 {
				name = args[0]
			}
			added, err := store.Add(c.Context(), name, credentials)
			if err != nil {
				return err
			}
			text := "added"
			if added.Current {
				text = "added and using"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s: %s\n", text, added.Name, who(added))
			return err
		},
	}
}

func newContextRemove(r *reach) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "delete a context and its credentials",
		Long:              "remove deletes the copies of the credentials on this machine, that for the nats\ncommand too, and what was seen through them. Their user stays one of the mesh.",
		Example:           "  stead context remove old",
		Args:              one("NAME"),
		ValidArgsFunction: r.completeContexts,
		RunE: func(c *cobra.Command, args []string) error {
			store, err := r.store()
			if err != nil {
				return err
			}
			if err := store.Remove(c.Context(), args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "removed %s\n", args[0])
			return err
		},
	}
}

func newContextShow(r *reach) *cobra.Command {
	var output format
	c := asks(&cobra.Command{
		Use:               "show [NAME]",
		Short:             "tell of one context, the current one without a name",
		Long:              "show tells which mesh a context leads to and as whom, where its file lies, and\nof how many declarations it is remembered in which state they were last seen.",
		Example:           "  stead context show",
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
			v := viewOf(found)
			marks, err := store.Marks(found.Credentials)
			if err != nil {
				warn(c.ErrOrStderr(), []string{err.Error()})
			}
			v.Seen = len(marks.Seen)
			out := r.o.screen(c.OutOrStdout())
			if output.coded() {
				return encode(out, string(output), v)
			}
			return flush(out, func(w screen) { w.context(v) })
		},
	})
	formatFlag(c, &output)
	return c
}

// named is the context of an argument that may be left out.
func (r *reach) named(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return r.asked()
}

func (w screen) context(v contextView) {
	note := ""
	if v.Current {
		note = "   the current context"
	}
	fmt.Fprintf(w, "● %s%s\n", dash(v.Name), note)
	w.fact("as", "%s %s", v.Role, v.As)
	w.fact("mesh", "%s", v.Mesh)
	w.fact("servers", "%s", strings.Join(v.Servers, ", "))
	w.fact("expires", "%s", w.expiry(v.Expires))
	w.fact("file", "%s", v.Path)
	w.fact("seen", "%s", count(v.Seen, "declaration"))
}

// completeContexts completes the names of contexts.
func (r *reach) completeContexts(_ *cobra.Command, before []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	if store, err := r.store(); err == nil && len(before) == 0 {
		all, _ := store.List() // who completes is told nothing of errors
		for _, c := range all {
			names = append(names, c.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
