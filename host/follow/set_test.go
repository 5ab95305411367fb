package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// of is a declaration of name with a canonical form.
func of(name string, generation uint64, body string) accept.Identity {
	return accept.Identity{UID: "u-" + name, Name: name, Generation: generation, Digest: digest([]byte(body)), Body: []byte(body)}
}

// on is a declaration of a unit under another name.
func on(name, unitName string) accept.Identity {
	services, problems := shape.Parse("t", []byte("shape: service\nname: "+name+"\nunit: "+unitName+"\nensure: running\n"))
	if len(problems) > 0 {
		panic(problems)
	}
	return of(name, 1, string(services[0].Canonical()))
}

func ids(all ...accept.Identity) map[string]accept.Identity {
	m := make(map[string]accept.Identity)
	for _, id := range all {
		m[id.Name] = id
	}
	return m
}

func TestASetIsOfAnAccountAndOfScopes(t *testing.T) {
	const shared = `"name":"%","on_withdraw":"restore","scope":"user","shape":"service","timeout":"2m0s","unit":"web.service"`
	user := of("a", 1, `{"ensure":"running",`+strings.ReplaceAll(shared, "%", "a")+`}`)
	later := of("b", 1, `{"later":1,`+strings.ReplaceAll(shared, "%", "b")+`}`)
	f := &Follower{holding: accept.Holding{Index: &wire.Index{Account: "opal", Linger: "off", Pauses: []wire.Pause{{Unit: "a.service", Scope: "user"}, {Unit: "web.service", Scope: "system"}}}, Declarations: ids(user, later, on("web", "web"), of("c", 1, "{}"))}}
	set := f.read()
	require.Equal(t, []string{"opal", "off"}, []string{set.Account, set.Linger})
	names := func(s Set) (all []string) {
		for _, d := range s.Declared {
			all = append(all, d.Service.Name)
		}
		for _, l := range s.Left {
			all = append(all, l.Name)
		}
		return all
	}
	require.Equal(t, []string{"web", "c"}, names(set.Of(unit.System)))
	require.Equal(t, []string{"a", "b"}, names(set.Of(unit.User)))
	require.Equal(t, "opal", set.Of(unit.User).Account)
	require.Equal(t, f.holding.Index.Pauses, set.Pauses)
	require.Equal(t, f.holding.Index.Pauses[:1], set.Of(unit.User).Pauses)
}

func TestWhatThisVersionCannotReadIsLeftAndNamed(t *testing.T) {
	known := `"enabled":true,"name":"a","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"a.service"`
	for name, c := range map[string]struct{ body, why string }{
		"a field":       {`{"secret":false,` + known + `}`, `this version of stead does not know field "secret" of shape service`},
		"two fields":    {`{"secret":false,"backend":"x",` + known + `}`, `this version of stead does not know fields "backend", "secret" of shape service`},
		"many fields":   {`{"z1":1,"z2":1,"z3":1,"z4":1,"z5":1,"z6":1,` + known + `}`, `fields "z1", "z2", "z3", "z4", "z5" and 1 more of shape service`},
		"a shape":       {`{"name":"a","path":"/x","shape":"socket"}`, `this version of stead does not know shape "socket"`},
		"no shape":      {`{"name":"a"}`, `this version of stead does not know shape ""`},
		"a value":       {`{"ensure":"resting",` + known + `}`, "ensure"},
		"no JSON":       {`shape: service`, "it is no canonical form"},
		"another name":  {strings.Replace(`{`+known+`}`, `"name":"a"`, `"name":"b"`, 1), `it is declared as "a", and calls itself "b"`},
		"another order": {`{"shape":"service","enabled":true,"name":"a","on_withdraw":"restore","scope":"system","timeout":"2m0s","unit":"a.service"}`, "not in canonical form"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Follower{holding: accept.Holding{Declarations: ids(of("a", 3, c.body), on("web", "web"))}}
			set := f.read()
			require.Len(t, set.Declared, 1)
			require.Len(t, set.Left, 1)
			left := set.Left[0]
			require.Contains(t, left.Why, c.why)
			require.Equal(t, Left{Name: "a", Scope: unit.System, UID: "u-a", Generation: 3, Why: left.Why}, left)
		})
	}
	f := &Follower{holding: accept.Holding{Declarations: ids(of("a", 1, `{`+known+`}`))}}
	require.Len(t, f.read().Declared, 1, "and what is known can be read")
}

func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	first := &Follower{holding: accept.Holding{Declarations: ids(on("a", "a"), on("b", "b"))}}
	before := first.read()
	first.holding.Declarations = ids(on("a", "a"), on("b", "c"))
	after := first.read()
	require.Same(t, before.Declared[0].Service, after.Declared[0].Service)
	require.NotSame(t, before.Declared[1].Service, after.Declared[1].Service)
	require.Equal(t, "c.service", string(after.Declared[1].Service.Unit))
}

func TestOneThatCannotBeReadHoldsNothingUp(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.applyBody("new", `{"name":"new","shape":"holiday"}`)
		r.c.apply(2, "web")
		after(time.Minute)
		require.Equal(t, []string{"db.1", "new.1!", "web.2"}, r.now())
		require.Empty(t, r.f.Source().Trouble)
		r.end()
		r.start()
		after(0)
		require.Equal(t, []string{"db.1", "new.1!", "web.2"}, r.now(), "also after it was started anew")
		r.c.withdraw("new")
		after(time.Minute)
		require.Equal(t, []string{"db.1", "web.2"}, r.now())
	})
}
