package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// doing are steps, as both a dry run and a report tell them.
type doing []string

func did(action, object, reason string) string { return action + " " + object + ": " + reason }

// ears collect, by unit, the steps that the loop has taken.
type ears struct {
	mu    sync.Mutex
	steps map[unit.Name]doing
}

func (e *ears) hear(m *managed, s report.Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Error == "" {
		e.steps[m.name] = append(e.steps[m.name], did(s.Action, s.Object, s.Reason))
	}
}

func (e *ears) take() map[unit.Name]doing {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.steps
	e.steps = make(map[unit.Name]doing)
	return all
}

// inDryRig is inRig with ears.
func inDryRig(t *testing.T, f func(*rig, *ears)) {
	inRig(t, func(r *rig) {
		e := &ears{steps: make(map[unit.Name]doing)}
		r.stop()
		r.heard, r.full = e.hear, 24*time.Hour // what only a full look finds has nothing to do with it
		r.start()
		f(r, e)
	})
}

func (r *rig) plan(declared []*shape.Service, withdrawn ...string) []plan.Preview {
	r.t.Helper()
	all, err := r.loop.Plan(r.t.Context(), set(declared...), withdrawn)
	require.NoError(r.t, err)
	return all
}

func set(all ...*shape.Service) []Declared {
	var s []Declared
	for _, d := range all {
		s = append(s, Declared{Service: d, UID: "uid-" + d.Name, Generation: generation(d)})
	}
	return s
}

// foretold are the steps of previews, by unit.
func foretold(all []plan.Preview) map[unit.Name]doing {
	out := make(map[unit.Name]doing)
	for _, p := range all {
		for _, s := range p.Steps {
			out[p.Unit] = append(out[p.Unit], did(string(s.Action), s.Object, s.Reason))
		}
	}
	return out
}

// chance makes starting states and declarations out of a few names, so that they
// meet each other and what stands there.
type chance struct {
	*rand.Rand
	triggers string // the folder of files that may be cited; "" for none
}

func (c chance) of(all ...string) string { return all[c.IntN(len(all))] }

func (c chance) one(n int) bool { return c.IntN(n) == 0 }

func (c chance) content() string {
	text := c.of("", "[Unit]\nDescription=x\n") + "[Service]\nExecStart=/bin/sleep " + c.of("infinity", "100000", "200000") + "\n"
	if c.one(6) {
		text = "[Service]\nType=oneshot\nExecStart=/bin/true\n" + c.of("", "RemainAfterExit=yes\n")
	}
	if !c.one(3) {
		text += "ExecReload=/bin/true\n"
	}
	return text + c.of("", "[Install]\nWantedBy=multi-user.target\n", "[Install]\nWantedBy=multi-user.target\nAlias=nick.service\n",
		"[Install]\nRequiredBy=x.target\nAlso=c.service\n")
}

func (c chance) unit() unit.Name {
	return unit.Name(c.of("a.service", "b.service", "c.service", "t@1.service", "nick.service"))
}

func (c chance) service(name string) *shape.Service {
	s := &shape.Service{Name: name, Scope: unit.System, Unit: unit.Name(name + ".service"), Timeout: time.Minute, OnWithdraw: shape.Restore}
	switch {
	case c.one(5):
		s.Unit = c.unit()
	case c.one(8):
		s.Unit = "t@.service"
	}
	if !c.one(4) {
		text := c.content()
		s.Content = &text
	}
	if c.one(3) {
		s.DropIns = map[string]string{c.of("10-a.conf", "20-b.conf"): c.of("[Service]\nEnvironment=A=1\n", "[Unit]\nDescription=y\n", "[Service]\nNice=5\n")}
	}
	if s.Content == nil && s.DropIns == nil || !c.one(4) {
		s.Ensure = shape.Ensure(c.of(string(shape.Running), string(shape.Running), string(shape.Stopped)))
	}
	if s.Unit.IsTemplate() {
		s.Ensure = shape.Unmanaged
	}
	if on := c.one(2); !c.one(3) {
		s.Enabled = &on
	}
	if c.one(6) {
		s.OnWithdraw = shape.Release
	}
	switch on := c.one(2); {
	case c.one(6):
		s.Masked = &on
	case c.one(6) && s.Ensure == shape.Running:
		s.Ensure = shape.Restarted
	}
	if s.IsMasked() {
		no := false
		s.OnChange, s.Ensure, s.Enabled = "", shape.Ensure(c.of("", string(shape.Stopped))), &no
		return s
	}
	if c.one(2) {
		s.OnChange = shape.OnChange(c.of(string(shape.RestartOnChange), string(shape.ReloadOnChange), string(shape.ReloadOrRestart), string(shape.IgnoreChange)))
	}
	if c.triggers != "" && c.one(2) {
		s.Triggers = []string{filepath.Join(c.triggers, c.of("a", "b", "c"))}
	}
	return s
}

// pulls changes a trigger.
func (c chance) pulls(t *testing.T) {
	p := filepath.Join(c.triggers, c.of("a", "b", "c"))
	if c.one(4) {
		_ = os.Remove(p)
		return
	}
	require.NoError(t, os.WriteFile(p, []byte(c.of("1", "2", "3")), 0o644))
}

// stands lays out what is there before stead.
func (c chance) stands(r *rig) {
	for range c.IntN(5) {
		name, text := string(c.unit()), c.content()
		switch {
		case c.one(2):
			require.NoError(r.t, os.WriteFile(filepath.Join(r.lib, name), []byte(text), 0o644))
		case c.one(4):
			c.link(r, name, "/dev/null")
		default:
			r.edit(name, text)
		}
	}
	require.NoError(r.t, os.WriteFile(filepath.Join(r.lib, "t@.service"), []byte(c.content()), 0o644))
	if c.one(2) {
		r.edit(string(c.unit())+".d/10-a.conf", "[Service]\nNice=1\n")
	}
	for range c.IntN(3) {
		require.NoError(r.t, os.MkdirAll(filepath.Join(r.etc, "multi-user.target.wants"), 0o755))
		c.link(r, "multi-user.target.wants/"+string(c.unit()), "../"+string(c.unit()))
	}
	_, err := r.fake.Reload(r.t.Context())
	require.NoError(r.t, err)
	for range c.IntN(3) {
		r.fake.Other().Enqueue(r.t.Context(), []unit.JobRequest{{Name: c.unit(), Type: unit.StartJob}})
	}
	r.after(2 * time.Second)
}

func (c chance) link(r *rig, at, to string) {
	p := filepath.Join(r.etc, at)
	if _, err := os.Lstat(p); err != nil {
		require.NoError(r.t, os.Symlink(to, p))
		r.watch.saw(p)
	}
}

// disturbs lets somebody else do something, and reports whether the loop has
// heard of it.
func (c chance) disturbs(r *rig) bool {
	p := filepath.Join(r.etc, string(c.unit()))
	switch c.IntN(5) {
	case 0:
		_ = os.WriteFile(p, []byte(c.content()), 0o600)
	case 1:
		_ = os.Remove(p)
	case 2:
		r.fake.Other().Enqueue(r.t.Context(), []unit.JobRequest{{Name: c.unit(), Type: unit.StopJob}})
	case 3:
		_ = os.Remove(filepath.Join(r.etc, "multi-user.target.wants", string(c.unit())))
	case 4:
		return true
	}
	r.after(time.Second) // no job is on its way
	if c.one(3) {
		return false
	}
	r.fake.Disconnect()
	r.fake.Reconnect() // which makes the loop look at everything
	r.after(2 * time.Minute)
	return true
}

// TestWhatIsForetoldIsWhatIsDone holds what a dry run says against the steps that
// the loop takes when the same is declared.
func TestWhatIsForetoldIsWhatIsDone(t *testing.T) {
	steps := 0
	for seed := range uint64(200) {
		inDryRig(t, func(r *rig, e *ears) {
			c := chance{rand.New(rand.NewPCG(seed, 3)), filepath.Join(filepath.Dir(r.etc), "triggers")}
			require.NoError(t, os.Mkdir(c.triggers, 0o755))
			c.pulls(t)
			c.stands(r)
			now := make(map[string]*shape.Service)
			for _, name := range []string{"a", "b", "c", "d"}[:c.IntN(5)] {
				now[name] = c.service(name)
			}
			r.declare(inOrder(now)...)
			r.after(2 * time.Minute)
			heard := c.disturbs(r)
			if heard && c.one(2) {
				c.pulls(t) // which nobody has heard of
			}

			var declared []*shape.Service
			var withdrawn []string
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				switch {
				case now[name] != nil && c.one(4):
					withdrawn = append(withdrawn, name)
					delete(now, name)
				case c.one(2):
					now[name] = c.service(name)
					declared = append(declared, now[name])
				}
			}
			before := r.state()
			e.take()
			said := r.plan(declared, withdrawn...)
			require.Equal(t, before, r.state(), "seed %d: a dry run changes nothing", seed)
			require.Empty(t, e.take())
			r.declare(inOrder(now)...)
			r.after(2 * time.Minute)
			is := e.take()
			if !heard { // what others do about it is not what was asked about
				asked := make(map[unit.Name]bool)
				for _, p := range said {
					asked[p.Unit] = asked[p.Unit] || !p.Besides
				}
				maps.DeleteFunc(is, func(n unit.Name, _ doing) bool { return !asked[n] })
				said = slices.DeleteFunc(said, func(p plan.Preview) bool { return !asked[p.Unit] })
			}
			for _, n := range is {
				steps += len(n)
			}

			require.Equal(t, is, foretold(said), "seed %d", seed)
			for _, p := range said {
				stood(t, r, p, seed)
			}
		})
	}
	require.Greater(t, steps, 1000, "there was something to foretell")
}

// stood holds how a declaration stands against what was said of it.
func stood(t *testing.T, r *rig, p plan.Preview, seed uint64) {
	t.Helper()
	for _, rep := range r.loop.Reports() {
		if rep.Name != p.Name || rep.Unit != p.Unit {
			continue
		}
		want, why := p.Outcome, p.Reason
		if want == "" {
			want = report.Converged
		}
		require.Equal(t, want, rep.Outcome, "seed %d: %s: %s\n%+v", seed, p.Name, rep.Text, p)
		require.Equal(t, why, rep.Reason, "seed %d: %s: %s", seed, p.Name, rep.Text)
		return
	}
	require.True(t, p.Withdrawn && p.Outcome == "", "seed %d: there is no report of %+v", seed, p)
}

func inOrder(all map[string]*shape.Service) []*shape.Service {
	var out []*shape.Service
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// state is all that a dry run could change.
func (r *rig) state() string {
	memories, manager := r.book.load()
	slices.SortFunc(memories, func(a, b plan.Memory) int { return len(a.Unit) - len(b.Unit) })
	writes, _ := r.book.counts()
	all := fmt.Sprint(len(memories), manager, writes, r.fake.Log(), r.fake.Calls()["Reload"], r.kept())
	err := filepath.Walk(r.etc, func(p string, st os.FileInfo, err error) error {
		all += fmt.Sprintln(p, st.Mode(), st.ModTime(), err)
		return nil
	})
	require.NoError(r.t, err)
	return all
}
