package accept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

func TestWhatMayFollowWhatIsHeld(t *testing.T) {
	m := newMesh(t, "home")
	elsewhere := newMesh(t, "elsewhere")
	held := m.index(10, "web")
	holding, _ := m.take(Holding{}, held)
	own := m.index(10, "web")
	own.Account = "opal"
	owned, _ := m.take(Holding{}, own)
	rest := wire.Pause{Unit: "web.service", Scope: "system", Seconds: 60, By: "operator alice", Declaration: "web"}
	pausing := m.index(10, "web")
	pausing.Account, pausing.Pauses = "opal", []wire.Pause{rest}
	paused, _ := m.take(Holding{}, pausing)
	away, _ := elsewhere.take(Holding{}, elsewhere.index(500, "web"))
	with := func(change func(i *wire.Index)) wire.Index {
		i := m.index(10, "web")
		change(&i)
		return i
	}
	for name, c := range map[string]struct {
		holding Holding
		index   wire.Index
		refused string // "" when it is accepted
	}{
		"the first one":                      {Holding{}, m.index(1, "web"), ""},
		"the first one, empty":               {Holding{}, m.index(1), ""},
		"the first one of a later epoch":     {Holding{}, with(func(i *wire.Index) { i.Epoch, i.Follows = "e9", []string{"e8"} }), ""},
		"newer, the same":                    {holding, m.index(11, "web"), ""},
		"newer, other":                       {holding, m.index(11, "db", "web"), ""},
		"newer, empty":                       {holding, m.index(11), ""},
		"equal, the same":                    {holding, held, ""},
		"equal, other lineage":               {holding, with(func(i *wire.Index) { i.Follows = []string{"e0"} }), ""},
		"equal, more":                        {holding, m.index(10, "db", "web"), "its revision 10 is held with other declarations"},
		"equal, less":                        {holding, m.index(10), "its revision 10 is held with other declarations"},
		"equal, another generation":          {holding, with(func(i *wire.Index) { i.Entries[0] = entry("web", 2) }), "its revision 10 is held with"},
		"equal, another uid":                 {holding, with(func(i *wire.Index) { i.Entries[0].UID = "u" }), "its revision 10 is held with"},
		"equal, something to keep":           {holding, with(func(i *wire.Index) { i.Keep = []string{"db"} }), "its revision 10 is held with"},
		"older, the same":                    {holding, m.index(9, "web"), "its revision 9 is older than 10, which is held"},
		"older, other":                       {holding, m.index(9), "its revision 9 is older than 10, which is held"},
		"the epoch that follows":             {holding, with(func(i *wire.Index) { i.Epoch, i.Follows = "e2", []string{"e1"} }), ""},
		"the epoch that follows, older":      {holding, with(func(i *wire.Index) { i.Epoch, i.Follows, i.Revision = "e2", []string{"e1"}, 1 }), ""},
		"an epoch that follows by one":       {holding, with(func(i *wire.Index) { i.Epoch, i.Follows = "e3", []string{"e2", "e1"} }), ""},
		"another epoch":                      {holding, with(func(i *wire.Index) { i.Epoch = "x" }), "it is of epoch x, which does not follow epoch e1"},
		"another epoch, newer":               {holding, with(func(i *wire.Index) { i.Epoch, i.Revision = "x", 99 }), "which does not follow epoch e1"},
		"another epoch, of another one":      {holding, with(func(i *wire.Index) { i.Epoch, i.Follows = "x", []string{"w"} }), "which does not follow epoch e1"},
		"an epoch that says it follows ''":   {holding, with(func(i *wire.Index) { i.Epoch, i.Follows = "x", []string{""} }), "which does not follow epoch e1"},
		"credentials of this mesh anew":      {away, m.index(1, "web"), ""},
		"its own epoch, following itself":    {holding, with(func(i *wire.Index) { i.Revision, i.Follows = 9, []string{"e1"} }), "its revision 9 is older"},
		"another mesh":                       {holding, elsewhere.index(11, "web"), "it is not signed by mesh home"},
		"another mesh, signed by this one":   {holding, with(func(i *wire.Index) { i.Mesh, i.Revision = "elsewhere", 11 }), `it is of mesh "elsewhere", and this node belongs to mesh "home"`},
		"another node's":                     {holding, with(func(i *wire.Index) { i.Node, i.Revision = "ws2", 11 }), `it is of node "ws2", and this node is "ws1"`},
		"nobody's":                           {holding, with(func(i *wire.Index) { i.Node, i.Revision = "", 11 }), `it is of node ""`},
		"another node's, as the first":       {Holding{}, with(func(i *wire.Index) { i.Node = "ws2" }), `it is of node "ws2"`},
		"a later wire version":               {holding, with(func(i *wire.Index) { i.Wire, i.Revision = 2, 11 }), "it is of wire version 2, and this host reads version 1"},
		"no wire version":                    {holding, with(func(i *wire.Index) { i.Wire, i.Revision = 0, 11 }), "it is of wire version 0"},
		"no epoch":                           {Holding{}, with(func(i *wire.Index) { i.Epoch = "" }), "it has no epoch and revision"},
		"no revision":                        {Holding{}, with(func(i *wire.Index) { i.Revision = 0 }), "it has no epoch and revision"},
		"names out of order":                 {Holding{}, m.index(1, "web", "db"), `the declarations "web" and "db" are not in order`},
		"a name twice":                       {Holding{}, m.index(1, "web", "web"), `the declarations "web" and "web" are not in order`},
		"no name":                            {Holding{}, m.index(1, ""), `"" is no name`},
		"a path as a name":                   {Holding{}, m.index(1, "../web"), `"../web" is no name`},
		"a long name":                        {Holding{}, m.index(1, strings.Repeat("a", 256)), "is no name"},
		"a module's name":                    {Holding{}, m.index(1, "systemd.agent"), ""},
		"no uid":                             {Holding{}, with(func(i *wire.Index) { i.Entries[0].UID = "" }), `declaration "web" has no uid and generation`},
		"no generation":                      {Holding{}, with(func(i *wire.Index) { i.Entries[0].Generation = 0 }), `declaration "web" has no uid and generation`},
		"no digest":                          {Holding{}, with(func(i *wire.Index) { i.Entries[0].Digest = "" }), `declaration "web": "" is no digest`},
		"a digest in capitals":               {Holding{}, with(func(i *wire.Index) { i.Entries[0].Digest = strings.Repeat("AB", 32) }), "is no digest"},
		"a short digest":                     {Holding{}, with(func(i *wire.Index) { i.Entries[0].Digest = "abcd" }), "is no digest"},
		"no size":                            {Holding{}, with(func(i *wire.Index) { i.Entries[0].Size = 0 }), `declaration "web" with 0 bytes`},
		"a negative size":                    {Holding{}, with(func(i *wire.Index) { i.Entries[0].Size = -1 }), `declaration "web" with -1 bytes`},
		"too many bytes":                     {Holding{}, with(func(i *wire.Index) { i.Entries[0].Size = wire.MaxSet + 1 }), "a node takes at most 67108864 in all"},
		"too many bytes together":            {Holding{}, with(func(i *wire.Index) { i.Entries[0].Size = wire.MaxSet; i.Entries = append(i.Entries, entry("x", 1)) }), `declaration "x"`},
		"as many bytes as a node takes":      {Holding{}, with(func(i *wire.Index) { i.Entries[0].Size = wire.MaxSet }), ""},
		"as many declarations as a node has": {Holding{}, m.index(1, many(wire.MaxEntries)...), ""},
		"too many declarations":              {Holding{}, m.index(1, many(wire.MaxEntries+1)...), "it has 2001 declarations, and a node has at most 2000"},
		"equal, now with an account":         {holding, with(func(i *wire.Index) { i.Account, i.Linger = "opal", "off" }), ""},
		"equal, no longer with an account":   {owned, m.index(10, "web"), ""},
		"equal, another account":             {owned, with(func(i *wire.Index) { i.Account = "pearl" }), "its revision 10 is held with other declarations"},
		"equal, an account and more":         {holding, with(func(i *wire.Index) { i.Account, i.Entries = "opal", nil }), "its revision 10 is held with other declarations"},
		"equal, now with a pause":            {holding, with(func(i *wire.Index) { i.Pauses = []wire.Pause{rest} }), ""},
		"equal, no longer with a pause":      {paused, own, ""},
		"equal, with neither any longer":     {paused, m.index(10, "web"), ""},
		"equal, another pause":               {paused, with(func(i *wire.Index) { i.Account, i.Pauses = "opal", []wire.Pause{{Unit: "db.service"}} }), "its revision 10 is held with other declarations"},
		"equal, a pause and another account": {owned, with(func(i *wire.Index) { i.Account, i.Pauses = "pearl", []wire.Pause{rest} }), "its revision 10 is held with other declarations"},
		"newer, with a pause":                {holding, with(func(i *wire.Index) { i.Revision, i.Pauses = 11, []wire.Pause{rest} }), ""},
		"too many pauses":                    {Holding{}, with(func(i *wire.Index) { i.Pauses = make([]wire.Pause, 4097) }), "it has 4097 pauses, and a host takes at most 4096"},
		"a path as an account":               {Holding{}, with(func(i *wire.Index) { i.Account = "../opal" }), `"../opal" is no name of an account`},
		"another value of linger":            {Holding{}, with(func(i *wire.Index) { i.Linger = "maybe" }), `"maybe" is no value of linger`},
		"what is kept may have any name":     {Holding{}, with(func(i *wire.Index) { i.Keep = []string{"../x", "", "Ü"} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			signed := m.sign(c.index)
			if c.index.Mesh == "elsewhere" && strings.Contains(c.refused, "signed") {
				signed = elsewhere.sign(c.index)
			}
			_, err := Decide(m.self, c.holding, signed)
			if c.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.refused)
			require.True(t, strings.HasPrefix(err.Error(), "accept index: "), err)
		})
	}
}

func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("d%05d", i)
	}
	return all
}

func TestEveryRefusalHasItsClassAndACure(t *testing.T) {
	m := newMesh(t, "home")
	holding, _ := m.take(Holding{}, m.index(10, "web"))
	for name, c := range map[string]struct {
		change func(i *wire.Index)
		class  fault.Class
		hint   string
	}{
		"older":         {func(i *wire.Index) { i.Revision = 9 }, fault.Refused, "stead controller run --begin-epoch"},
		"equal":         {func(i *wire.Index) { i.Revision, i.Entries = 10, nil }, fault.Refused, "stead controller run --begin-epoch"},
		"another epoch": {func(i *wire.Index) { i.Epoch = "x" }, fault.Refused, "stead controller run --begin-epoch"},
		"another wire":  {func(i *wire.Index) { i.Wire = 9 }, fault.Unsupported, "one version of stead"},
		"malformed":     {func(i *wire.Index) { i.Entries[0].UID = "" }, fault.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := m.index(11, "web")
			c.change(&i)
			_, err := Decide(m.self, holding, m.sign(i))
			require.Equal(t, c.class, fault.ClassOf(err))
			require.Contains(t, fault.HintOf(err), c.hint)
		})
	}
	_, err := Decide(m.self, holding, newMesh(t, "home").sign(m.index(11, "web")))
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	require.Contains(t, fault.HintOf(err), "stead credentials node ws1")
}

func TestNothingUnsignedIsRead(t *testing.T) {
	m := newMesh(t, "home")
	good := m.sign(m.index(1, "web"))
	value := seal.Value(m.key, seal.Place{Mesh: "home"}, good.Index)
	for name, s := range map[string]wire.Signed{
		"no signature":      {Index: good.Index},
		"a short signature": {Index: good.Index, Signature: good.Signature[:63]},
		"nothing":           {},
		"a sealed value":    {Index: value, Signature: good.Signature},
		"another's key":     newMesh(t, "home").sign(m.index(1, "web")),
		"more bytes":        {Index: append(bytes.Clone(good.Index), ' '), Signature: good.Signature},
	} {
		_, err := Decide(m.self, Holding{}, s)
		require.ErrorContains(t, err, "not signed by mesh home", name)
	}
	for at := range good.Index {
		forged := wire.Signed{Index: bytes.Clone(good.Index), Signature: good.Signature}
		forged.Index[at] ^= 1
		_, err := Decide(m.self, Holding{}, forged)
		require.ErrorContains(t, err, "not signed", "byte %d", at)
	}
	for _, text := range []string{"", "null", "{", "[]", "{}", `{"wire":1} {}`, `{"wire":"1"}`} {
		_, err := Decide(m.self, Holding{}, m.signBytes([]byte(text)))
		require.Error(t, err, "signed, and no index: %s", text)
	}
	_, err := Decide(Trust{Mesh: "home", Node: "ws1"}, Holding{}, good)
	require.Error(t, err, "who has no key believes nobody")
}

// Where a declaration comes from, what an index says of it, what the index is to
// the one that is held: what becomes of it.
func TestWhatBecomesOfEachDeclaration(t *testing.T) {
	const (
		named     = "named"
		kept      = "kept"
		own       = "own" // in force, of the epoch that is held
		withdrawn = "withdrawn"
	)
	m, elsewhere := newMesh(t, "home"), newMesh(t, "elsewhere")
	origins := map[string]Identity{
		"this epoch":         identity("a", "e1"),
		"a folder":           identity("a", ""),
		"an epoch before":    identity("a", "e0"),
		"this epoch, before": {UID: "uid-a", Name: "a", Generation: 1, Digest: entry("a", 1).Digest, Body: body("a", 1), Epoch: "e1", Kept: true},
	}
	ends := func(uid string, since uint64) func(i *wire.Index) {
		return func(i *wire.Index) { i.Withdrawn, i.WithdrawnUIDs, i.Since = []string{"a"}, []string{uid}, since }
	}
	says := map[string]func(i *wire.Index){
		"names it":                      func(i *wire.Index) { i.Entries = []wire.Entry{entry("a", 1)} },
		"names it with another uid":     func(i *wire.Index) { e := entry("a", 2); e.UID = "other"; i.Entries = []wire.Entry{e} },
		"cannot read it":                func(i *wire.Index) { i.Keep = []string{"a"} },
		"lacks it":                      func(*wire.Index) {},
		"withdraws it":                  ends("uid-a", 10),
		"withdraws another of the name": ends("uid-other", 10),
		"withdraws all of the name":     ends(wire.AnyUID, 10),
		"withdrew all of it long ago":   ends(wire.AnyUID, 9),
		"withdraws without a uid":       func(i *wire.Index) { i.Withdrawn, i.Since = []string{"a"}, 10 },
		"withdraws and cannot read it": func(i *wire.Index) {
			ends("uid-a", 10)(i)
			i.Keep = []string{"a"}
		},
		"names and withdraws it": func(i *wire.Index) {
			ends("uid-a", 10)(i)
			i.Entries = []wire.Entry{entry("a", 1)}
		},
	}
	comesOver := map[string]string{
		"names it": named, "names it with another uid": named, "cannot read it": kept, "lacks it": kept, "withdraws it": kept,
		"withdraws another of the name": kept, "withdraws all of the name": kept, "withdrew all of it long ago": kept,
		"withdraws without a uid": kept, "withdraws and cannot read it": kept, "names and withdraws it": named,
	}
	goesOn := map[string]string{
		"names it": named, "names it with another uid": named, "cannot read it": kept, "lacks it": kept, "withdraws it": withdrawn,
		"withdraws another of the name": kept, "withdraws all of the name": withdrawn, "withdrew all of it long ago": kept,
		"withdraws without a uid": kept, "withdraws and cannot read it": kept, "names and withdraws it": named,
	}
	goesOnOwn := map[string]string{
		"names it": named, "names it with another uid": named, "cannot read it": own, "lacks it": withdrawn, "withdraws it": withdrawn,
		"withdraws another of the name": withdrawn, "withdraws all of the name": withdrawn, "withdrew all of it long ago": withdrawn,
		"withdraws without a uid": withdrawn, "withdraws and cannot read it": own, "names and withdraws it": named,
	}
	for origin, id := range origins {
		for what, say := range says {
			for lineage, c := range map[string]struct {
				holder mesh
				change func(i *wire.Index)
				want   map[string]string
			}{
				"the next of the epoch": {m, func(*wire.Index) {}, goesOn},
				"the next epoch":        {m, func(i *wire.Index) { i.Epoch, i.Follows = "e2", []string{"e1"} }, comesOver},
				"credentials anew":      {elsewhere, func(*wire.Index) {}, comesOver},
				"the first one":         {mesh{}, func(*wire.Index) {}, comesOver},
			} {
				t.Run(fmt.Sprintf("%s, an index %s: %s", lineage, what, origin), func(t *testing.T) {
					var h Holding
					if c.holder.t != nil {
						held := c.holder.index(10)
						h = Holding{Index: &held, Signed: c.holder.sign(held)}
					}
					h.Declarations = map[string]Identity{"a": id}
					i := m.index(11)
					say(&i)
					c.change(&i)
					want := c.want[what]
					if lineage == "the next of the epoch" && origin == "this epoch" {
						want = goesOnOwn[what]
					}
					next, change := m.take(h, i)
					got := own
					switch now, there := next.Declarations["a"]; {
					case !there:
						got = withdrawn
						require.Equal(t, []string{"a"}, change.Delete)
					case len(i.Entries) > 0 && now.UID == i.Entries[0].UID && now.Digest == i.Entries[0].Digest && now.Of(i.Epoch):
						got = named
					case slices.Contains(next.Kept(m.self), "a"):
						got = kept
					}
					require.Equal(t, want, got)
					if got != withdrawn {
						require.NotEmpty(t, next.Declarations["a"].Body)
					}
				})
			}
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"wire":1,"mesh":"home","epoch":"e1","revision":3,"node":"ws1","entries":[]}`))
	f.Add([]byte(`{"wire":1,"mesh":"home","epoch":"e1","revision":3,"node":"ws1","entries":[{"name":"a","uid":"u","generation":1,` +
		`"digest":"0000000000000000000000000000000000000000000000000000000000000000","size":3}],"keep":["b"],"withdrawn":["c"],"since":9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := newMesh(t, "home")
		held := m.index(2, "a", "b")
		h := Holding{Index: &held, Signed: m.sign(held), Declarations: map[string]Identity{
			"a": identity("a", "e1"), "b": identity("b", "e1"), "c": identity("c", "")}}
		d, err := Decide(m.self, h, m.signBytes(text))
		if err != nil {
			require.Contains(t, []fault.Class{fault.Refused, fault.Invalid, fault.Unsupported}, fault.ClassOf(err))
			return
		}
		require.GreaterOrEqual(t, d.Index.Revision, uint64(1))
		for _, e := range d.Index.Entries {
			require.NotContains(t, d.Withdrawn, e.Name)
		}
		for _, name := range d.Index.Keep {
			require.NotContains(t, d.Withdrawn, name)
		}
		var again wire.Index
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, again, d.Index)
	})
}
