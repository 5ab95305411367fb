package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// declared is what a declaration says of files, made once for each.
type declared struct {
	wants  []plan.Want // the unit file, then drop-ins by path
	things []*thing    // what those say
}

// declaredOf returns the files that s asks for.
func (d *Disk) declaredOf(s *shape.Service) *declared {
	return d.declared.get(s, func() *declared {
		dec := &declared{}
		if s.Content != nil {
			dec.add(d.o.ConfigDir+"/"+string(s.Unit), *s.Content, "content")
		}
		for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
			dec.add(d.o.ConfigDir+"/"+string(s.Unit)+".d/"+name, s.DropIns[name], "drop-in")
		}
		return dec
	})
}

func (dec *declared) add(path, content string, why string) {
	sum := sha256.Sum256([]byte(content))
	e := plan.Entry{Kind: plan.File, Digest: hex.EncodeToString(sum[:]), Mode: 0o644}
	dec.wants = append(dec.wants, plan.Want{Path: path, Entry: e, Content: []byte(content), Why: why})
	dec.things = append(dec.things, &thing{entry: e, text: unit.ParseFile([]byte(content)), null: content == ""})
}
