package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"stead/host/shape"
	"stead/host/unit"
)

// Pullers are the units whose links in .wants folders and their kind shall pull the
// unit in.
func (k Disk) Pullers() []unit.Name {
	var all []unit.Name
	for _, w := range k.Wants {
		if w.Entry.Kind != Link {
			continue
		}
		dir := filepath.Base(filepath.Dir(w.Path))
		if n, is := strings.CutSuffix(dir, filepath.Ext(dir)); is && slices.Contains([]string{".wants", ".requires", ".upholds"}, filepath.Ext(dir)) {
			all = append(all, unit.Name(n))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pulled warns of units that shall pull this one in and cannot: being enabled for
// them starts nothing. One that stops the machine is not expected to be active.
func (d *Decision) pulled(in Input) {
	for _, n := range in.Disk.Pullers() {
		by, known := in.Pullers[n]
		_, ends := shape.Protected(in.Service.Scope, n)
		switch {
		case !known || n.IsTemplate():
		case by.Load == unit.NotFound:
			d.warn("it is enabled for %s, which the %s manager does not know: nothing starts it", n, in.Service.Scope)
		case by.Load == unit.Masked:
			d.warn("it is enabled for %s, which is masked: nothing starts it", n)
		case by.Active.Down() && by.Job.ID == 0 && !ends && n.Type() == "target":
			d.warn("it is enabled for %s, which is not active: it is started when that is", n)
		}
	}
}
