package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"stead/host/plan"
	"stead/host/shape"
)

// declared is what a declaration says of files, made once for each.
type declared struct {
	wants  []plan.Want // the unit file, then drop-ins by path
	things []*thing    // what those say
}

// declaredOf returns the files that s asks for.
func (d *Disk) declaredOf(s *shape.Service) *declared {
	return d.declared.get(s, func() *declared {
		dec := &declared{wants: Declared(s, d.o.ConfigDir, d.o.UID, d.o.GID)}
		for _, w := range dec.wants {
			dec.things = append(dec.things, &thing{entry: w.Entry, text: d.reader.syntax(w.Content), null: len(w.Content) == 0})
		}
		return dec
	})
}

// Declared returns the files that s asks for below dir: the unit file, then
// drop-ins by path, each of them of uid and gid. The content of a masked unit is
// kept aside.
func Declared(s *shape.Service, dir string, uid, gid int) []plan.Want {
	var wants []plan.Want
	add := func(path, content, why string) {
		sum := sha256.Sum256([]byte(content))
		e := plan.Entry{Kind: plan.File, Digest: hex.EncodeToString(sum[:]), Mode: 0o644, UID: uid, GID: gid}
		wants = append(wants, plan.Want{Path: path, Entry: e, Content: []byte(content), Why: why})
	}
	if s.Content != nil && !s.IsMasked() {
		add(dir+"/"+string(s.Unit), *s.Content, "content")
	}
	for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
		add(dir+"/"+string(s.Unit)+".d/"+name, s.DropIns[name], "drop-in")
	}
	return wants
}
