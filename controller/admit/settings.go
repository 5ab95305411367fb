package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// Settings judges a request to change what people set of a node. Errors are
// those of Apply.
//
// A removed node is told nothing any more: what is in force there stays. One that
// is added again has the labels, account and linger that it had, so that nothing
// is taken from it by a removal that was a mistake.
func Settings(b Basis, r wire.SettingsRequest) (Decision, error) {
	j, err := newJudge(b, "node", r.Node, r.Wire)
	if err != nil {
		return Decision{}, err
	}
	j.yes = r.Yes
	n, was := j.record(r)
	if n == nil {
		return j.decide(nil, ""), nil
	}
	j.edit(n, r)
	if was != nil && same(was, n) {
		n = nil // it stands so
	}
	j.place(n)
	j.moves(r.Node)
	for _, c := range j.changes {
		j.reach(c)
	}
	j.full()
	j.owners()
	j.cites()
	j.paused()
	j.vocabulary()
	if n == nil {
		j.accounts(nil)
	} else if !n.Removed {
		j.accounts([]string{r.Node})
	}
	d := j.decide(n, j.sureOf(r))
	switch {
	case d.Node != nil:
		d.Reply.Node = told(d.Node, j.after)
	case was != nil:
		d.Reply.Node = told(was, j.before)
	}
	return d, nil
}

// record returns the record that r begins from, to be changed, and the one that
// stands; nil when there is a problem with the node as such.
func (j *judge) record(r wire.SettingsRequest) (n, was *assign.Node) {
	fail := func(rule, cure string) (*assign.Node, *assign.Node) {
		j.setting(r.Node, "", rule, cure)
		return nil, nil
	}
	if _, err := subject.ParseNode(r.Node); err != nil {
		return fail(fmt.Sprintf("%.80q is no node name", r.Node), "a node is named by a DNS label: 1 to 63 of a-z, 0-9 and -, with no - at either end")
	}
	was = j.State.Nodes[r.Node]
	_, unreadable := j.State.UnreadableNodes[r.Node]
	if unreadable {
		was = nil
	}
	switch {
	case r.Add && r.Remove:
		return fail("it is to be added and removed", "ask for one of them")
	case r.Remove && (len(r.Labels) > 0 || len(r.Unlabel) > 0 || r.Account != nil || r.Linger != nil):
		return fail("it is to be removed and set", "ask for one of them")
	case !r.Add && (unreadable || was == nil):
		return fail(j.unknownNode(r.Node))
	case !r.Add && !r.Remove && was.Removed:
		_, cure := j.unknownNode(r.Node)
		return fail("it was "+assign.ByAt("removed", was.By, was.At), strings.TrimPrefix(cure, "leave it out, or "))
	case was == nil:
		return assign.NewNode(r.Node, j.Who, j.Now), nil
	}
	copied := *was
	copied.Labels = maps.Clone(was.Labels)
	copied.By, copied.At = j.Who, j.Now
	return &copied, was
}

// edit sets what r asks for, and judges it.
func (j *judge) edit(n *assign.Node, r wire.SettingsRequest) {
	if r.Add && n.Removed {
		j.warn("%s", "it is known again, with what it had: "+settings(n))
	}
	if r.Remove && n.Removed {
		was := j.State.Nodes[n.Name]
		j.warn("it was %s already", assign.ByAt("removed", was.By, was.At))
	} else if r.Remove {
		j.removal(n.Name)
	}
	n.Removed = r.Remove
	j.relabel(n, r)
	if r.Account != nil {
		if *r.Account != "" && !wire.Login(*r.Account) {
			j.setting(n.Name, "account", fmt.Sprintf("%.80q is no name of a login", *r.Account), "use 1 to 32 letters, digits, -, _ and ., beginning with a letter or _")
		}
		if *r.Account == "root" {
			j.setting(n.Name, "account", "root is the manager of the system itself", "name the login whose user manager runs user units, or none")
		}
		j.moveAccount(n, *r.Account)
		n.Account = *r.Account
	}
	if r.Linger != nil {
		words := wire.Lingers()
		if !slices.Contains(words, *r.Linger) {
			cure := "write auto, on or off"
			if near := shape.Nearest(strings.ToLower(*r.Linger), words); near != "" {
				cure = "did you mean " + near + "?"
			}
			j.setting(n.Name, "linger", fmt.Sprintf("%.60q is no value of this setting", *r.Linger), cure)
		}
		n.Linger = *r.Linger
	}
}

// relabel sets and takes off labels.
func (j *judge) relabel(n *assign.Node, r wire.SettingsRequest) {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(r.Unlabel))) {
		if _, set := r.Labels[key]; set {
			j.setting(n.Name, "labels."+key, "it is to be set and taken off", "ask for one of them")
		} else if _, there := n.Labels[key]; !there {
			hint := ""
			if near := shape.Nearest(key, slices.Sorted(maps.Keys(n.Labels))); near != "" {
				hint = "; did you mean " + near + "?"
			}
			j.warn("%s carries no label %q%s", n.Name, key, hint)
		}
		delete(n.Labels, key)
	}
	const cure = "use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends"
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		value := r.Labels[key]
		switch {
		case !shape.LabelWord(key):
			j.setting(n.Name, "labels", fmt.Sprintf("%.80q is no key of a label", key), cure)
		case !shape.LabelWord(value):
			j.setting(n.Name, "labels."+key, fmt.Sprintf("%.80q is no value of a label", value), cure)
		case n.Labels == nil:
			n.Labels = map[string]string{}
			fallthrough
		default:
			n.Labels[key] = value
		}
	}
	if len(n.Labels) > shape.MaxLabels {
		j.setting(n.Name, "labels", fmt.Sprintf("it would carry %d labels; a node carries at most %d", len(n.Labels), shape.MaxLabels), "take some off")
	}
}

// removal says what a removal leaves behind.
func (j *judge) removal(node string) {
	if count := j.before.Count(node); count > 0 {
		j.warn("the %d declarations of %s stay in force there, and are told of no change: withdraw them first to have them taken away", count, node)
	}
	var naming []string
	for _, d := range j.before.Declared() {
		if slices.Contains(d.Address.Nodes, node) {
			naming = append(naming, d.Name)
		}
	}
	if len(naming) > 0 {
		j.warn("%s is named by %s: leave it out there", node, assign.List(naming))
	}
}

// moves finds the declarations that the node comes to have and ceases to have.
func (j *judge) moves(node string) {
	had, has := j.before.Set(node), j.after.Set(node)
	by := func(all []*assign.Declaration) map[string]bool {
		names := map[string]bool{}
		for _, d := range all {
			names[d.Name] = true
		}
		return names
	}
	before, after := by(had), by(has)
	for _, d := range had {
		if !after[d.Name] {
			j.changes = append(j.changes, &change{was: d, is: d, how: wire.Moved})
		}
	}
	for _, d := range has {
		if !before[d.Name] {
			j.changes = append(j.changes, &change{was: d, is: d, how: wire.Moved})
		}
	}
	slices.SortFunc(j.changes, func(a, b *change) int { return strings.Compare(a.is.Name, b.is.Name) })
}

// sureOf is sure for a node: a removal takes nothing, and with a record that
// cannot be read its labels are lost.
func (j *judge) sureOf(r wire.SettingsRequest) string {
	if why, yes := j.State.UnreadableNodes[r.Node]; yes {
		return fmt.Sprintf("the record of node %q cannot be read (%.200s): whatever was declared for labels that are not given now would be taken from it", r.Node, why)
	}
	if r.Remove {
		return ""
	}
	return j.sure()
}

// setting notes a problem of a node.
func (j *judge) setting(node, path, rule, cure string) {
	if len(node) > 63 || strings.ContainsFunc(node, func(r rune) bool { return r <= ' ' || r > '~' }) {
		node = fmt.Sprintf("%.80q", node)
	}
	j.problems.add(shape.Problem{Path: strings.TrimSuffix(node+"."+path, "."), Rule: rule, Cure: cure})
}

func same(a, b *assign.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && a.Account == b.Account && a.Linger == b.Linger && a.Removed == b.Removed
}

// settings says in short what is set of n.
func settings(n *assign.Node) string {
	account := n.Account
	if account == "" {
		account = "none"
	}
	labels := "no labels"
	if len(n.Labels) > 0 {
		labels = assign.Address{Labels: n.Labels}.String()
	}
	return fmt.Sprintf("%s, account %s, linger %s", labels, account, n.Linger)
}

// told is n as the caller is told of it; how it stands is for those to say who
// hear of it.
func told(n *assign.Node, p *assign.Placement) *wire.Node {
	w := &wire.Node{Name: n.Name, Labels: n.Labels, Account: n.Account, Linger: n.Linger, Declared: p.Count(n.Name), Revision: n.Revision, By: n.By, At: n.At}
	if n.Removed {
		w.State = wire.Removed
	}
	return w
}
