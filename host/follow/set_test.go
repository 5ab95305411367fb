package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
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

func TestWhatThisVersionCannotReadIsLeftAndNamed(t *testing.T) {
	known := `"enabled":true,"name":"a","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"a.service"`
	for name, c := range map[string]struct{ body, why string }{
		"a field":       {`{"masked":false,` + known + `}`, `this version of stead does not know field "masked" of shape service`},
		"two fields":    {`{"masked":false,"provider":"x",` + known + `}`, `this version of stead does not know fields "masked", "provider" of shape service`},
		"many fields":   {`{"z1":1,"z2":1,"z3":1,"z4":1,"z5":1,"z6":1,` + known + `}`, `fields "z1", "z2", "z3", "z4", "z5" and 1 more of shape service`},
		"a shape":       {`{"name":"a","path":"/x","shape":"file"}`, `this version of stead does not know shape "file"`},
		"no shape":      {`{"name":"a"}`, `this version of stead does not know shape ""`},
		"a value":       {`{"ensure":"resting",` + known + `}`, "ensure"},
		"no JSON":       {`shape: service`, "it is no canonical form"},
		"another name":  {strings.Replace(`{`+known+`}`, `"name":"a"`, `"name":"b"`, 1), `it is declared as "a", and calls itself "b"`},
		"another order": {`{"shape":"service","enabled":true,"name":"a","on_withdraw":"restore","scope":"system","timeout":"2m0s","unit":"a.service"}`, "not in canonical form"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(nil)
			set := r.set(ids(of("a", 3, c.body), on("web", "web")))
			require.Len(t, set.Declared, 1)
			require.Len(t, set.Left, 1)
			left := set.Left[0]
			require.Contains(t, left.Why, c.why)
			require.Equal(t, Left{Name: "a", UID: "u-a", Generation: 3, Reason: report.Unsupported, Why: left.Why, Hint: "upgrade stead on this node"}, left)
		})
	}
	r := newReader(nil)
	require.Len(t, r.set(ids(of("a", 1, `{`+known+`}`))).Declared, 1)
}

func TestAUnitHasOneDeclaration(t *testing.T) {
	web := Unit{unit.System, "web.service"}
	t.Run("the first by name when none has it", func(t *testing.T) {
		r := newReader(nil)
		set := r.set(ids(on("b", "web"), on("a", "web"), on("c", "other")))
		require.Equal(t, []string{"a", "c"}, declaredIn(set))
		require.Equal(t, Left{Name: "b", UID: "u-b", Generation: 1, Unit: web, Reason: report.OwnedBy,
			Why: "conflict with a, which has web.service on this node", Hint: "withdraw one of a and b, or address them to different nodes"}, set.Left[0])
	})
	t.Run("who has it keeps it", func(t *testing.T) {
		r := newReader(map[Unit]string{web: "b"})
		require.Equal(t, []string{"b"}, declaredIn(r.set(ids(on("a", "web"), on("b", "web")))))
		require.Equal(t, []string{"b"}, declaredIn(r.set(ids(on("a", "web"), on("b", "web")))), "again")
		require.Equal(t, []string{"a"}, declaredIn(r.set(ids(on("a", "web")))), "until it goes")
		require.Equal(t, []string{"a"}, declaredIn(r.set(ids(on("a", "web"), on("b", "web")))), "and then the other one does")
	})
	t.Run("who came first keeps it", func(t *testing.T) {
		r := newReader(nil)
		r.set(ids(on("z", "web")))
		require.Equal(t, []string{"z"}, declaredIn(r.set(ids(on("a", "web"), on("z", "web")))))
	})
	t.Run("who moved away has it no longer", func(t *testing.T) {
		r := newReader(map[Unit]string{web: "z"})
		require.Equal(t, []string{"a", "z"}, declaredIn(r.set(ids(on("a", "web"), on("z", "other")))))
	})
	t.Run("nobody gets the unit of one that cannot be read", func(t *testing.T) {
		r := newReader(map[Unit]string{web: "z"})
		for range 2 {
			set := r.set(ids(on("a", "web"), of("z", 2, `{"shape":"service","name":"z","new":1}`)))
			require.Empty(t, declaredIn(set))
			require.Equal(t, report.OwnedBy, set.Left[0].Reason)
			require.Equal(t, report.Unsupported, set.Left[1].Reason)
		}
	})
	t.Run("nor of one that is gone", func(t *testing.T) {
		r := newReader(map[Unit]string{web: "gone"})
		require.Equal(t, []string{"a"}, declaredIn(r.set(ids(on("a", "web")))))
	})
}

func declaredIn(set Set) []string {
	var all []string
	for _, d := range set.Declared {
		all = append(all, d.Service.Name)
	}
	return all
}

func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	r := newReader(nil)
	first := r.set(ids(on("a", "a"), on("b", "b")))
	id := on("b", "c")
	second := r.set(ids(on("a", "a"), id))
	require.Same(t, first.Declared[0].Service, second.Declared[0].Service)
	require.NotSame(t, first.Declared[1].Service, second.Declared[1].Service)
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
