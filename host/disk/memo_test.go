package disk

import (
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/unit"
)

// TestAnswersThatAreKeptAreThoseOfAFreshLook changes a small world at random and
// asks, each time, a Disk that has looked before and one that has not.
func TestAnswersThatAreKeptAreThoseOfAFreshLook(t *testing.T) {
	w := newWorld(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	dirs := []string{etc, "/run/systemd/system", "/usr/lib/systemd/system"}
	names := []string{"web.service", "web-a.service", "nick.service", "app@.service", "app@1.service"}
	things := []string{plain, wanted, plain + "[Install]\nAlias=nick.service\n", plain + "[Install]\nWantedBy=multi-user.target\nAlso=web-a.service\n", "",
		"-> /dev/null", "-> web.service", "-> /usr/lib/systemd/system/web-a.service", "-> app@.service", "-> /srv/far.service"}
	places := []string{etc + "/multi-user.target.wants/web.service", "/usr/lib/systemd/system/x.target.wants/web.service", "/srv/far.service"}
	for _, d := range dirs {
		for _, n := range names {
			places = append(places, d+"/"+n, d+"/"+n+".d/10-a.conf", d+"/"+n+".d/20-b.conf")
		}
		places = append(places, d+"/service.d/10-a.conf", d+"/web-.service.d/30-c.conf")
	}
	var qs []plan.Query
	for _, n := range names {
		s := enabled(service(unit.Name(n), wanted), n != "nick.service")
		if n != "web.service" { // its text is one of those that come to stand there
			s.Content = nil
		}
		qs = append(qs, plan.Query{Unit: unit.Name(n), Service: s, Status: unit.Status{Fragment: etc + "/" + n},
			Memory: plan.Memory{Found: map[string]plan.Entry{etc + "/" + n: absent(), places[0]: absent()}}})
	}
	kept := 0
	for range 2000 {
		p := places[random.IntN(len(places))]
		there, err := os.Lstat(w.at(p))
		if err == nil && there.Mode().IsRegular() && random.IntN(4) > 0 {
			require.NoError(t, os.WriteFile(w.at(p), []byte(things[random.IntN(5)]), 0o644))
		} else {
			require.NoError(t, os.RemoveAll(w.at(p)))
			if random.IntN(3) > 0 {
				w.put(p, things[random.IntN(len(things))])
			}
		}
		some := qs[random.IntN(len(qs)):]
		before := maps.Clone(w.memos)
		got, err := w.Look(t.Context(), some)
		require.NoError(t, err)
		for _, q := range some {
			if m := before[q.Unit]; m != nil && m == w.memos[q.Unit] {
				kept++
			}
		}
		fresh, err := New(w.o)
		require.NoError(t, err)
		want, err := fresh.Look(t.Context(), some)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s changed", p)
		for p, s := range fresh.seen {
			require.Equal(t, s, w.seen[p], "what was seen at %s", p)
		}
	}
	require.Greater(t, kept, 300, "answers were kept")
}

// TestWhatIsDeclaredAsItStandsIsAskedOnce sees that answers are kept at all.
func TestWhatIsDeclaredAsItStandsIsAskedOnce(t *testing.T) {
	w, qs, files := thousand(t, true)
	for range 2 {
		_, err := w.Look(t.Context(), qs)
		require.NoError(t, err)
		require.Len(t, w.memos, 1000)
	}
	m := w.memos[qs[7].Unit]
	again, err := w.Look(t.Context(), qs)
	require.NoError(t, err)
	require.Same(t, m, w.memos[qs[7].Unit])
	require.NoError(t, os.WriteFile(files[0], []byte("[Service]\n"), 0o644))
	now, err := w.Look(t.Context(), qs)
	require.NoError(t, err)
	require.NotEqual(t, again[0], now[0])
	require.Equal(t, again[1:], now[1:])
}
