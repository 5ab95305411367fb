package system

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/report"
)

const (
	killed = 20 // units of an apply
	// steps is how many steps of an apply are seen from outside: for each unit its
	// file, its link, its job queued and ended; and one reload. In each stage below
	// it comes to the same.
	steps = 4*killed + 1
)

// stages are the applies of one round: twenty new units, two changes of all of
// them, of which half change their link too, and their withdrawal.
func stages() []map[string]string {
	all := make([]map[string]string, 4)
	for s := range 3 {
		var docs []string
		for i := range killed {
			target := "multi-user.target"
			if i < killed/2 && s%2 == 1 {
				target = "graphical.target"
			}
			docs = append(docs, up(fmt.Sprintf("u%02d", i), strings.Replace(sleeper(100*s+i), "multi-user.target", target, 1)))
		}
		all[s] = map[string]string{"all": documents(docs...)}
	}
	all[3] = map[string]string{"all": ""}
	return all
}

// stable declares what makes the folders of links, which are then always there.
func stable() map[string]string {
	return map[string]string{"stable": up("stable", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target graphical.target\n")}
}

// state is what an apply leads to, as systemd, the disk and the host tell it.
type state struct {
	Disk, Files, Units map[string]string
	Reports            []string
}

func (m *machine) state(t *testing.T) state {
	t.Helper()
	snap, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	s := state{Disk: map[string]string{}, Files: map[string]string{}, Units: map[string]string{}}
	for p, is := range snap.Disk {
		if strings.HasPrefix(p, "/etc/systemd") {
			s.Disk[p] = is
		}
	}
	for to, from := range map[*map[string]string]map[string]string{&s.Files: snap.Files, &s.Units: snap.Units} {
		for u, is := range from {
			if strings.HasPrefix(u, "u") && len(u) == len("u00.service") {
				(*to)[u] = is
			}
		}
	}
	st, err := m.status()
	require.NoError(t, err)
	for _, r := range st.Reports {
		s.Reports = append(s.Reports, fmt.Sprint(r.Unit, r.Outcome, r.Reason, r.Text, r.State.Load, r.State.Active, r.State.Sub, r.State.Enabled, r.Warnings))
	}
	return s
}

// TestAKilledHostGoesOnWhereItWas kills the host at random steps of applies of
// twenty units, and holds what comes of it against a machine on which nobody
// killed it.
func TestAKilledHostGoesOnWhereItWas(t *testing.T) {
	kills, seed := 5, seeded(t)
	if full() {
		kills = 50
	}
	random := rand.New(rand.NewPCG(seed, 0))

	t.Parallel()
	undisturbed := make(chan []state, 1)
	t.Run("machines", func(t *testing.T) {
		t.Run("undisturbed", func(t *testing.T) {
			m := running(t, stable())
			var all []state
			defer func() { undisturbed <- all }()
			for _, files := range stages() {
				m.converged(m.declare(files))
				all = append(all, m.state(t))
			}
		})
		t.Run("killed", func(t *testing.T) {
			m := running(t, stable())
			w := m.witness(t)
			var got []state
			unfinished := 0
			for k := range kills {
				s := k % len(stages())
				if w.kill(stages()[s], random) < steps {
					unfinished++
				}
				got = append(got, m.state(t))
			}
			t.Logf("%d of %d kills landed with a step unfinished", unfinished, kills)
			require.GreaterOrEqual(t, unfinished*100, kills*80)
			want := <-undisturbed
			require.Len(t, want, len(stages()), "the undisturbed machine did not come to its end")
			for k, s := range got {
				require.Equal(t, want[k%len(stages())], s, "after kill %d", k)
			}
		})
	})
}

// seeded is the seed of what is random in a test, STEAD_SEED if that is set.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("STEAD_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("STEAD_SEED=%d", seed)
	return seed
}

// kill applies files and kills the host at a random step of that; it returns how
// many steps were done then, when all is as declared again and was found right.
func (w *witness) kill(files map[string]string, random *rand.Rand) int {
	t, m := w.t, w.m
	before := m.props("InvocationID", w.units)
	at := random.IntN(steps)
	w.arm(m.hostPID(), at)
	from := m.declare(files)
	if at == 0 {
		time.Sleep(time.Duration(random.IntN(250)) * time.Millisecond)
		w.shoot()
	}
	m.until("the host was killed", func() bool { return w.shot() != nil })
	done := w.shot()
	m.until("the host was restarted", func() bool {
		st, err := m.status()
		return err == nil && st.Started.After(from)
	})
	m.converged(from)
	w.still()
	t.Logf("killed at step %d of %d: %s; converged %s after the declaration", at, steps, done, time.Since(from).Round(time.Millisecond))

	_, jobs := w.bus.count()
	for i, u := range w.units {
		require.Equal(t, 1, jobs[u], "jobs of %s", u)
		require.NotEqual(t, before[i], m.prop(u, "InvocationID"), "%s was not run anew", u)
	}
	delete(jobs, service)
	require.Len(t, jobs, killed, "jobs of others: %v", jobs)
	require.Empty(t, w.halves(), "half-written files were seen")
	require.Empty(t, m.Run(t, "find", "/etc/systemd", "/run/systemd/system", "-name", ".stead*"), "temporary files stay")
	for _, r := range m.reports() {
		require.Equal(t, report.Converged, r.Outcome, "%s: %s", r.Unit, r.Text)
	}
	return done.total()
}

// reports are those of the host's last status.
func (m *machine) reports() []*report.Report {
	m.t.Helper()
	st, err := m.status()
	require.NoError(m.t, err)
	return st.Reports
}

// shotAt sends SIGKILL.
func shotAt(pid int) error { return unix.Kill(pid, unix.SIGKILL) }

// contents are all that the unit files of the stages may hold.
func contents() []string {
	var all []string
	for _, files := range stages() {
		for _, doc := range documentsOf(files) {
			if _, text, there := strings.Cut(doc, "content: |\n  "); there {
				all = append(all, strings.ReplaceAll(text, "\n  ", "\n"))
			}
		}
	}
	slices.Sort(all)
	return all
}
