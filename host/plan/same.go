package plan

import (
	"bytes"
	"maps"
	"slices"
)

// Equal reports whether two looks at the disk found and asked for the same. It
// is what most looks at most units come to, so it compares field by field; what
// could not be looked at is never the same.
func (k Disk) Equal(o Disk) bool {
	return k.Loaded == o.Loaded && k.Fragment == o.Fragment && k.Mask == o.Mask && k.Place == o.Place &&
		len(k.Errs) == 0 && len(o.Errs) == 0 &&
		slices.EqualFunc(k.Wants, o.Wants, Want.equal) && maps.Equal(k.At, o.At) && maps.Equal(k.Shadowed, o.Shadowed) &&
		slices.Equal(k.OwnLinks, o.OwnLinks) && slices.Equal(k.Vendor, o.Vendor) && slices.Equal(k.DropIns, o.DropIns) && slices.Equal(k.Masks, o.Masks) &&
		maps.Equal(k.Triggers, o.Triggers) && k.Real == o.Real && k.Denied == o.Denied &&
		k.Text.equal(o.Text)
}

func (w Want) equal(o Want) bool {
	return w.Path == o.Path && w.Entry == o.Entry && w.Why == o.Why && bytes.Equal(w.Content, o.Content)
}

func (t Text) equal(o Text) bool {
	return t.Kind == o.Kind && t.Type == o.Type && t.PIDFile == o.PIDFile && t.Reloads == o.Reloads && t.RemainAfter == o.RemainAfter &&
		t.HasInstall == o.HasInstall && t.RefuseStart == o.RefuseStart && t.RefuseStop == o.RefuseStop &&
		t.InstallFailed == o.InstallFailed && t.Deadly == o.Deadly && t.Serves == o.Serves && t.Accepts == o.Accepts &&
		slices.Equal(t.Conditions, o.Conditions) && slices.Equal(t.Asserts, o.Asserts) && slices.Equal(t.Conflicts, o.Conflicts) && slices.Equal(t.InstallErrors, o.InstallErrors)
}
