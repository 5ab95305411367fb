package admit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// Pause judges a request to leave one unit of a node as it is for a while, or to end
// that. Errors are those of Apply.
//
// A unit that is paused already is paused anew, whoever paused it; to end a pause
// that there is not is no change. Of both it is known who did it.
func Pause(b Basis, r wire.PauseRequest) (Decision, error) {
	j, err := newJudge(b, "pause", r.Node, r.Wire)
	if err != nil {
		return Decision{}, err
	}
	n, was := j.record(wire.SettingsRequest{Node: r.Node})
	if n == nil {
		return j.decide(nil, ""), nil
	}
	var about *wire.Pause
	if u, ok := j.pausable(n, r); ok && r.End {
		about = j.unpause(n, u)
	} else if ok {
		about = j.pause(n, u, r)
	}
	if slices.EqualFunc(was.Pauses, n.Pauses, wire.Pause.Same) {
		n = nil // it stands so
	}
	j.place(n)
	d := j.decide(n, "")
	d.Reply.Node, d.Reply.Pause = told(was, j.before), about
	if d.Node != nil {
		d.Reply.Node = told(d.Node, j.after)
	}
	return d, nil
}

// pausable finds the unit that r means, which is declared for n, or paused: what was
// withdrawn meanwhile is given back when its pause ends.
func (j *judge) pausable(n *assign.Node, r wire.PauseRequest) (wire.Pause, bool) {
	p := wire.Pause{Scope: unit.Scope(r.Scope), By: j.Who, At: j.Now.UTC().Truncate(time.Second)}
	if p.Scope == "" {
		p.Scope = unit.System
	}
	if p.Scope != unit.System && p.Scope != unit.User {
		j.setting(n.Name, "scope", fmt.Sprintf("%.60q is no scope", r.Scope), "write system or user")
		return p, false
	}
	if strings.HasPrefix(r.Unit, shape.FilePrefix) || strings.HasPrefix(r.Unit, "/") {
		j.setting(n.Name, "unit", fmt.Sprintf("%.80q is a file, and a pause is of a unit", r.Unit), "name a unit, such as web.service; a file is left alone once it is withdrawn with on_withdraw: release")
		return p, false
	}
	name, err := unit.ParseName(unit.Full(r.Unit))
	if err != nil {
		j.setting(n.Name, "unit", err.Error(), "a unit is named by its full name, such as web.service")
		return p, false
	}
	if old := n.Pause(p.Scope, name); old != nil && !old.Over(j.Now) {
		p.Unit, p.Declaration = old.Unit, old.Declaration
		return p, true
	}
	for _, d := range j.before.Set(n.Name) {
		if d.Service.Scope == p.Scope && (d.Service.Unit == name || slices.Contains(d.Service.Aliases(), name)) {
			p.Unit, p.Declaration = d.Service.Unit, d.Name
			return p, true
		}
	}
	j.undeclared(n, p.Scope, name)
	return p, false
}

// undeclared notes that nothing is declared of a unit, with what was probably meant.
func (j *judge) undeclared(n *assign.Node, scope unit.Scope, name unit.Name) {
	var names []string
	cure := ""
	for _, d := range j.before.Set(n.Name) {
		s := d.Service
		switch {
		case s.Unit == name:
			cure = fmt.Sprintf("declaration %s is of it in %s scope: --%s", d.Name, s.Scope, s.Scope)
		case s.File != nil:
			continue
		case cure == "" && s.Scope == scope && d.Name == strings.TrimSuffix(string(name), ".service"):
			cure = fmt.Sprintf("declaration %s is of %s: name that", d.Name, s.Unit)
		}
		if s.Scope == scope {
			names = append(names, string(s.Unit))
		}
	}
	if near := j.nearest(string(name), names); cure == "" && near != "" {
		cure = "did you mean " + near + "?"
	}
	if cure == "" {
		cure = "what stead does not keep needs no pause; what is declared there: stead get declarations -n " + n.Name
	}
	j.setting(n.Name, "unit", fmt.Sprintf("nothing is declared of %s in %s scope on node %q", name, scope, n.Name), cure)
}

// pause puts p on n, as r asks for it; nil when a rule forbids it.
func (j *judge) pause(n *assign.Node, p wire.Pause, r wire.PauseRequest) *wire.Pause {
	if at := int64(wire.MinPause / time.Second); r.Seconds < at || r.Seconds > int64(wire.MaxPause/time.Second) {
		j.setting(n.Name, "for", fmt.Sprintf("%s is out of bounds", pauseText(r.Seconds)),
			"a pause is 1m to 7d long; what is to rest for longer is declared so (ensure: stopped), or withdrawn")
		return nil
	}
	if len(r.Reason) > wire.MaxPauseReason || strings.ContainsFunc(r.Reason, func(c rune) bool { return !unicode.IsPrint(c) }) {
		j.setting(n.Name, "reason", "it is no line of text that can be shown", fmt.Sprintf("write one line of at most %d bytes", wire.MaxPauseReason))
		return nil
	}
	if rule, cure := j.heedless(n.Name); rule != "" {
		j.setting(n.Name, "", rule, cure)
		return nil
	}
	p.Seconds, p.Reason = r.Seconds, r.Reason
	p.Until = p.At.Add(p.Length())
	n.Pauses = n.WithPause(p, j.Now)
	if len(n.Pauses) > wire.MaxPauses {
		j.setting(n.Name, "", fmt.Sprintf("%d units of it are paused already", wire.MaxPauses), "end some: what is paused is in stead describe node "+n.Name)
		return nil
	}
	return &p
}

// heedless says why the host of a node would not heed a pause; "" when it would.
func (j *judge) heedless(node string) (rule, cure string) {
	profile, heard := j.Profiles[node]
	switch {
	case !heard:
		return "its host was never heard of, and whether it knows of pauses neither", "start the host of " + node + " first"
	case !slices.Contains(profile.Capabilities, wire.PausesUnits):
		return hosts([]string{node}, profile.Version) + " does not know of pauses", "upgrade stead there; until then withdraw what is to be left alone"
	}
	return "", ""
}

// unpause ends the pause of the unit of p, and returns it; nil when there is none.
func (j *judge) unpause(n *assign.Node, p wire.Pause) *wire.Pause {
	old := n.Pause(p.Scope, p.Unit)
	if old == nil || old.Over(j.Now) {
		j.warn("%s of %s scope is not paused on %s", p.Unit, p.Scope, n.Name)
		return nil
	}
	ended := *old
	n.Pauses = n.WithoutPause(p.Scope, p.Unit, j.Now)
	return &ended
}

// pauseText is a length for people: "8d", "1h30m", "30s".
func pauseText(seconds int64) string {
	if seconds <= 0 {
		return strconv.FormatInt(seconds, 10) + "s"
	}
	text := ""
	for _, u := range []struct {
		name string
		of   int64
	}{{"d", 24 * 60 * 60}, {"h", 60 * 60}, {"m", 60}, {"s", 1}} {
		if n := seconds / u.of; n > 0 {
			text += strconv.FormatInt(n, 10) + u.name
			seconds -= n * u.of
		}
	}
	return text
}

// moveAccount ends what is paused of the account before, whose units are given back.
func (j *judge) moveAccount(n *assign.Node, to string) {
	if n.Account == to {
		return
	}
	var names []string
	n.Pauses = slices.DeleteFunc(slices.Clone(n.Pauses), func(p wire.Pause) bool {
		ends := p.Scope == unit.User
		if ends && !p.Over(j.Now) {
			names = append(names, string(p.Unit))
		}
		return ends
	})
	if len(names) > 0 {
		j.warn("the pause of %s ends: what account %q has is given back", assign.List(names), n.Account)
	}
}

// paused warns where a declaration ends while its unit is paused: the pause comes first.
func (j *judge) paused() {
	for _, c := range j.changes {
		for _, name := range c.lose {
			n := j.after.State().Nodes[name]
			if n == nil || n.Removed {
				continue // it is told nothing any more
			}
			for _, p := range n.Pausing(j.Now) {
				if p.Declaration == c.is.Name {
					j.warn("%s stays on %s as it is: %s is paused %s; it is given back when that ends, or at once with: stead resume %s -n %s", c.is.Name, name, p.Unit, p, p.Unit, name)
				}
			}
		}
	}
}
