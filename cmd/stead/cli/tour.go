package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/client"
	"stead/mesh/subject"
	"stead/seats"
)

const (
	// gatherFor is how long the answers of nodes are waited for that read.
	gatherFor = 5 * time.Second
	// jobFor is how long the end of a job is waited for, and jobMargin what its
	// answer takes besides.
	jobFor    = 90 * time.Second
	jobMargin = 5 * time.Second
)

// errTold ends a command whose errors were written as they came.
var errTold = errors.New("some of it failed")

// nodeAnswer is what became of a call on one node, as -o json has it: one of
// Reply, Error and Silent is there.
type nodeAnswer struct {
	Node   string          `json:"node"`
	Reply  json.RawMessage `json:"reply,omitempty"`
	Error  *nodeError      `json:"error,omitempty"`
	Silent string          `json:"silent,omitempty"` // why it did not answer
}

type nodeError struct {
	Class string `json:"class"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// tour is one command that calls verbs on nodes.
type tour struct {
	l       *link
	verbs   *client.Verbs
	nodes   []subject.Node
	all     bool                        // these are all that there are
	check   func(context.Context) error // for names that nobody knows; nil: all are known
	limit   time.Duration
	log     io.Writer
	told    bool // an error was written
	answers []nodeAnswer
	silent  []client.Answer
}

// tour finds the nodes that a means and calls f. Limit is how long one call may
// take where --timeout says nothing.
func (r *reach) tour(c *cobra.Command, a *address, limit time.Duration, f func(context.Context, *tour) error) error {
	if err := a.check(c); err != nil {
		return err
	}
	return r.run(c.Context(), func(ctx context.Context, l *link) error {
		t := &tour{l: l, verbs: client.NewVerbs(l.conn), nodes: a.named(), all: a.all, limit: limit, log: c.ErrOrStderr()}
		t.check = func(ctx context.Context) error { return a.strangers(ctx, r, l) }
		if t.nodes == nil {
			var err error
			if t.nodes, err = a.find(ctx, r, l); err != nil {
				return err
			}
			t.check = nil
		}
		if c.Flags().Changed("timeout") {
			t.limit = time.Duration(r.timeout)
		}
		return f(ctx, t)
	})
}

// manager is a verb of node-service-manager.
func manager(class subject.Class, name subject.Verb) client.Verb {
	return client.Verb{Class: class, Seat: seats.NodeServiceManager, Name: name}
}

// ask calls v on every node and hands the replies to take as they come. What
// went wrong is written as it comes, who is silent is kept. The error is that of
// the connection, or of take.
func (t *tour) ask(ctx context.Context, v client.Verb, arguments any, take func(node subject.Node, reply json.RawMessage) error) error {
	if v.Class == subject.Write && len(t.nodes) > 1 { // nothing is done on some while there is none of another's name
		if err := t.checked(ctx); err != nil {
			return err
		}
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	var broken error
	note := func(a client.Answer) {
		if broken == nil {
			broken = t.note(v, a, take)
		}
	}
	if t.all && v.Class == subject.Read && len(t.nodes) > 1 {
		if err := t.verbs.Gather(ctx, v, t.nodes, arguments, note); err != nil {
			return t.l.explain(string(v.Name), err)
		}
	} else { // an act goes to nobody but the nodes that were found
		t.verbs.CallEach(ctx, v, t.nodes, arguments, note)
	}
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) && broken == nil {
		return fault.New(fault.Canceled, string(v.Name), "", errors.New("interrupted"))
	}
	return cmp.Or(broken, t.known(whole))
}

// known is the error of a node that is silent since there is none of that name.
func (t *tour) known(ctx context.Context) error {
	if len(t.silent) == 0 {
		return nil
	}
	return t.checked(ctx)
}

// checked is the error of a name that no node has. It is looked for once.
func (t *tour) checked(ctx context.Context) error {
	if t.check == nil {
		return nil
	}
	check := t.check
	t.check = nil
	return check(ctx)
}

// again calls v once more on one node that answered.
func (t *tour) again(ctx context.Context, v client.Verb, node subject.Node, arguments any, take func(subject.Node, json.RawMessage) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	return t.note(v, t.verbs.Call(ctx, v, node, arguments), take)
}

// note takes an answer down, and writes it when it is an error.
func (t *tour) note(v client.Verb, a client.Answer, take func(subject.Node, json.RawMessage) error) error {
	switch {
	case a.Silent != "":
		t.silent = append(t.silent, a)
		t.answers = append(t.answers, nodeAnswer{Node: string(a.Node), Silent: a.Silent})
		return nil
	case a.Err == nil:
		return take(a.Node, a.Reply)
	case fault.Is(a.Err, fault.Canceled):
		return nil
	}
	err := t.onNode(v, a.Node, a.Err)
	t.answers = append(t.answers, nodeAnswer{Node: string(a.Node), Error: &nodeError{Class: string(fault.ClassOf(err)), Text: err.Error(), Hint: fault.HintOf(err)}})
	t.fail(err)
	return nil
}

// fail writes an error of a node as it comes.
func (t *tour) fail(err error) {
	t.told = true
	complain(t.log, err, "")
}

// onNode is an error with the node that answered so.
func (t *tour) onNode(v client.Verb, node subject.Node, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.Internal, "", "", err)
	}
	if f.Object == v.On(node) { // the connection's, before anybody was asked
		return t.l.explain(fmt.Sprintf("%s on %s", v.Name, node), fault.New(f.Class, "", "", f.Cause).WithHint(f.Hint))
	}
	op, object := cmp.Or(f.Op, string(v.Name)), "on "+string(node)
	if f.Object != "" {
		object = f.Object + " " + object
	}
	hint := f.Hint
	if hint == "" && f.Class == fault.NotFound && v.Seat == seats.NodeServiceManager {
		hint = "stead units -a -n " + string(node)
	}
	return fault.New(f.Class, op+" "+object, "", f.Cause).WithHint(hint)
}

// keep is a reply as -o json has it.
func (t *tour) keep(node subject.Node, reply any) error {
	text, err := json.Marshal(reply)
	if err == nil {
		t.answers = append(t.answers, nodeAnswer{Node: string(node), Reply: text})
	}
	return err
}

// coded writes all that was kept, by node.
func (t *tour) coded(w io.Writer, f format) error {
	slices.SortStableFunc(t.answers, func(a, b nodeAnswer) int { return strings.Compare(a.Node, b.Node) })
	return encode(w, string(f), struct {
		Answers []nodeAnswer `json:"answers"`
	}{t.answers})
}

// end says who was silent, and is the verdict of the whole.
func (t *tour) end(notWanted bool) error {
	for _, text := range t.unheard() {
		fmt.Fprintf(t.log, "error: %s\n", text)
	}
	return t.verdict(notWanted)
}

// verdict is end where it was said who is silent.
func (t *tour) verdict(notWanted bool) error {
	if len(t.silent) > 0 {
		fmt.Fprintf(t.log, "hint: %s\n", silence)
	}
	switch {
	case t.told:
		return errTold
	case len(t.silent) > 0:
		return errSilent
	case notWanted:
		return errNotWanted
	}
	return nil
}

// silence is what to do about a node that does not answer.
const silence = "its runtime is down, or it is cut off: stead get nodes; systemctl status stead-runtime there"

// unheard names who is silent, for each reason.
func (t *tour) unheard() []string {
	by := map[string][]string{}
	var why []string
	for _, a := range t.silent {
		if by[a.Silent] == nil {
			why = append(why, a.Silent)
		}
		if !slices.Contains(by[a.Silent], string(a.Node)) {
			by[a.Silent] = append(by[a.Silent], string(a.Node))
		}
	}
	slices.Sort(why)
	var parts []string
	for _, w := range why {
		slices.Sort(by[w])
		parts = append(parts, w+": "+strings.Join(by[w], ", "))
	}
	return parts
}

// read decodes a reply of node.
func read[T any](t *tour, v client.Verb, node subject.Node, reply json.RawMessage) (T, error) {
	var to T
	if err := json.Unmarshal(reply, &to); err != nil {
		return to, t.onNode(v, node, fault.New(fault.Internal, "", "", fmt.Errorf("the answer cannot be read: %w", err)))
	}
	return to, nil
}
