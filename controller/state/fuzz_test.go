package state

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"testing"

	"stead/host/report"
	"stead/mesh/bucket"
	"stead/mesh/seal"
)

// Whatever is sealed is read or named as unreadable, and what is read says what
// stands there.
func FuzzBodyIsReadOrNamed(f *testing.F) {
	for _, body := range []string{
		"", "{}", "{}\n{}", `{"name":"web","uid":"u","generation":1,"withdrawn":true}`, `{"lost":"x"}`, `{"name":"ws1","labels":{"role":"web"}}`,
		`{"id":"e","number":1}`, `{"name":"x","edition":1,"seat":{"name":"x"}}`, `{"name":"x","module":{"name":"y"}}`, `{"name":"x","gone":true}`, "null\nnull", `{"name":"web","digest":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}` + "\n",
	} {
		for _, key := range []string{"declaration.web", "declaration.a/b", "node.ws1", epochKey, "module.x", "seat.x", "other.x", "", "."} {
			f.Add(key, []byte(body), false)
			f.Add(key, []byte(body), true)
		}
	}
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Fuzz(func(t *testing.T, key string, body []byte, deleted bool) {
		place := seal.Place{Mesh: "m", Key: key, Revision: 7, Deleted: deleted}
		e := bucket.Entry[[]byte]{Key: key, Revision: 7, Deleted: deleted, Value: seal.Value(private, place, body)}
		i := read("m", private.Public().(ed25519.PublicKey), e)
		known := 0
		for _, is := range []bool{i.declaration != nil, i.node != nil, i.seat != nil, i.module != nil, i.epoch != nil, i.lost, i.unread != ""} {
			if is {
				known++
			}
		}
		kind, name := nameOf(key)
		switch ours := key == epochKey || kind == declaration || kind == node || kind == seat || kind == module; {
		case i.closed != "": // a key that JSON cannot hold is not the one that was sealed
			if known > 0 {
				t.Fatal("read and closed")
			}
		case known > 1, known == 0 && ours:
			t.Fatalf("%q %q: read as %d things", key, body, known)
		case i.declaration != nil && (kind != declaration || i.declaration.Name != name):
			t.Fatalf("%q holds declaration %q", key, i.declaration.Name)
		case i.declaration != nil && !i.declaration.Withdrawn && digestOf(i.declaration.Canonical) != i.declaration.Digest:
			t.Fatal("another digest")
		}
	})
}

// Whatever stands in the bucket of reports costs bounded memory and no defect.
func FuzzSheetIsReadOrRefused(f *testing.F) {
	body, err := json.Marshal(report.Report{Name: "a"})
	if err != nil {
		f.Fatal(err)
	}
	s, err := pack(head{Run: "r", Seq: 1}, []row{{Line: Line{Name: "a"}, body: body}, {Line: Line{Name: "b"}, old: true}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.raw)
	f.Add(s.raw[:len(s.raw)/2])
	f.Add([]byte("junk"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		sheet := &sheet{raw: raw}
		h, err := sheet.top()
		rows, rowsErr := sheet.rows()
		if err != nil && rowsErr == nil {
			t.Fatal("rows without a head")
		}
		if rowsErr != nil {
			return
		}
		again, err := pack(*h, rows)
		if err != nil {
			return // such as a time that JSON has no words for
		}
		same, err := again.rows()
		if err != nil || len(same) != len(rows) {
			t.Fatalf("%d rows become %d: %v", len(rows), len(same), err)
		}
		for i := range same {
			if !bytes.Equal(same[i].body, rows[i].body) || same[i].old != rows[i].old {
				t.Fatalf("row %d is another one", i)
			}
		}
	})
}
