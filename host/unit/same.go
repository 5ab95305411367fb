package unit

import "slices"

// Equal reports whether two looks at a unit were answered the same.
func (s Status) Equal(o Status) bool {
	return s.Asked == o.Asked && s.ID == o.ID && s.Load == o.Load && s.Active == o.Active && s.Sub == o.Sub && s.Job == o.Job &&
		s.Fragment == o.Fragment && slices.Equal(s.DropIns, o.DropIns) && s.CanReload == o.CanReload && s.NeedReload == o.NeedReload &&
		s.Invocation == o.Invocation && s.Started == o.Started && s.Changed == o.Changed && s.Restarts == o.Restarts &&
		s.MainPID == o.MainPID && s.Trouble.equal(o.Trouble)
}

func (t Trouble) equal(o Trouble) bool {
	return t.LoadError == o.LoadError && t.Result == o.Result && t.ExitCode == o.ExitCode && t.ExitStatus == o.ExitStatus &&
		slices.Equal(t.Unmet, o.Unmet) && slices.Equal(t.Triggers, o.Triggers)
}
