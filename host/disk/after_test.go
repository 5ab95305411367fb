package disk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// guess makes states of a disk, declarations and changes out of a few names, so
// that they meet: links to each other, masks, drop-ins, files in folders that
// are not there.
type guess struct{ *rand.Rand }

func (g guess) of(all ...string) string { return all[g.IntN(len(all))] }

func (g guess) unit() string {
	return g.of("a.service", "b.service", "c.socket", "t@.service", "t@x.service", "a-b.service")
}

func (g guess) text() string {
	return g.of("", plain, wanted, plain+"[Install]\nAlias=b.service\n", plain+"[Install]\nWantedBy=x.target\nAlso=c.socket\n",
		"[Service]\nType=oneshot\n", "[Socket]\nListenStream=/run/x\n[Install]\nWantedBy=sockets.target\n", "[Unit]\nConflicts=b.service\n")
}

func (g guess) path() string {
	in := g.of(etc, etc, etc, "/lib/systemd/system", "/run/systemd/system")
	switch g.IntN(4) {
	case 0:
		return in + "/" + g.unit() + ".d/" + g.of("10-a.conf", "20-b.conf")
	case 1:
		return in + "/" + g.of("x.target", "multi-user.target") + g.of(".wants", ".requires") + "/" + g.unit()
	}
	return in + "/" + g.unit()
}

// entry is a file, or a link in the writing of newWorld.
func (g guess) entry(p string) string {
	links := strings.HasSuffix(path.Dir(p), ".wants") || strings.HasSuffix(path.Dir(p), ".requires")
	if g.IntN(4) == 0 || links {
		return "-> " + g.of("/dev/null", etc+"/"+g.unit(), "../"+g.unit(), g.unit(), "/lib/systemd/system/"+g.unit(), "/nowhere/"+g.unit())
	}
	return g.text()
}

func (g guess) service() *shape.Service {
	s := service(unit.Name(g.unit()), g.text())
	switch g.IntN(3) {
	case 0:
		s.Content = nil
	case 1:
		s.DropIns = map[string]string{g.of("10-a.conf", "20-b.conf"): g.text()}
	}
	if on := g.IntN(3); on < 2 {
		enabled(s, on == 0)
	}
	return s
}

func (g guess) change() plan.Change {
	p := strings.Replace(g.path(), "/lib/", "/usr/lib/", 1)
	c := plan.Change{Path: p, Entry: absent()}
	switch what := g.entry(p); {
	case g.IntN(3) == 0:
	case strings.HasPrefix(what, "-> "):
		c.Entry = plan.Entry{Kind: plan.Link, Target: what[3:]}
	default:
		c.Entry, c.Content = fileOf(what), []byte(what)
	}
	return c
}

func TestWhatIsForeseenIsWhatALookFindsAfterwards(t *testing.T) {
	for seed := range uint64(400) {
		g := guess{rand.New(rand.NewPCG(seed, 1))}
		files := make(map[string]string)
		for range g.IntN(8) {
			p := g.path()
			files[strings.Replace(p, "/lib/", "/usr/lib/", 1)] = g.entry(p)
		}
		w := newWorld(t, files)
		var qs []plan.Query
		asked := make(map[unit.Name]bool)
		for range 4 {
			q := plan.Query{Service: g.service()}
			if q.Unit = q.Service.Unit; asked[q.Unit] {
				continue
			}
			asked[q.Unit] = true
			if g.IntN(4) == 0 {
				q.Service, q.Memory.Found = nil, map[string]plan.Entry{g.path(): absent()}
			}
			q.Status = unit.Status{Asked: q.Unit, Fragment: g.of("", etc+"/"+string(q.Unit)), DropIns: []string{g.path()}}
			qs = append(qs, q)
		}
		changes := make(map[string]plan.Change)
		for range g.IntN(6) {
			c := g.change()
			changes[c.Path] = c
		}
		var todo []plan.Change
		for _, c := range changes {
			todo = append(todo, c)
		}
		before := tell(t, w)
		foreseen, err := w.LookAfter(t.Context(), qs, todo)
		require.NoError(t, err)
		require.Equal(t, before, tell(t, w), "nothing is changed")
		again, err := w.LookAfter(t.Context(), qs, nil)
		require.NoError(t, err)
		now, err := w.Look(t.Context(), qs)
		require.NoError(t, err)
		require.Equal(t, now, again, "seed %d: with no change it is a look", seed)
		for i, err := range w.Apply(t.Context(), todo).Errs {
			require.NoError(t, err, "seed %d: %v", seed, todo[i])
		}
		found, err := w.Look(t.Context(), qs)
		require.NoError(t, err)
		for i := range found {
			require.Equal(t, found[i], foreseen[i], "seed %d: %s\nof %v\nafter %v", seed, qs[i].Unit, files, todo)
		}
	}
}

// tell lists all that stands below the root.
func tell(t *testing.T, w *world) string {
	var all strings.Builder
	var list func(p string)
	list = func(p string) {
		entries, err := os.ReadDir(w.at(p))
		require.NoError(t, err)
		for _, e := range entries {
			q := p + "/" + e.Name()
			data, _ := os.ReadFile(w.at(q))
			to, _ := os.Readlink(w.at(q))
			fmt.Fprintf(&all, "%s %s %q %q\n", e.Type(), q, to, data)
			if e.IsDir() {
				list(q)
			}
		}
	}
	list("")
	return all.String()
}

func TestWhatWasForeseenCountsForNothingSeen(t *testing.T) {
	p := etc + "/web.service"
	w := newWorld(t, map[string]string{p: wanted})
	s := service("web.service", plain)
	q := plan.Query{Unit: s.Unit, Service: s}
	w.look(q)
	w.put(p, "# an edit\n")
	_, err := w.LookAfter(t.Context(), []plan.Query{q}, nil)
	require.NoError(t, err)
	_, data, err := w.Peek(p)
	require.NoError(t, err)
	require.Equal(t, "# an edit\n", string(data))
	applied := w.Apply(t.Context(), []plan.Change{{Path: p, Entry: fileOf(plain), Content: []byte(plain)}})
	require.Equal(t, w.KeptAs(p, fileOf("# an edit\n")), applied.Kept[p], "a Look did not see the edit, so it is kept")
}
