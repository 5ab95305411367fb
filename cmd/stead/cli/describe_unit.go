package cli

import (
	"fmt"
	"strings"

	"stead/mesh/subject"
	"stead/seats"
)

// unitStatus is all that is known of a unit.
func (w screen) unitStatus(node subject.Node, u seats.UnitStatus) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-9s %s\n", label, text)
		}
	}
	head := "● " + u.ID
	if u.Description != "" && u.Description != u.ID {
		head += "   " + u.Description
	}
	fmt.Fprintf(w, "%s\n  %s, %s scope\n", head, node, u.Scope)
	line("state", w.stateLine(u))
	line("load", loadLine(u))
	line("declared", declaredLine(u.DeclaredBy))
	line("paused", w.pausedLine(u.DeclaredBy))
	line("enabled", enabledLine(u))
	line("result", resultLine(u))
	line("job", u.Job)
	line("process", processLine(u))
	line("unmet", strings.Join(u.Unmet, ", "))
	line("started", prefixed("by ", strings.Join(u.TriggeredBy, ", ")))
	line("starts", strings.Join(u.Triggers, ", "))
	if files := known(append([]string{u.Fragment}, u.DropIns...)...); files[0] != dash("") {
		for i, f := range files {
			fmt.Fprintf(w, "  %-9s %s\n", []string{"files", ""}[min(i, 1)], f)
		}
	}
	if u.NeedReload {
		line("reload", "files changed since systemd read them")
	}
	line("documents", strings.Join(u.Documents, " "))
	list(w, "last lines", u.Lines)
	line("no lines", u.LinesError)
}

func (w screen) stateLine(u seats.UnitStatus) string {
	text := stateOf(u.Active, u.Sub)
	if u.Since != nil {
		text += " since " + w.when(*u.Since) + ", " + w.ago(*u.Since)
	}
	return text
}

// loadLine says why a unit is not loaded.
func loadLine(u seats.UnitStatus) string {
	if u.Load == "loaded" && u.LoadError == "" {
		return ""
	}
	return strings.Join(known(u.Load, u.LoadError), ": ")
}

func declaredLine(d *seats.DeclaredBy) string {
	if d == nil {
		return "not by the mesh"
	}
	wants := []string{d.Ensure}
	if d.Enabled != nil {
		wants = append(wants, map[bool]string{true: "enabled", false: "disabled"}[*d.Enabled])
	}
	text := fmt.Sprintf("%s, generation %d", d.Name, d.Generation)
	if all := known(wants...); all[0] != dash("") {
		text += ": " + strings.Join(all, ", ")
	}
	return text
}

// pausedLine says until when a unit is left as it is, by whom and why.
func (w screen) pausedLine(d *seats.DeclaredBy) string {
	if d == nil || d.Paused == nil {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("until %s by %s: %s", w.when(d.Paused.Until), d.Paused.By, d.Paused.Reason), ": ")
}

// declarer is the name of a declaration, with what is to be known with it.
func declarer(d *seats.DeclaredBy) string {
	switch {
	case d == nil:
		return ""
	case d.Paused != nil:
		return d.Name + " (paused)"
	}
	return d.Name
}

func enabledLine(u seats.UnitStatus) string {
	if u.Enablement == "" {
		return ""
	}
	if u.Preset == "" {
		return u.Enablement
	}
	return fmt.Sprintf("%s (preset: %s)", u.Enablement, u.Preset)
}

// resultLine says how the unit ended last, when that was no good end.
func resultLine(u seats.UnitStatus) string {
	if u.Result == "" || u.Result == "success" {
		return ""
	}
	if u.ExitStatus == nil {
		return u.Result
	}
	return fmt.Sprintf("%s (%s, status %d)", u.Result, u.ExitCode, *u.ExitStatus)
}

func processLine(u seats.UnitStatus) string {
	var parts []string
	if u.MainPID != nil && *u.MainPID != 0 {
		parts = append(parts, fmt.Sprint(*u.MainPID))
	}
	if u.Tasks != nil && *u.Tasks > 0 {
		parts = append(parts, count(int(min(*u.Tasks, 1<<31)), "task"))
	}
	if text := memory(u.Memory); text != "" {
		parts = append(parts, text)
	}
	if text := cpu(u.CPU); text != "" {
		parts = append(parts, text+" CPU")
	}
	if u.Restarts != nil && *u.Restarts > 0 {
		parts = append(parts, count(int(*u.Restarts), "restart"))
	}
	return strings.Join(parts, ", ")
}
