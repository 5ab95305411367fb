package admit

import (
	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

// Apply judges a request to declare. The error is a *fault.Error: failed when the
// state is not sound, unsupported for messages of another version.
func Apply(b Basis, r wire.ApplyRequest) (Decision, error) {
	j, err := newJudge(b, "apply", "", r.Wire)
	if err != nil {
		return Decision{}, err
	}
	j.force, j.yes, j.dry = r.Force, r.Yes, r.DryRun
	return j.apply(j.read(r.Files), j.seen(r.Seen, r.Epoch)), nil
}

// seen are the marks of a caller that count: those of another epoch do not, since
// generations may have gone back with it.
func (j *judge) seen(marks map[string]wire.Mark, epoch string) map[string]wire.Mark {
	if epoch != "" && epoch != j.State.Epoch {
		return nil
	}
	return marks
}

// apply judges what was read.
func (j *judge) apply(docs []*shape.Located, seen map[string]wire.Mark) Decision {
	for _, doc := range docs {
		c := j.declare(doc)
		j.address(c)
		j.conflict(c, seen[doc.Name])
		j.changes = append(j.changes, c)
	}
	j.total()
	j.consequences(nil)
	for _, c := range j.changes {
		j.nowhere(c)
	}
	return j.decide(nil, j.sure())
}

// consequences places the changes, and judges what each node would have.
func (j *judge) consequences(node *assign.Node) {
	j.place(node)
	for _, c := range j.changes {
		j.reach(c)
	}
	j.full()
	j.owners()
	j.cites()
	j.paused()
	j.vocabulary()
	j.accounts(nil)
}
