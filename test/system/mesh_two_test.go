package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
	"stead/test/lab"
)

// together gives one command in the context of each of these operators at once,
// with a folder of their own.
func (r *rig) together(files map[string]string) map[string]lab.Output {
	r.Helper()
	var mu sync.Mutex
	outs := map[string]lab.Output{}
	var group sync.WaitGroup
	for who, docs := range files {
		require.NoError(r, r.ctl.WriteFile("/root/"+who+"/mesh.yaml", []byte(docs), 0o644))
	}
	for who := range files {
		group.Go(func() {
			out, err := r.ctl.Exec(r.Context(), "stead", "--context", who, "apply", "-f", "/root/"+who)
			if err != nil {
				out = lab.Output{Code: -1, Stderr: err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			outs[who] = out
		})
	}
	group.Wait()
	return outs
}

// TestOfTwoOperatorsAtOnceOneGetsAConflict has two operators, who both saw the
// same, declare something else at the same time.
func TestOfTwoOperatorsAtOnceOneGetsAConflict(t *testing.T) {
	r := startMesh(t, "ws1")
	r.operator("bob")
	r.done("context", "use", "alice")
	doc := func(who string, round int) string {
		return addressed("web", "all: true", "# of "+who+"\n"+sleeper(round)) + separator + addressed(who, "all: true", sleeper(round))
	}
	see := func() {
		t.Helper()
		for _, who := range []string{"alice", "bob"} {
			r.done("--context", who, "describe", "declaration", "web")
		}
	}
	r.apply(map[string]string{"web": addressed("web", "all: true", sleeper(0))})
	see()
	won := map[string]int{}
	for round := range 5 {
		outs := r.together(map[string]string{"alice": doc("alice", round+1), "bob": doc("bob", round+1)})
		winner, loser := "alice", "bob"
		if outs[winner].Code != 0 {
			winner, loser = loser, winner
		}
		won[winner]++
		require.Zero(t, outs[winner].Code, "%s%s", outs[winner].Stdout, outs[winner].Stderr)
		require.Equal(t, 1, outs[loser].Code, "%s%s", outs[loser].Stdout, outs[loser].Stderr)
		require.Regexp(t, `error: 1 declaration was changed by others .*, nothing was applied\n +web +changed +by operator `+winner+` .* differs in content\n`, outs[loser].Stderr)
		require.Contains(t, outs[loser].Stderr, "--force")
		names := map[string]uint64{}
		for _, d := range r.get(wire.Declarations, "--context", winner).Declarations {
			names[d.Name] = d.Generation
			if d.Name == "web" {
				require.Equal(t, "operator "+winner, d.By)
			}
		}
		require.Equal(t, uint64(round+2), names["web"])
		require.Equal(t, uint64(won[loser]), names[loser], "half of the apply that was refused was done")
		require.Equal(t, uint64(won[winner]), names[winner])
		see()
	}
	t.Logf("of five times %v", won)
	r.nodes["ws1"].until("the node has the last", func() bool { return strings.Contains(r.nodes["ws1"].read(etc+"/web.service"), sleeper(5)) })

	// Who has seen it since goes on without force; who has not, with it.
	outs := r.together(map[string]string{"bob": doc("bob", 6)})
	require.Zero(t, outs["bob"].Code, outs["bob"].Stderr)
	outs = r.together(map[string]string{"alice": doc("alice", 7)})
	require.Equal(t, 1, outs["alice"].Code)
	r.done("apply", "-f", "/root/alice", "--force")
}

// TestTheSameApplyTwiceChangesNothing applies a folder again, as it is and written
// otherwise.
func TestTheSameApplyTwiceChangesNothing(t *testing.T) {
	r := startMesh(t, "ws1")
	ws1 := r.nodes["ws1"]
	docs := make([]string, 5)
	units := make([]string, len(docs))
	for i := range docs {
		name := fmt.Sprintf("d%d", i)
		docs[i], units[i] = addressed(name, "all: true", sleeper(i)), name+".service"
	}
	r.apply(map[string]string{"all": documents(docs...)})
	before := r.get(wire.Declarations)
	invocations := ws1.props("InvocationID", units)
	events := len(r.events())
	heard := ws1.listen(t, nil)

	again := func(files map[string]string) {
		t.Helper()
		r.write(files)
		var reply wire.ChangeReply
		out := r.done("apply", "-f", declared, "-o", "json", "--wait=1m")
		require.NoError(t, json.Unmarshal([]byte(out), &reply), out)
		require.Equal(t, before.Revision, reply.Revision)
		for _, c := range reply.Changes {
			require.Equal(t, wire.Unchanged, c.How, c.Name)
		}
		require.Contains(t, r.done("apply", "-f", declared), "nothing to change")
		after := r.get(wire.Declarations)
		for i := range after.Declarations {
			after.Declarations[i].Outcomes, before.Declarations[i].Outcomes = nil, nil
		}
		require.Equal(t, before, after)
		require.Equal(t, invocations, ws1.props("InvocationID", units))
	}
	again(nil)
	again(map[string]string{"all": documents(docs[3], docs[1]), "more": "# the same in other words\n" + strings.ReplaceAll(documents(docs[0], docs[2], docs[4]),
		"ensure: running\nenabled: true\n", "\"enabled\": true\nensure: 'running'\n")})
	require.Zero(t, heard.jobsOf(units...))
	reloads, _ := heard.count()
	require.Zero(t, reloads)
	require.Len(t, r.events(), events, "something is told")
}
