package system

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
	"stead/test/lab"
)

const (
	// batch is how many declarations each apply changes on the node, and idle how
	// many on one that never comes: they make it long enough to be killed in.
	batch, idle = 12, 300
)

// TestAControllerThatIsKilledLosesNothing kills the controller at random moments
// of applies. Each of them changes all of a batch, declares one more, and follows
// on the withdrawal of another.
func TestAControllerThatIsKilledLosesNothing(t *testing.T) {
	kills, seed := 5, seeded(t)
	if full() {
		kills = 50
	}
	random := rand.New(rand.NewPCG(seed, 0))
	r := startMesh(t, "ws1")
	r.done("node", "add", "ws2")
	k := &killing{rig: r, heard: r.nodes["ws1"].listen(t, nil)}
	k.apply(nil)
	k.holds()
	usual := time.Minute
	for range 2 {
		begun := time.Now()
		k.apply(nil)
		usual = min(usual, time.Since(begun))
		k.holds()
	}
	t.Logf("an apply takes %s when nobody disturbs it", usual.Round(time.Millisecond))
	interrupted := 0
	for range kills {
		k.withdraw()
		after := time.Duration(random.Int64N(int64(usual)))
		if k.apply(&after) {
			interrupted++
		} else {
			usual = max(usual*3/4, 50*time.Millisecond) // it takes less on a machine that is less busy than it was
		}
		k.holds()
	}
	t.Logf("%d of %d kills came before the answer", interrupted, kills)
	require.GreaterOrEqual(t, interrupted*10, kills*3, "too many of them missed")
	k.toldOnce()
}

// killing is a mesh whose controller is killed.
type killing struct {
	*rig
	heard    *bus
	version  uint64 // of the batch: its generation too
	revision uint64 // that was acknowledged last
	gone     []string
}

// files are those of the version: the batch, and what is declared in it alone.
func (k *killing) files(version uint64) map[string]string {
	docs := []string{addressed(fmt.Sprintf("once%d", version), "nodes: [ws1]", sleeper(0))}
	for i := range batch {
		docs = append(docs, addressed(fmt.Sprintf("d%02d", i), "nodes: [ws1]", sleeper(int(version)*100+i)))
	}
	for i := range idle {
		docs = append(docs, addressed(fmt.Sprintf("d-idle%03d", i), "nodes: [ws2]", sleeper(int(version))))
	}
	return map[string]string{"all": documents(docs...)}
}

// apply applies the next version, and kills the controller after that long when
// that is said. It reports whether the kill came before the answer. Where the
// answer was no acknowledgement, all of it or nothing must have been done.
func (k *killing) apply(after *time.Duration) (interrupted bool) {
	k.Helper()
	k.version++
	k.write(k.files(k.version))
	k.heard.reset()
	answered := make(chan lab.Output, 1)
	pid := k.ctl.pidOf(controllerService)
	begun := time.Now()
	go func() {
		out, err := k.ctl.Exec(k.Context(), "stead", "apply", "-f", declared, "-o", "json")
		if err != nil {
			out = lab.Output{Code: -1, Stderr: err.Error()}
		}
		answered <- out
	}()
	if after == nil {
		k.acknowledged(<-answered)
		return false
	}
	var out lab.Output
	select {
	case <-time.After(*after):
		require.NoError(k, shotAt(pid))
		interrupted = len(answered) == 0
		out = <-answered
	case out = <-answered:
		require.NoError(k, shotAt(pid))
	}
	k.Logf("killed %s after the apply began, answered with %d after %s", after.Round(time.Millisecond), out.Code, time.Since(begun).Round(time.Millisecond))
	k.ctl.until("the controller is back", func() bool { return k.stead("get", "declarations").Code == 0 })
	if out.Code == 0 {
		k.acknowledged(out)
		return interrupted
	}
	require.Equal(k, 1, out.Code, "%s%s", out.Stdout, out.Stderr)
	done := 0
	for name, generation := range k.generations() {
		if name == fmt.Sprintf("once%d", k.version) || name[0] == 'd' && generation == k.version {
			done++
		}
	}
	require.Contains(k, []int{0, batch + idle + 1}, done, "half of an apply was done")
	k.Logf("not acknowledged: %s; %d of %d declarations were changed", out.Stderr, done, batch+idle+1)
	k.acknowledged(k.stead("apply", "-f", declared, "-o", "json"))
	return interrupted
}

// acknowledged takes in an answer that says that all was done.
func (k *killing) acknowledged(out lab.Output) {
	k.Helper()
	require.Zero(k, out.Code, "%s%s", out.Stdout, out.Stderr)
	var reply wire.ChangeReply
	require.NoError(k, json.Unmarshal([]byte(out.Stdout), &reply), out.Stdout)
	require.Greater(k, reply.Revision, k.revision, "the revision went back")
	k.revision = reply.Revision
}

// withdraw ends what the last version declared alone.
func (k *killing) withdraw() {
	k.Helper()
	name := fmt.Sprintf("once%d", k.version)
	k.done("withdraw", name)
	k.gone = append(k.gone, name)
}

// generations are those of everything that is declared.
func (k *killing) generations() map[string]uint64 {
	k.Helper()
	all := map[string]uint64{}
	for _, d := range k.get(wire.Declarations).Declarations {
		all[d.Name] = d.Generation
	}
	return all
}

// holds checks that what was acknowledged is declared, once, and nothing else, and
// that the node comes to it by one job for each unit.
func (k *killing) holds() {
	k.Helper()
	want, reports, units := map[string]uint64{}, []string{}, []string{}
	for i := range batch {
		name := fmt.Sprintf("d%02d", i)
		want[name] = k.version
		units = append(units, name+".service")
	}
	for i := range idle {
		want[fmt.Sprintf("d-idle%03d", i)] = k.version
	}
	for v := range k.version {
		if name := fmt.Sprintf("once%d", v+1); !slices.Contains(k.gone, name) {
			want[name] = 1
		}
	}
	require.Equal(k, want, k.generations())
	for name, generation := range want {
		if !strings.HasPrefix(name, "d-idle") {
			reports = append(reports, fmt.Sprintf("ws1 %s %d", name, generation))
		}
	}
	k.reports(reports...)
	ws1 := k.nodes["ws1"]
	for i, unit := range units {
		require.True(k, ws1.runs(unit, sleeper(int(k.version)*100+i)), unit)
		require.Equal(k, 1, k.heard.jobsOf(unit), "jobs of %s", unit)
	}
	for _, name := range k.gone {
		require.True(k, ws1.absent(name+".service"), "%s came back", name)
	}
}

// toldOnce checks that no change is told of twice.
func (k *killing) toldOnce() {
	k.Helper()
	seen := map[string]bool{}
	for _, e := range k.events() {
		if e.Kind != "apply" && e.Kind != "withdraw" {
			continue
		}
		what := fmt.Sprintf("%s %s of generation %d", e.Kind, e.Declaration, e.Generation)
		require.False(k, seen[what], "%s is told twice", what)
		seen[what] = true
	}
	require.GreaterOrEqual(k, len(seen), batch, "nothing is told")
}
