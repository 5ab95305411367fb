package shape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse: any bytes are read without panic; every problem says what and
// where; whatever is accepted comes back from its canonical form.
func FuzzParse(f *testing.F) {
	for _, s := range []string{full, every, third, conf, homely, head, head + "ensure: running\nnodes: [a]\n---\n" + full, "a: [", "\t", "%YAML 1.1\n---\na", "a: &a [*a]", "<<: {}", "? [a]\n: b", "\uFEFFa", "a\r\n",
		head + "content: |\n   a\n  b\n", head + "timeout: 1h 30min\nlabels: {a: b}\n", "...\n---\n...", head + "dropins: {a.conf: \"\\u2028\\\\\"}", head + "unit: x@.service\nenabled: true\n",
		"- a\n- b: c", "|\n a", head + "content: \"[Install]\\nAlias=%p.service %%n\"\n", "shape: service\n\"name\": web\n'unit': -.slice\nensure: ~", "!!map {a: !!str b}", "#", "{a,a,a}", "- #x\n",
		head + "scope: user\nstate: running\nensure: ~\n", head + "masked: true\nensure: restarted\n", head + "triggers: [/a, \"/b\\x01\", file:c, /d/../e]\non_change: reload\n"} {
		f.Add([]byte(s))
	}
	for _, b := range bombs() {
		f.Add([]byte(b[:4096%len(b)]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		services, problems := Parse("f", data)
		for _, p := range problems {
			if p.File != "f" || p.Line < 1 && len(problems) <= MaxProblems || p.Rule == "" || p.Cure == "" {
				t.Fatalf("a problem that does not help: %#v", p)
			}
		}
		Check(services, int64(len(data)))
		for _, s := range services {
			got, err := FromCanonical(s.Canonical())
			if err != nil {
				t.Fatal(err)
			}
			want := *s
			want.Nodes, want.Labels, want.All, want.Origin = nil, nil, false, Origin{}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Fatal(diff)
			}
			if got.Digest() != s.Digest() || s.Origin.Line < 1 {
				t.Fatal("digest or origin")
			}
		}
	})
}

// FuzzFromCanonical: any bytes are read without panic, and only the canonical
// form itself is taken.
func FuzzFromCanonical(f *testing.F) {
	services, _ := Parse("f", []byte(full))
	f.Add(services[0].Canonical())
	services, _ = Parse("f", []byte(every))
	f.Add(services[0].Canonical())
	for _, doc := range []string{third, conf, homely} {
		services, _ = Parse("f", []byte(doc))
		f.Add(services[0].Canonical())
	}
	f.Add([]byte(`{"name":"a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := FromCanonical(data); err == nil && string(s.Canonical()) != string(data) {
			t.Fatal("not canonical")
		}
	})
}
