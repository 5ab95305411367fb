package admit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/wire"
)

func TestAGenerationRisesWithWhatIsDeclaredAlone(t *testing.T) {
	w := newWorld(t).node("web1").node("web2")
	stand := func() (uid string, generation uint64, a assign.Address) {
		d := w.state.Declarations["web"]
		return d.UID, d.Generation, d.Address
	}
	step := func(document, uid string, generation uint64, how string) {
		t.Helper()
		d := w.landed(document)
		require.Equal(t, how, d.Reply.Changes[0].How)
		gotUID, gotGeneration, _ := stand()
		require.Equal(t, uid, gotUID)
		require.Equal(t, generation, gotGeneration)
		require.Equal(t, how == wire.Unchanged, len(d.Writes) == 0)
		require.Equal(t, assign.Mark(w.state.Declarations["web"]), d.Reply.Changes[0].Mark, "the caller knows the mark of what stands now")
	}
	step(service("web", "nodes: [web1]"), "uid1", 1, wire.New)
	step(service("web", "nodes: [web1]"), "uid1", 1, wire.Unchanged)
	step("# a comment\nname: web\nshape: service\nunit: web\ntimeout: 2m\nensure: running\nnodes:\n- web1\n", "uid1", 1, wire.Unchanged)
	step(service("web", "nodes: [web1, web2]"), "uid1", 1, wire.Moved)
	step(service("web", "nodes: [web2, web1]"), "uid1", 1, wire.Unchanged)
	step(service("web", "all: true"), "uid1", 1, wire.Moved)
	step(service("web", "all: true", "enabled: true"), "uid1", 2, wire.Edited)
	step(service("web", "nodes: [web1]"), "uid1", 3, wire.Edited)
	_, _, a := stand()
	require.Equal(t, assign.Address{Nodes: []string{"web1"}}, a)

	d := w.withdraw(wire.WithdrawRequest{Names: []string{"web"}, Seen: w.seen()})
	require.Equal(t, []string{"web"}, written(d))
	gone := w.state.Declarations["web"]
	require.True(t, gone.Withdrawn)
	require.Equal(t, "uid1", gone.UID)
	require.EqualValues(t, 3, gone.Generation)
	require.Empty(t, gone.Canonical)
	require.Nil(t, gone.Service)
	step(service("web", "nodes: [web1]"), "uid2", 4, wire.New)
}

func TestWhatIsWrittenSaysAllOfItself(t *testing.T) {
	w := newWorld(t).node("web1").node("web2")
	d := w.landed(service("web", "nodes: [web2, web1]", "content: '[Service]'"))
	want, problems := shape.Parse("a.yaml", []byte(service("web", "nodes: [web2, web1]", "content: '[Service]'")))
	require.Empty(t, problems)
	want[0].Origin = shape.Origin{}
	require.Equal(t, []*assign.Declaration{{Name: "web", UID: "uid1", Generation: 1, Digest: want[0].Digest(), Canonical: want[0].Canonical(), Service: want[0],
		Address: assign.Address{Nodes: []string{"web1", "web2"}}, By: "operator alice", At: w.now.Add(26 * 3600e9)}}, d.Writes)
	require.Equal(t, shape.Origin{File: "a.yaml", Line: 1}, d.Reply.Changes[0].Origin)
	read, err := shape.FromCanonical(d.Writes[0].Canonical)
	require.NoError(t, err)
	require.Equal(t, d.Writes[0].Digest, read.Digest())
	require.EqualValues(t, 10, d.Reply.Revision, "which was looked at")
	require.Equal(t, "e1", d.Reply.Epoch)
	require.Equal(t, []*assign.Declaration{d.Writes[0]}, d.After.Set("web1"))
}

// TestTwoWhoApplyAtOnce: both looked at the same; the second one is told what the
// first one changed, and loses nothing of it.
func TestTwoWhoApplyAtOnce(t *testing.T) {
	w := newWorld(t).node("web1").node("web2")
	w.landed(service("web", "nodes: [web1]"), service("db", "nodes: [web1]"))
	seen := w.seen()
	w.landed(service("web", "nodes: [web1]", "timeout: 1m"))

	late := w.request(service("web", "nodes: [web1]", "enabled: true"), service("db", "all: true"))
	late.Seen = seen
	d, err := Apply(w.basis(), late)
	require.NoError(t, err)
	require.Empty(t, d.Writes)
	require.Empty(t, d.Reply.Changes, "nothing was changed")
	require.Equal(t, []wire.Conflict{{Name: "web", Seen: seen["web"], Mark: w.seen()["web"], By: "operator alice", At: w.now.Add(26 * 3600e9), How: wire.Edited,
		Fields: []string{"enabled", "timeout"}, Generation: 2}}, d.Reply.Conflicts)

	late.Force = true
	d, err = Apply(w.basis(), late)
	require.NoError(t, err)
	require.Equal(t, []string{"db", "web"}, written(d))

	// Who asks for what stands by now is in nobody's way, whatever was seen.
	same := w.request(service("web", "nodes: [web1]", "timeout: 1m"))
	same.Seen = seen
	d, err = Apply(w.basis(), same)
	require.NoError(t, err)
	require.Empty(t, d.Reply.Conflicts)
	require.Equal(t, wire.Unchanged, d.Reply.Changes[0].How)
}

func TestConflictsSayWhatWasDone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		how    string
		fields []string
	}{
		"edited":    {func(w *world) { w.landed(service("web", "nodes: [web1]", "enabled: true")) }, wire.Edited, []string{"ensure", "enabled"}},
		"moved":     {func(w *world) { w.landed(service("web", "nodes: [web1, web2]")) }, wire.Moved, []string{"nodes", "ensure"}},
		"withdrawn": {func(w *world) { w.withdraw(wire.WithdrawRequest{Names: []string{"web"}}) }, wire.Gone, nil},
		"declared anew": {func(w *world) {
			w.withdraw(wire.WithdrawRequest{Names: []string{"web"}})
			w.landed(service("web", "nodes: [web1]"))
		}, wire.New, []string{"ensure"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).node("web1").node("web2")
			w.landed(service("web", "nodes: [web1]"))
			r := w.request("shape: service\nname: web\nensure: stopped\nnodes: [web1]\n")
			c.change(w)
			d, err := Apply(w.basis(), r)
			require.NoError(t, err)
			require.Len(t, d.Reply.Conflicts, 1)
			require.Equal(t, c.how, d.Reply.Conflicts[0].How)
			require.Equal(t, c.fields, d.Reply.Conflicts[0].Fields)
			require.Equal(t, "operator alice", d.Reply.Conflicts[0].By)
			require.Empty(t, d.Writes)
		})
	}
}

func TestADryRunSaysEverythingAndWritesNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.node(fmt.Sprintf("web%d", i))
	}
	w.landed(service("web", "all: true"))
	r := w.request(service("web", "nodes: [web1]"), service("new", "nodes: [web1]"))
	r.DryRun, r.Seen = true, nil
	d, err := Apply(w.basis(), r)
	require.NoError(t, err)
	require.Empty(t, d.Writes)
	require.Len(t, d.Reply.Conflicts, 1)
	require.Contains(t, d.Reply.Sure, "1 declaration would be taken from 19 nodes")
	require.Len(t, d.Reply.Changes, 2)
	require.Equal(t, w.seen()["web"], d.Reply.Changes[0].Mark, "the mark is of what stands, not of what would")
	require.Empty(t, d.Reply.Changes[1].Mark)
	require.Len(t, d.After.Set("web1"), 2)
}

func TestPlansAskEachNodeForWhatItWouldGetAndLose(t *testing.T) {
	w := newWorld(t).node("web1").node("web2").node("web3")
	w.landed(service("edited", "nodes: [web1, web2]") + service("moved", "nodes: [web1, web2]") + service("same", "all: true"))
	r := w.request(service("edited", "nodes: [web1, web2]", "timeout: 1m") + service("moved", "nodes: [web2, web3]") + service("same", "all: true") + service("new", "nodes: [web3]"))
	r.DryRun = true
	d, err := Apply(w.basis(), r)
	require.NoError(t, err)
	require.Empty(t, d.Reply.Problems)
	short := func(plans map[string][]wire.PlanRequest) map[string]string {
		texts := map[string]string{}
		for node, requests := range plans {
			require.Len(t, requests, 1)
			require.Equal(t, wire.Version, requests[0].Wire)
			for _, one := range requests[0].Declarations {
				s, err := shape.FromCanonical(one.Canonical)
				require.NoError(t, err)
				texts[node] += fmt.Sprintf("%s %s/%d ", s.Name, one.UID, one.Generation)
			}
			texts[node] += "-" + strings.Join(requests[0].Withdrawn, " ")
		}
		return texts
	}
	all := map[string]string{"web1": "edited uid1/2 -moved", "web2": "edited uid1/2 -", "web3": "moved uid2/1 new uid4/1 -"}
	require.Equal(t, all, short(d.Plans(nil)))
	require.Equal(t, map[string]string{"web3": all["web3"]}, short(d.Plans([]string{"web3", "web9"})))

	d, err = Withdraw(w.basis(), wire.WithdrawRequest{Wire: wire.Version, Names: []string{"same"}, DryRun: true, Yes: true})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"web1": "-same", "web2": "-same", "web3": "-same"}, short(d.Plans(nil)))
}

func TestEachPlanRequestFitsIntoAMessage(t *testing.T) {
	w := newWorld(t).node("web1")
	var docs []string
	for i := range 12 {
		docs = append(docs, service(fmt.Sprintf("d%d", i), "nodes: [web1]", "content: |\n  # "+strings.Repeat("x", 60<<10)))
	}
	d := w.landed(strings.Join(docs, ""))
	requests := d.Plans(nil)["web1"]
	require.Greater(t, len(requests), 1)
	count := 0
	for _, r := range requests {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), wire.MaxPage)
		count += len(r.Declarations)
	}
	require.Equal(t, 12, count)
}

func TestAFileIsQuotedShortAndInOneLine(t *testing.T) {
	for name, want := range map[string]string{"": "-", "mesh/web.yaml": "mesh/web.yaml", "dienste/größe.yaml": "dienste/größe.yaml",
		"a\nb\x1b[31m": `"a\nb\x1b[31m"`, "\xff": `"\xff"`, "\u0085": `"\u0085"`} {
		require.Equal(t, want, fileName(name))
	}
	long := fileName(strings.Repeat("ö", 300) + ".yaml")
	require.LessOrEqual(t, len(long), maxFile)
	require.True(t, strings.HasPrefix(long, "…ö") && strings.HasSuffix(long, "ö.yaml"), long)
}

func TestAnEmptyMeshIsJudged(t *testing.T) {
	b := newWorld(t).basis()
	b.State = &assign.State{}
	d, err := Apply(b, newWorld(t).request(service("web", "all: true")))
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, written(d))
	d, err = Settings(b, wire.SettingsRequest{Wire: wire.Version, Node: "web1", Add: true})
	require.NoError(t, err)
	require.Equal(t, "web1", d.Node.Name)
	d, err = Settings(b, wire.SettingsRequest{Wire: wire.Version, Node: "web\n1", Add: true})
	require.NoError(t, err)
	require.Equal(t, `"web\n1"`, d.Reply.Problems[0].Path)
	d, err = Withdraw(b, wire.WithdrawRequest{Wire: wire.Version, Names: []string{"web"}})
	require.NoError(t, err)
	require.Len(t, d.Reply.Problems, 1)
}

// TestTwoThatStoodSoHoldNobodyUp: a mesh in which two will meet on every node that
// comes takes a third one that meets neither.
func TestTwoThatStoodSoHoldNobodyUp(t *testing.T) {
	w := newWorld(t).node("db1", "role=db")
	for _, name := range []string{"one", "two"} {
		services, _ := shape.Parse("f", []byte(service(name, "unit: x", "labels: {role: web}")))
		w.state.Declarations[name] = &assign.Declaration{Name: name, UID: name, Generation: 1, Canonical: services[0].Canonical(), Service: services[0],
			Address: assign.AddressOf(services[0])}
	}
	w.landed(service("three", "unit: x", "nodes: [db1]"))
	d := w.apply(service("four", "unit: x", "labels: {role: web}"))
	require.Len(t, d.Reply.Problems, 1)
	require.Equal(t, `x.service is declared by "one" on every node with role=web too`, d.Reply.Problems[0].Rule)
}

func TestWhatIsNotJudged(t *testing.T) {
	w := newWorld(t).node("web1")
	unsound := *w.state
	unsound.Unsound = errors.New("the key declaration.web vanished")
	later := w.request(service("web", "all: true"))
	later.Wire = wire.Version + 1
	older := wire.SettingsRequest{Wire: wire.Version - 1, Node: "web1"}
	judged := map[string]func() (Decision, error){
		"apply, unsound": func() (Decision, error) { return Apply(Basis{State: &unsound}, w.request()) },
		"withdraw, unsound": func() (Decision, error) {
			return Withdraw(Basis{State: &unsound}, wire.WithdrawRequest{Wire: wire.Version})
		},
		"node, unsound": func() (Decision, error) {
			return Settings(Basis{State: &unsound}, wire.SettingsRequest{Wire: wire.Version})
		},
		"later version": func() (Decision, error) { return Apply(w.basis(), later) },
		"older version": func() (Decision, error) { return Settings(w.basis(), older) },
	}
	for name, want := range map[string]struct {
		class fault.Class
		text  string
		hint  string
	}{
		"apply, unsound":    {fault.Failed, "apply: mesh state is not sound, and nothing is written to it: the key declaration.web vanished", "--begin-epoch"},
		"withdraw, unsound": {fault.Failed, "withdraw: mesh state is not sound, and nothing is written to it: the key declaration.web vanished", "--begin-epoch"},
		"node, unsound":     {fault.Failed, "node: mesh state is not sound, and nothing is written to it: the key declaration.web vanished", "--begin-epoch"},
		"later version":     {fault.Unsupported, "apply: the request is of wire version 2; this controller reads 1", "upgrade stead on the controllers"},
		"older version":     {fault.Unsupported, "node: web1: the request is of wire version 0; this controller reads 1", "upgrade stead on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := judged[name]()
			require.EqualError(t, err, want.text)
			require.Equal(t, want.class, fault.ClassOf(err))
			require.Contains(t, fault.HintOf(err), want.hint)
			require.Empty(t, d.Writes)
		})
	}
}

// After a restore a generation may mean another content than the one that was
// seen: what was seen in another epoch was not seen.
func TestWhatWasSeenInAnotherEpochWasNotSeen(t *testing.T) {
	w := newWorld(t).node("web1", "role=web")
	w.landed(service("web", "labels: {role: web}"))
	r := w.request(service("web", "labels: {role: web}", "enabled: true"))
	for epoch, conflicts := range map[string]int{"e1": 0, "": 0, "e0": 1} {
		r.Epoch = epoch
		d, err := Apply(w.basis(), r)
		require.NoError(t, err)
		require.Len(t, d.Reply.Conflicts, conflicts, epoch)
	}
	gone := wire.WithdrawRequest{Wire: wire.Version, Names: []string{"web"}, Seen: map[string]wire.Mark{"web": "x.1.y"}}
	for epoch, conflicts := range map[string]int{"e1": 1, "e0": 0} {
		gone.Epoch = epoch
		d, err := Withdraw(w.basis(), gone)
		require.NoError(t, err)
		require.Len(t, d.Reply.Conflicts, conflicts, epoch)
	}
}
