package system

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

const (
	// eachKill is how many calls run while one process is killed.
	eachKill = 10
	// callsFor is the deadline of a call.
	callsFor = 30 * time.Second
	// mayHave is what an answer says of an act of which nobody knows, and unanswered
	// what it says of what is read too.
	mayHave, unanswered = "may have been done", "no answer in time"
)

// TestCallsOutliveWhatServesThem kills in turn everything that a call passes, and
// cuts a node off, while calls of all kinds run. Each call has a unit of its own
// that counts what is done to it.
func TestCallsOutliveWhatServesThem(t *testing.T) {
	rounds, seed := 1, seeded(t)
	if full() {
		rounds = 10
	}
	r := startSeats(t, "ws1", "ws2")
	k := &seatKills{rig: r, caller: r.caller(), random: rand.New(rand.NewPCG(seed, 0)), made: map[int]string{}}
	kills := k.kills()
	k.makeUnits(rounds * len(kills))
	for range rounds {
		for _, victim := range slices.Sorted(maps.Keys(kills)) {
			k.during(victim, kills[victim])
		}
	}
	k.judge()
	told := k.later()
	k.returns()
	told()
}

// seatKills is a mesh in which something is killed.
type seatKills struct {
	*rig
	caller *caller
	random *rand.Rand
	round  int
	calls  []int
	made   map[int]string // the unit of a call
}

// kills are what is done while calls run, and undone.
func (k *seatKills) kills() map[string]func() {
	on := func(unit string, all ...*machine) func() {
		return func() {
			for _, m := range all {
				require.NoError(k, shotAt(m.pidOf(unit)))
			}
		}
	}
	ws1, ws2 := k.nodes["ws1"], k.nodes["ws2"]
	return map[string]func(){
		"runtime":    on(runtimeService, ws1, ws2),
		"helper":     on(helperService, ws1, ws2),
		"host":       on(service, ws1, ws2),
		"controller": on(controllerService, k.ctl),
		"network": func() {
			require.NoError(k, k.net.Cut(k.Context(), ws2.Node))
			time.Sleep(2 * time.Second)
			require.NoError(k, k.net.Join(k.Context(), ws2.Node))
		},
	}
}

// mixed are the verbs of the calls of one kill.
func mixed() [eachKill]subject.Verb {
	return [eachKill]subject.Verb{seats.Status, seats.Units, seats.Journal, seats.Start, seats.Start,
		seats.Stop, seats.Restart, seats.Restart, seats.Enable, seats.Disable}
}

// countedUnit is the unit of a call: it takes its time, and counts.
func countedUnit(round, i int) string { return fmt.Sprintf("k%d-%d.service", round, i) }

const counted = "[Service]\nExecStartPre=/bin/sleep 0.7\nExecStartPre=/bin/sh -c 'echo start >>/var/log/%n'\n" +
	"ExecStart=/bin/sleep infinity\nExecStop=/bin/sleep 0.7\nExecStopPost=/bin/sh -c 'echo stop >>/var/log/%n'\n" +
	"[Install]\nWantedBy=multi-user.target\n"

// makeUnits makes the units of all rounds, as the calls want to find them.
func (k *seatKills) makeUnits(rounds int) {
	k.Helper()
	start, enable := []string{"systemctl", "start"}, []string{"systemctl", "enable"}
	for _, m := range k.nodes {
		for round := range rounds {
			for i, verb := range mixed() {
				u := countedUnit(round, i)
				require.NoError(k, m.WriteFile(etc+"/"+u, []byte(counted), 0o644))
				switch verb {
				case seats.Stop, seats.Restart:
					start = append(start, u)
				case seats.Disable:
					enable = append(enable, u)
				}
			}
		}
	}
	for _, m := range k.nodes {
		m.Run(k.T, "systemctl", "daemon-reload")
		m.Run(k.T, enable...)
		m.Run(k.T, start...)
		m.Run(k.T, "sh", "-c", "rm /var/log/k*.service")
	}
}

// during makes calls, half of them before the kill and half in and behind it, and
// waits for their answers.
func (k *seatKills) during(victim string, kill func()) {
	k.Helper()
	var mine []int
	order := k.random.Perm(eachKill)
	for n, i := range order {
		if n == eachKill/2 {
			time.Sleep(time.Duration(k.random.IntN(600)) * time.Millisecond)
			kill()
		}
		node := subject.Node(fmt.Sprintf("ws%d", 1+(n+k.round)%2))
		mine = append(mine, k.begin(node, mixed()[i], countedUnit(k.round, i)))
	}
	words := map[string]int{}
	longest := time.Duration(0)
	for _, id := range mine {
		a := k.caller.answer(id)
		words[verdict(a)]++
		longest = max(longest, a.Took)
	}
	k.Logf("%s killed: %v, the last after %s", victim, words, longest.Round(time.Millisecond))
	k.calls = append(k.calls, mine...)
	k.round++
}

// begin makes one call.
func (k *seatKills) begin(node subject.Node, verb subject.Verb, unit string) int {
	arguments := map[string]any{"unit": unit}
	if verb == seats.Units {
		arguments = map[string]any{"patterns": []string{unit}, "all": true}
	}
	id := k.caller.call(seatCall{Node: node, Verb: verb, Arguments: arguments, Deadline: callsFor})
	k.made[id] = unit
	return id
}

// verdict is an answer in a word.
func verdict(a seatAnswer) string {
	switch {
	case strings.Contains(a.Silent+a.Text, mayHave), strings.HasPrefix(a.Silent, unanswered), a.Class == fault.Timeout:
		return "unknown"
	case a.Silent != "" || a.Class == fault.Unavailable:
		return "unavailable"
	case a.Class != "":
		return string(a.Class)
	}
	return "done"
}

// judge holds every answer against what was done, as the units themselves and
// systemd have it.
func (k *seatKills) judge() {
	k.Helper()
	for _, m := range k.nodes {
		m.until("no job runs", func() bool { return strings.Contains(m.Run(k.T, "systemctl", "list-jobs"), "No jobs") })
	}
	words := map[string]int{}
	for _, id := range k.calls {
		a, q := k.caller.answer(id), k.caller.calls[id]
		require.Len(k, k.caller.answers[id], 1, "answers to %s", q)
		require.LessOrEqual(k, a.Took, callsFor+2*time.Second, "%s", q)
		is := verdict(a)
		words[is]++
		if is != "done" {
			k.Logf("%s: %s: %s%s after %s", q, is, a.Silent, a.Text, a.Took.Round(time.Millisecond))
		}
		done := k.done(q, k.made[id])
		require.LessOrEqual(k, done, 1, "%s was done %d times", q, done)
		switch {
		case is == "done" && q.class() == subject.Write:
			require.Equal(k, 1, done, "%s was answered with %s", q, a.Reply)
		case is == "unavailable":
			require.Zero(k, done, "%s was answered with unavailable (%s%s), and done", q, a.Silent, a.Text)
		case is != "done" && is != "unknown":
			require.Fail(k, "an answer of another kind", "%s: %s%s", q, a.Silent, a.Text)
		}
	}
	k.Logf("%d calls: %v", len(k.calls), words)
	require.LessOrEqual(k, words["unavailable"]*100, 5*len(k.calls), "of %d calls: %v", len(k.calls), words)
	require.LessOrEqual(k, words["unknown"]*100, 5*len(k.calls), "of %d calls: %v", len(k.calls), words)
}

// done is how often it was done what a call asks for.
func (k *seatKills) done(q seatCall, unit string) int {
	k.Helper()
	m := k.nodes[string(q.Node)]
	log := m.read("/var/log/" + unit)
	starts, stops := strings.Count(log, "start"), strings.Count(log, "stop")
	enabled := m.link(etc+"/multi-user.target.wants/"+unit) != ""
	switch q.Verb {
	case seats.Start:
		return starts
	case seats.Stop:
		return stops
	case seats.Restart:
		require.Equal(k, starts, stops, "%s: half of it", q)
		return starts
	case seats.Enable:
		require.Empty(k, log, "%s: it is enabled and no more", q)
		return count([]string{fmt.Sprint(enabled)}, "true")
	case seats.Disable:
		return count([]string{fmt.Sprint(enabled)}, "false")
	}
	require.Empty(k, log, "%s reads", q)
	return 0
}

// returns shows that a runtime answers within a second of its return. A slow moment of
// this machine proves nothing, so it returns several times, and where a program that
// does nothing takes longer than a tenth of that, it may take as much longer itself.
func (k *seatKills) returns() {
	k.Helper()
	ws1 := k.nodes["ws1"]
	var all, idle []time.Duration
	for range 3 {
		from := time.Now()
		ws1.Run(k.T, "stead", "--version")
		idle = append(idle, time.Since(from))
		require.NoError(k, shotAt(ws1.pidOf(runtimeService)))
		a := k.caller.answer(k.begin("ws1", seats.Status, bystander))
		require.Equal(k, "done", verdict(a), "%s%s", a.Silent, a.Text)
		all = append(all, a.At.Sub(ws1.begun(runtimeService)))
	}
	k.Logf("the runtime's process began, and a call was answered after %s; a program that does nothing took %s", all, idle)
	require.Positive(k, slices.Min(all), "it was not killed")
	require.Less(k, slices.Min(all), max(time.Second, 10*slices.Max(idle)))
}

// later begins a restart that nobody waits for any more when the runtime is killed.
// What it returns waits until the mesh is told, once, what it became.
func (k *seatKills) later() (told func()) {
	k.Helper()
	ws1 := k.nodes["ws1"]
	const unit = "later.service"
	require.NoError(k, ws1.WriteFile(etc+"/"+unit, []byte("[Service]\nExecStartPre=/bin/sleep 5\nExecStart=/bin/sleep infinity\n"), 0o644))
	ws1.Run(k.T, "systemctl", "daemon-reload")
	a := k.caller.answer(k.caller.call(seatCall{Node: "ws1", Verb: seats.Restart, Arguments: map[string]any{"unit": unit}, Deadline: time.Second}))
	require.Equal(k, "unknown", verdict(a), "%s", a.Reply)
	require.Equal(k, "activating", ws1.prop(unit, "ActiveState"))
	return func() {
		k.Helper()
		var told []wire.Event
		k.ctl.until("the mesh is told what became of the restart", func() bool {
			told = slices.DeleteFunc(k.events("-n", "ws1"), func(e wire.Event) bool { return e.Unit != unit || e.Outcome == "" })
			return len(told) > 0
		})
		require.Len(k, told, 1)
		require.Equal(k, "restart operator bob done", fmt.Sprintf("%s %s %s", told[0].Kind, told[0].Who, told[0].Outcome))
		require.Regexp(k, `^ended after its call: done in \d`, told[0].Text)
		require.Equal(k, "active", ws1.prop(unit, "ActiveState"))
	}
}
