package disk

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

func citing(paths ...string) *shape.Service {
	s := service("web.service", plain)
	s.Triggers = paths
	return s
}

// cite looks at one trigger.
func (w *world) cite(p string) plan.Cited {
	w.t.Helper()
	return w.look(plan.Query{Unit: "web.service", Service: citing(p)}).Triggers[p]
}

func TestATriggerIsKnownByItsBytes(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/app.toml": "a", "/etc/same.toml": "a", "/etc/link.toml": "-> app.toml", "/etc/gone.toml": "-> nowhere"})
	require.Equal(t, plan.Cited{Digest: fileOf("a").Digest}, w.cite("/etc/app.toml"))
	require.Equal(t, w.cite("/etc/app.toml"), w.cite("/etc/same.toml"))
	require.Equal(t, plan.Cited{Digest: fileOf("a").Digest, Real: "/etc/app.toml"}, w.cite("/etc/link.toml"), "links are followed")
	for _, p := range []string{"/etc/gone.toml", "/etc/never.toml", "/no/folder/x", "/etc/app.toml/x"} {
		require.Equal(t, plan.Cited{Digest: plan.Missing}, w.cite(p), p)
	}
	st, err := os.Stat(w.at("/etc/app.toml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.at("/etc/app.toml"), []byte("b"), 0o600))
	require.NoError(t, os.Chtimes(w.at("/etc/app.toml"), st.ModTime(), st.ModTime()))
	require.Equal(t, fileOf("b").Digest, w.cite("/etc/app.toml").Digest, "whatever its times say")
	require.NotEqual(t, fileOf("").Digest, plan.Missing)
}

func TestATriggerThatIsAFolderIsKnownByTheFilesInIt(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/app.d/1.conf": "a", "/etc/app.d/sub/deep": "x", "/etc/avail/2.conf": "b", "/etc/app.d/2.conf": "-> ../avail/2.conf"})
	require.NoError(t, unix.Mkfifo(w.at("/etc/app.d/fifo"), 0o600))
	last := w.cite("/etc/app.d")
	require.True(t, last.Folder)
	require.Empty(t, last.Trouble)
	for i, change := range []func(){
		func() { w.put("/etc/app.d/3.conf", "c") },
		func() { w.put("/etc/app.d/1.conf", "A") },
		func() { w.put("/etc/avail/2.conf", "B") }, // behind a link
		func() { require.NoError(t, os.Rename(w.at("/etc/app.d/1.conf"), w.at("/etc/app.d/0.conf"))) },
	} {
		change()
		now := w.cite("/etc/app.d")
		require.NotEqual(t, last.Digest, now.Digest, "change %d", i)
		last = now
	}
	w.put("/etc/app.d/sub/deep", "y")
	w.put("/etc/app.d/"+tmpPrefix+"1"+tmpSuffix, "on its way")
	require.Equal(t, last, w.cite("/etc/app.d"), "what lies deeper, and what is on its way, counts for nothing")
	require.NoError(t, os.RemoveAll(w.at("/etc/app.d")))
	require.Equal(t, plan.Cited{Digest: plan.Missing}, w.cite("/etc/app.d"))
}

func TestATriggerThatCannotBeReadIsNamed(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/large": "", "/etc/ring": "-> ring", "/etc/many/": ""})
	require.NoError(t, unix.Mkfifo(w.at("/etc/fifo"), 0o600))
	require.NoError(t, os.Truncate(w.at("/etc/large"), MaxFile+1))
	c := w.cite("/etc/fifo")
	require.Equal(t, plan.Cited{Digest: "other", Trouble: "it is a device, FIFO or socket, which is never opened"}, c)
	c = w.cite("/etc/large")
	require.Contains(t, c.Trouble, "the size alone counts")
	require.NoError(t, os.Truncate(w.at("/etc/large"), MaxFile+2))
	require.NotEqual(t, c.Digest, w.cite("/etc/large").Digest)
	require.NoError(t, os.Truncate(w.at("/etc/large"), MaxFile))
	require.Empty(t, w.cite("/etc/large").Trouble)
	require.Empty(t, w.cite("/etc/ring").Digest, "nobody knows what is there")
	require.Contains(t, w.cite("/etc/ring").Trouble, "it cannot be read")
	for i := range maxEntries + 1 {
		w.put(fmt.Sprintf("/etc/many/%05d", i), "x")
	}
	c = w.cite("/etc/many")
	require.Contains(t, c.Trouble, "it holds more than")
	require.NoError(t, os.Rename(w.at("/etc/many/04096"), w.at("/etc/many/z")))
	require.NotEqual(t, c.Digest, w.cite("/etc/many").Digest, "the names count still")
}

// A look that finds a unit as it was still sees its triggers.
func TestAChangeOfATriggerAloneIsSeen(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/web.service": plain, "/etc/a": "1"})
	s := citing("/etc/a", "/etc/b")
	q := plan.Query{Unit: "web.service", Service: s}
	before := w.look(q)
	require.True(t, before.Equal(w.look(q)))
	w.put("/etc/a", "2")
	require.False(t, before.Equal(w.look(q)))
	require.Equal(t, fileOf("2").Digest, w.look(q).Triggers["/etc/a"].Digest)
	require.Nil(t, w.look(plan.Query{Unit: "web.service"}).Triggers, "of a unit that is given back they are of no interest")
}

// What is not written yet is cited as if it were.
func TestATriggerIsForeseen(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/a": "1", "/etc/b": "1"})
	all, err := w.LookAfter(t.Context(), []plan.Query{{Unit: "web.service", Service: citing("/etc/a", "/etc/b", "/etc/c")}},
		[]plan.Change{put("/etc/a", "2"), remove("/etc/b")})
	require.NoError(t, err)
	require.Equal(t, map[string]plan.Cited{"/etc/a": {Digest: fileOf("2").Digest}, "/etc/b": {Digest: plan.Missing}, "/etc/c": {Digest: plan.Missing}}, all[0].Triggers)
}

func masked(s *shape.Service, on bool) *shape.Service {
	s.Masked = &on
	return s
}

func TestWhatIsDeclaredOfMasksIsTold(t *testing.T) {
	place, runtime, vendor := etc+"/web.service", "/run/systemd/system/web.service", "/usr/lib/systemd/system/web.service"
	null := plan.Entry{Kind: plan.Link, Target: "/dev/null"}
	for name, c := range map[string]struct {
		files   map[string]string
		service *shape.Service
		mask    string
		masks   []string
		at      map[string]plan.Entry
		wants   int
	}{
		"content of a masked unit is kept aside": {map[string]string{place: plain}, masked(service("web.service", wanted), true), "", nil,
			map[string]plan.Entry{place: fileOf(plain)}, 0},
		"masked already": {map[string]string{place: "-> /dev/null"}, masked(service("web.service", wanted), true), place, []string{place},
			map[string]plan.Entry{place: null}, 0},
		"an empty file can be taken away": {map[string]string{place: ""}, masked(&shape.Service{Unit: "web.service"}, false), place, []string{place},
			map[string]plan.Entry{place: fileOf("")}, 0},
		"until the next boot": {map[string]string{runtime: "-> /dev/null"}, masked(&shape.Service{Unit: "web.service"}, false), runtime, []string{runtime},
			map[string]plan.Entry{place: absent(), runtime: null}, 0},
		"a vendor's stays": {map[string]string{vendor: "-> /dev/null"}, masked(&shape.Service{Unit: "web.service"}, false), "/lib/systemd/system/web.service", nil,
			map[string]plan.Entry{place: absent()}, 0},
		"and content comes before it": {map[string]string{vendor: "-> /dev/null"}, masked(service("web.service", plain), false), "", nil,
			map[string]plan.Entry{place: absent()}, 1},
		"of a unit of which nothing is declared of masks": {map[string]string{place: "-> /dev/null"}, service("web.service", plain), place, []string{place},
			map[string]plan.Entry{place: null}, 1},
		"nothing is declared, and it is not masked": {nil, service("web.service", plain), "", nil, map[string]plan.Entry{place: absent()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.files)
			for range 2 { // the second answer may be that of the first
				k := w.look(plan.Query{Unit: "web.service", Service: c.service})
				require.Empty(t, k.Errs)
				require.Equal(t, c.mask, k.Mask)
				require.Equal(t, c.masks, k.Masks)
				require.Equal(t, c.at, k.At)
				require.Len(t, k.Wants, c.wants)
				require.Equal(t, c.service.Masked != nil, k.Place == place)
			}
		})
	}
}

// The links by which a unit is enabled go before it is masked: also those that
// nobody declared.
func TestAMaskedUnitKnowsItsOwnLinks(t *testing.T) {
	link := etc + "/multi-user.target.wants/web.service"
	w := newWorld(t, map[string]string{etc + "/web.service": wanted, link: "-> ../web.service"})
	k := w.look(plan.Query{Unit: "web.service", Service: masked(service("web.service", strings.ReplaceAll(wanted, "multi-user", "x")), true)})
	require.Equal(t, []string{link}, k.OwnLinks)
	require.Empty(t, k.Wants)
}

// A mask hides the section that the links are of.
func TestLinksOfAUnitThatIsMaskedAlreadyAreItsOwn(t *testing.T) {
	const vendor = "/usr/lib/systemd/system"
	link, other := etc+"/multi-user.target.wants/web.service", etc+"/x.target.wants/web.service"
	w := newWorld(t, map[string]string{vendor + "/web.service": wanted, etc + "/web.service": "-> /dev/null",
		link: "-> " + vendor + "/web.service", other: "-> " + vendor + "/web.service"})
	s := service("web.service", strings.ReplaceAll(wanted, "multi-user", "x"))
	require.Equal(t, []string{link, other}, w.look(plan.Query{Unit: "web.service", Service: masked(s, true)}).OwnLinks)
	bare := *s
	bare.Content = nil
	require.Equal(t, []string{link}, w.look(plan.Query{Unit: "web.service", Service: enabled(&bare, false)}).OwnLinks)
}

// Whoever asks for a link in the place of a declared file cannot have both.
func TestALinkInThePlaceOfADeclaredFileIsNotWanted(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/other.service": plain + "[Install]\nAlias=web.service\n"})
	k := w.look(plan.Query{Unit: "web.service", Service: enabled(service("web.service", wanted+"Also=other.service\n"), true)})
	require.Len(t, k.Wants, 2)
	require.Equal(t, etc+"/multi-user.target.wants/web.service", k.Wants[1].Path)
	require.True(t, k.Text.InstallFailed)
	require.Equal(t, "other.service asks for a link "+etc+"/web.service, where a declared file stands", k.Text.InstallErrors[0])
}

func TestWhetherAUnitSaysHowItIsReloaded(t *testing.T) {
	for text, is := range map[string]bool{
		plain:                            false,
		plain + "ExecReload=/bin/true\n": true,
		plain + "ExecReload=/bin/true\nExecReload=\n": false,
		plain + "Type=notify-reload\n":                true,
		"[Unit]\nPropagatesReloadTo=x.service\n":      true,
	} {
		w := newWorld(t, map[string]string{etc + "/web.service": text})
		k := w.look(plan.Query{Unit: "web.service", Status: unit.Status{Fragment: etc + "/web.service"}})
		require.Equal(t, is, k.Text.Reloads, text)
	}
}
