package systemdtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// patience is how long a case waits for anything.
const patience = 20 * time.Second

// kit is what a case works with: the environment, and words to use it.
type kit struct {
	Env
	t    *testing.T
	ctx  context.Context
	ends map[uint32]unit.JobEnd
	all  int // how often Changes.All was drained
	seen map[unit.Name]bool
	used []unit.Name // to be stopped at the end
}

func newKit(t *testing.T, env Env) *kit {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	k := &kit{Env: env, t: t, ctx: ctx, ends: map[uint32]unit.JobEnd{}, seen: map[unit.Name]bool{}}
	t.Cleanup(func() {
		k.clean()
		cancel()
	})
	return k
}

// clean stops and removes what the case made.
func (k *kit) clean() {
	k.waitConnected()
	var stops []unit.JobRequest
	for _, n := range k.used {
		stops = append(stops, unit.JobRequest{Name: n, Type: unit.StopJob})
	}
	for _, q := range k.Manager.Enqueue(k.ctx, stops) {
		if q.Err == nil {
			k.end(q.ID)
		}
	}
	entries, err := os.ReadDir(k.Dir)
	require.NoError(k.t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "ct-") {
			require.NoError(k.t, os.RemoveAll(filepath.Join(k.Dir, e.Name())))
		}
	}
	for _, dir := range []string{"multi-user.target.wants", "multi-user.target.requires"} {
		require.NoError(k.t, os.RemoveAll(k.at(dir)))
	}
	k.reload()
	k.Manager.ResetFailed(k.ctx, k.used)
	k.drain()
}

// write puts a file below Dir; its unit is stopped at the end.
func (k *kit) write(name, text string) {
	k.t.Helper()
	path := k.at(name)
	k.folder(filepath.Dir(path))
	_ = os.Remove(path) // a mask is replaced, not written through
	require.NoError(k.t, os.WriteFile(path, []byte(k.here(text)), 0o644))
	if n, err := unit.ParseName(name); err == nil && !n.IsTemplate() {
		k.used = append(k.used, n)
	}
}

// link puts a symbolic link below Dir.
func (k *kit) link(target, name string) {
	k.t.Helper()
	path := k.at(name)
	k.folder(filepath.Dir(path))
	_ = os.Remove(path)
	require.NoError(k.t, os.Symlink(target, path))
}

// at is a path below Dir.
func (k *kit) at(name string) string { return filepath.Join(k.Dir, k.here(name)) }

// here is a text with the target that this manager has.
func (k *kit) here(text string) string {
	if k.Target == "" {
		return text
	}
	return strings.ReplaceAll(text, "multi-user.target", k.Target)
}

// folder makes a folder that belongs to whom Dir belongs to.
func (k *kit) folder(path string) {
	k.t.Helper()
	require.NoError(k.t, os.MkdirAll(path, 0o755))
	if info, err := os.Stat(k.Dir); err == nil {
		of := info.Sys().(*syscall.Stat_t)
		require.NoError(k.t, os.Chown(path, int(of.Uid), int(of.Gid)))
	}
}

// refer makes multi-user.target want the unit, so that it stays loaded.
func (k *kit) refer(name string) {
	k.t.Helper()
	k.link(filepath.Join(k.Dir, name), "multi-user.target.wants/"+name)
}

func (k *kit) reload() {
	k.t.Helper()
	_, err := k.Manager.Reload(k.ctx)
	require.NoError(k.t, err)
}

func (k *kit) observe(names ...unit.Name) []unit.Status {
	k.t.Helper()
	got, err := k.Manager.Observe(k.ctx, names)
	require.NoError(k.t, err)
	require.Len(k.t, got, len(names))
	for i, s := range got {
		require.Equal(k.t, names[i], s.Asked)
	}
	return got
}

func (k *kit) look(name unit.Name) unit.Status {
	k.t.Helper()
	return k.observe(name)[0]
}

// job queues a job that must be accepted and returns its id.
func (k *kit) job(kind unit.JobType, name unit.Name) uint32 {
	k.t.Helper()
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: name, Type: kind}})
	require.Len(k.t, q, 1)
	require.NoError(k.t, q[0].Err)
	require.NotZero(k.t, q[0].ID)
	return q[0].ID
}

// run queues a job and returns how it ended.
func (k *kit) run(kind unit.JobType, name unit.Name) unit.JobResult {
	k.t.Helper()
	return k.end(k.job(kind, name)).Result
}

// drain takes in what happened so far.
func (k *kit) drain() {
	ch := k.Manager.Drain()
	if ch.All {
		k.all++
		require.Empty(k.t, ch.Units, "units are listed beside All")
	}
	for _, n := range ch.Units {
		k.seen[n] = true
	}
	for _, j := range ch.Jobs {
		k.ends[j.ID] = j
	}
}

// fresh forgets what was drained.
func (k *kit) fresh() {
	k.drain()
	k.all = 0
	clear(k.seen)
}

// until waits for wakes until ok says that it has seen enough. It looks at
// nothing by itself: what is not announced is never seen.
func (k *kit) until(what string, ok func() bool) {
	k.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		k.drain()
		if ok() {
			return
		}
		select {
		case <-k.Manager.Wake():
		case <-deadline.C:
			k.t.Fatalf("no wake that shows: %s", what)
		}
	}
}

// end waits for the end of a job.
func (k *kit) end(id uint32) unit.JobEnd {
	k.t.Helper()
	k.until("the end of a job", func() bool { _, ok := k.ends[id]; return ok })
	return k.ends[id]
}

// becomes waits until the unit is seen to be as ok says.
func (k *kit) becomes(name unit.Name, what string, ok func(unit.Status) bool) unit.Status {
	k.t.Helper()
	var s unit.Status
	k.until(string(name)+" "+what, func() bool {
		s = k.look(name)
		return ok(s)
	})
	return s
}

// named waits until a change names the unit: a look can be ahead of it.
func (k *kit) named(name unit.Name) {
	k.t.Helper()
	k.until("a change of "+string(name), func() bool { return k.seen[name] })
}

func (k *kit) waitConnected() {
	k.t.Helper()
	k.until("a connection", k.Manager.Connected)
}

// quiet requires that nothing wakes for a second.
func (k *kit) quiet() {
	k.t.Helper()
	select {
	case <-k.Manager.Wake():
		k.t.Fatalf("a wake though nothing happened: %+v", k.Manager.Drain())
	case <-time.After(time.Second):
	}
}

func inactive(s unit.Status) bool { return s.Active == unit.Inactive }
func failed(s unit.Status) bool   { return s.Active == unit.FailedState }

// version is the number of the manager's version.
func (k *kit) version() (number int) {
	k.t.Helper()
	v, err := k.Manager.Version(k.ctx)
	require.NoError(k.t, err)
	_, err = fmt.Sscanf(v, "%d", &number)
	require.NoError(k.t, err, v)
	return number
}
