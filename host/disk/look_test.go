package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

func (w *world) look(q plan.Query) plan.Disk {
	w.t.Helper()
	all, err := w.Look(w.t.Context(), []plan.Query{q})
	require.NoError(w.t, err)
	return all[0]
}

// declare looks at one declared unit.
func (w *world) declare(s *shape.Service) plan.Disk {
	return w.look(plan.Query{Unit: s.Unit, Service: s})
}

func absent() plan.Entry { return plan.Entry{Kind: plan.Absent} }

func fileOf(text string) plan.Entry {
	return Declared(&shape.Service{Content: &text}, "", 0, 0)[0].Entry
}

func TestWhatIsDeclaredIsWanted(t *testing.T) {
	w := newWorld(t, nil)
	s := enabled(service("web.service", wanted), true)
	s.DropIns = map[string]string{"20-b.conf": "[Unit]\n", "10-a.conf": "[Service]\nType=oneshot\nRemainAfterExit=Yes\n"}
	d := w.declare(s)
	require.Empty(t, d.Errs)
	require.Equal(t, []plan.Want{
		{Path: etc + "/web.service", Entry: fileOf(wanted), Content: []byte(wanted), Why: "content"},
		{Path: etc + "/web.service.d/10-a.conf", Entry: fileOf(s.DropIns["10-a.conf"]), Content: []byte(s.DropIns["10-a.conf"]), Why: "drop-in"},
		{Path: etc + "/web.service.d/20-b.conf", Entry: fileOf("[Unit]\n"), Content: []byte("[Unit]\n"), Why: "drop-in"},
		{Path: etc + "/multi-user.target.wants/web.service", Entry: plan.Entry{Kind: plan.Link, Target: etc + "/web.service"}, Why: "enabled"},
	}, d.Wants)
	require.Len(t, d.At, 4)
	for p, e := range d.At {
		require.Equal(t, absent(), e, p)
	}
	require.Equal(t, plan.Text{Type: "oneshot", RemainAfter: true, HasInstall: true}, d.Text)
	require.Empty(t, d.Fragment)
	require.Empty(t, d.Loaded)
}

func TestWhatStandsThereIsTold(t *testing.T) {
	w := newWorld(t, map[string]string{
		etc + "/web.service":                                 wanted,
		etc + "/web.service.d/10-a.conf":                     "[Unit]\n",
		etc + "/multi-user.target.wants/web.service":         "-> ../web.service",
		etc + "/other/":                                      "",
		etc + "/elsewhere":                                   "-> /somewhere/else",
		"/usr/lib/systemd/system/web.service":                plain,
		"/usr/lib/systemd/system/x.target.wants/web.service": "-> ../web.service",
	})
	require.NoError(t, os.Chmod(w.at(etc+"/web.service"), 0o755|os.ModeSetuid))
	require.NoError(t, os.Chown(w.at(etc+"/web.service.d/10-a.conf"), 3, 4))
	require.NoError(t, unix.Mkfifo(w.at(etc+"/fifo"), 0o600))
	found := map[string]plan.Entry{etc + "/other": {}, etc + "/elsewhere": {}, etc + "/fifo": {}, etc + "/gone": {}, "/no/such/folder/x": {}, etc + "/web.service/x": {}}
	d := w.look(plan.Query{Unit: "web.service", Service: enabled(service("web.service", wanted), true), Memory: plan.Memory{Found: found,
		Wrote: map[string]plan.Entry{etc + "/web.service.d/10-a.conf": {}}}})
	require.Empty(t, d.Errs)
	setuid := fileOf(wanted)
	setuid.Mode = 0o755 | os.ModeSetuid
	owned := fileOf("[Unit]\n")
	owned.UID, owned.GID = 3, 4
	relative := plan.Entry{Kind: plan.Link, Target: "../web.service"}
	require.Equal(t, map[string]plan.Entry{
		etc + "/web.service":                         setuid,
		etc + "/web.service.d/10-a.conf":             owned,
		etc + "/multi-user.target.wants/web.service": relative,
		etc + "/other":                               {Kind: plan.Dir},
		etc + "/elsewhere":                           {Kind: plan.Link, Target: "/somewhere/else"},
		etc + "/fifo":                                {Kind: plan.Other},
		etc + "/gone":                                absent(),
		"/no/such/folder/x":                          absent(),
		etc + "/web.service/x":                       absent(),
	}, d.At)
	require.Equal(t, relative, d.Wants[1].Entry, "the manager takes a relative link for the one it would make")
	require.Equal(t, etc+"/web.service", d.Fragment)
	require.Equal(t, []string{etc + "/web.service.d/10-a.conf"}, d.DropIns)
}

func TestUnitThatIsGivenBackWantsNothing(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/web.service": wanted})
	d := w.look(plan.Query{Unit: "web.service", Memory: plan.Memory{Found: map[string]plan.Entry{etc + "/web.service": absent()}}})
	require.Empty(t, d.Wants)
	require.Empty(t, d.OwnLinks)
	require.Equal(t, map[string]plan.Entry{etc + "/web.service": fileOf(wanted)}, d.At)
}

func TestEveryDisabledUnitKnowsItsOwnLinks(t *testing.T) {
	files := map[string]string{
		etc + "/multi-user.target.wants/web.service":               "-> /usr/lib/systemd/system/web.service",
		etc + "/by-hand.target.wants/web.service":                  "-> ../web.service",
		etc + "/old.target.wants/web.service":                      "-> ../web.service",
		etc + "/alias.service":                                     "-> web.service",
		etc + "/stolen.service":                                    "-> other.service",
		etc + "/web.service":                                       plain + "[Install]\nWantedBy=old.target\n",
		etc + "/also.socket":                                       "[Socket]\n[Install]\nWantedBy=sockets.target\n",
		etc + "/sockets.target.wants/also.socket":                  "-> ../also.socket",
		"/run/systemd/system/x.target.wants/web.service":           "-> /etc/systemd/system/web.service",
		"/usr/lib/systemd/system/y.target.requires/alias.service":  "-> ../web.service",
		"/usr/lib/systemd/system/y.target.wants/unrelated.service": "-> ../web.service",
	}
	content := wanted + "Alias=alias.service stolen.service\nAlso=also.socket\n"
	w := newWorld(t, files)
	d := w.declare(enabled(service("web.service", content), false))
	require.Equal(t, []string{
		etc + "/alias.service",
		etc + "/multi-user.target.wants/web.service",
		etc + "/old.target.wants/web.service", // by the section that is on disk still
	}, d.OwnLinks)
	for _, p := range d.OwnLinks {
		require.Equal(t, plan.Link, d.At[p].Kind)
	}
	require.Equal(t, []string{"/etc/systemd/system/by-hand.target.wants/web.service", "/lib/systemd/system/y.target.requires/alias.service", "/run/systemd/system/x.target.wants/web.service"}, d.Vendor)
	require.Len(t, d.Wants, 1, "no links are wanted")
	require.True(t, d.Text.HasInstall)

	d = w.declare(service("web.service", content))
	require.Len(t, d.Wants, 1, "enablement is not managed")
	require.Empty(t, d.Vendor)
}

func TestPartnersOfOneBatchSeeEachOther(t *testing.T) {
	w := newWorld(t, nil)
	socket := "[Socket]\nListenStream=/run/x\n[Install]\nWantedBy=sockets.target\n"
	web := enabled(service("web.service", wanted+"Also=web.socket\n"), true)
	all, err := w.Look(t.Context(), []plan.Query{{Unit: "web.service", Service: web}, {Unit: "web.socket", Service: service("web.socket", socket)}})
	require.NoError(t, err)
	var links []string
	for _, want := range all[0].Wants[1:] {
		links = append(links, want.Path)
	}
	require.Equal(t, []string{etc + "/multi-user.target.wants/web.service", etc + "/sockets.target.wants/web.socket"}, links)
	require.Empty(t, all[0].Text.InstallErrors)
}

func TestMask(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		unit    unit.Name
		content bool
		want    string
	}{
		"link":                         {map[string]string{etc + "/a.service": "-> /dev/null"}, "a.service", false, etc + "/a.service"},
		"link, with content":           {map[string]string{etc + "/a.service": "-> /dev/null"}, "a.service", true, etc + "/a.service"},
		"empty file":                   {map[string]string{etc + "/a.service": ""}, "a.service", false, etc + "/a.service"},
		"by the template":              {map[string]string{etc + "/a@.service": "-> /dev/null"}, "a@x.service", false, etc + "/a@.service"},
		"of the instance":              {map[string]string{etc + "/a@.service": plain, etc + "/a@x.service": "-> /dev/null"}, "a@x.service", false, etc + "/a@x.service"},
		"of another instance":          {map[string]string{etc + "/a@.service": plain, etc + "/a@y.service": "-> /dev/null"}, "a@x.service", false, ""},
		"of what it is an alias of":    {map[string]string{etc + "/a.service": "-> b.service", etc + "/b.service": "-> /dev/null"}, "a.service", false, etc + "/b.service"},
		"until reboot":                 {map[string]string{"/run/systemd/system/a.service": "-> /dev/null", "/usr/lib/systemd/system/a.service": plain}, "a.service", false, "/run/systemd/system/a.service"},
		"until reboot, content wins":   {map[string]string{"/run/systemd/system/a.service": "-> /dev/null"}, "a.service", true, ""},
		"until reboot, file wins":      {map[string]string{"/run/systemd/system/a.service": "-> /dev/null", etc + "/a.service": plain}, "a.service", false, ""},
		"above, content loses":         {map[string]string{"/etc/systemd/system.control/a.service": "-> /dev/null"}, "a.service", true, "/etc/systemd/system.control/a.service"},
		"none":                         {map[string]string{etc + "/a.service": plain}, "a.service", false, ""},
		"a link elsewhere is no mask":  {map[string]string{etc + "/a.service": "-> /opt/a.service", "/opt/a.service": plain}, "a.service", false, ""},
		"a link to an empty file is":   {map[string]string{etc + "/a.service": "-> /opt/a.service", "/opt/a.service": ""}, "a.service", false, etc + "/a.service"},
		"a link to nothing is no mask": {map[string]string{etc + "/a.service": "-> /opt/a.service"}, "a.service", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.files)
			q := plan.Query{Unit: c.unit, Service: &shape.Service{Unit: c.unit}}
			if c.content {
				q.Service = service(c.unit, plain)
			}
			d := w.look(q)
			require.Equal(t, c.want, d.Mask)
			require.Empty(t, d.Errs)
		})
	}
}

func TestTextIsThatOfWhatWins(t *testing.T) {
	w := newWorld(t, map[string]string{
		etc + "/a.service":                        "[Service]\nType=simple\n",
		etc + "/a.service.d/10.conf":              "[Service]\nType=forking\nPIDFile=/run/old\n",
		"/run/systemd/system/a.service.d/20.conf": "[Unit]\nRefuseManualStart=on\nRefuseManualStop=maybe\n",
		"/etc/systemd/system.control/b.service":   "[Service]\nType=idle\n",
		"/run/systemd/generator/c.service":        plain + "[Install]\nWantedBy=x.target\n",
		"/run/systemd/transient/d.service":        plain,
		"/usr/lib/systemd/system/e.service":       wanted,
	})
	s := service("a.service", "[Service]\nType=notify\n")
	s.DropIns = map[string]string{"10.conf": "[Service]\nPIDFile=/run/new\n"}
	require.Equal(t, plan.Text{Type: "notify", PIDFile: "/run/new", RefuseStart: true}, w.declare(s).Text)
	require.Equal(t, plan.Text{Type: "idle"}, w.declare(service("b.service", plain)).Text, "another file wins over the declared one")
	c := w.declare(enabled(&shape.Service{Unit: "c.service"}, true))
	require.Equal(t, plan.Text{Kind: plan.Generated}, c.Text)
	require.Empty(t, c.Wants)
	require.Equal(t, plan.Transient, w.declare(&shape.Service{Unit: "d.service"}).Text.Kind)
	e := w.declare(enabled(&shape.Service{Unit: "e.service"}, true))
	require.True(t, e.Text.HasInstall)
	require.Equal(t, "/lib/systemd/system/e.service", e.Wants[0].Entry.Target)
}

func TestInstallThatCannotBeFollowedIsTold(t *testing.T) {
	w := newWorld(t, nil)
	d := w.declare(enabled(service("a.service", plain+"[Install]\nWantedBy=%Z.target\nAlias=a.socket\n"), true))
	require.True(t, d.Text.HasInstall)
	require.NotEmpty(t, d.Text.InstallErrors)
	require.Contains(t, strings.Join(d.Text.InstallErrors, "\n"), "a.socket")
}

func TestLoadedIsTheBytesOfWhatTheManagerNames(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/a.service": plain, etc + "/a.service.d/10.conf": "[Unit]\n", "/opt/a.service": plain})
	st := unit.Status{Fragment: etc + "/a.service", DropIns: []string{etc + "/a.service.d/10.conf"}}
	loaded := func(st unit.Status) string { return w.look(plan.Query{Unit: "a.service", Status: st}).Loaded }
	first := loaded(st)
	require.NotEmpty(t, first)
	require.Equal(t, first, loaded(st))
	require.Empty(t, loaded(unit.Status{}))
	require.NotEqual(t, first, loaded(unit.Status{Fragment: st.Fragment}), "without the drop-in")

	full := w.at(etc + "/a.service")
	before, err := os.Stat(full)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(full, []byte(strings.Replace(plain, "1000", "2000", 1)), 0o644))
	require.NoError(t, os.Chtimes(full, before.ModTime(), before.ModTime()))
	second := loaded(st)
	require.NotEqual(t, first, second, "same size, same times, other bytes")

	require.NoError(t, os.Remove(full))
	require.NotEqual(t, second, loaded(st), "gone")
	require.NoError(t, os.Symlink("/opt/a.service", full))
	require.Equal(t, first, loaded(st), "links are read through")
}

func TestFileThatIsTooLargeIsAnError(t *testing.T) {
	w := newWorld(t, nil)
	full := w.at(etc + "/a.service")
	require.NoError(t, os.WriteFile(full, nil, 0o644))
	require.NoError(t, os.Truncate(full, MaxFile+1))
	d := w.declare(service("a.service", plain))
	require.Len(t, d.Errs, 1)
	require.ErrorContains(t, d.Errs[0], "read: "+etc+"/a.service: it has 16777217 bytes")
	require.Equal(t, plan.File, d.At[etc+"/a.service"].Kind)
	_, _, err := w.Snapshot(etc + "/a.service")
	require.Equal(t, fault.Failed, fault.ClassOf(err))

	require.NoError(t, os.Truncate(full, MaxFile))
	e, data, err := w.Snapshot(etc + "/a.service")
	require.NoError(t, err)
	require.Len(t, data, MaxFile)
	require.Equal(t, e, w.declare(service("a.service", plain)).At[etc+"/a.service"])
}

func TestLinksDoNotLeadOut(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.service")
	require.NoError(t, os.WriteFile(secret, []byte("[Service]\nType=idle\n"), 0o644))
	w := newWorld(t, map[string]string{
		etc + "/a.service":   "-> " + secret,
		etc + "/b.service":   "-> " + strings.Repeat("../", 30) + secret[1:],
		etc + "/c.service.d": "-> " + filepath.Dir(secret),
	})
	for _, n := range []unit.Name{"a.service", "b.service", "c.service"} {
		d := w.declare(&shape.Service{Unit: n})
		require.Empty(t, d.Text.Type)
		require.Empty(t, d.DropIns)
	}
}

func TestLookEndsWithItsContext(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Look(ctx, []plan.Query{{Unit: "a.service"}})
	require.Equal(t, fault.Canceled, fault.ClassOf(err))
}

func TestConfigDirMustBeSearched(t *testing.T) {
	_, err := New(Options{UnitPath: []string{"/usr/lib/systemd/system"}})
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

func TestManyDropInFoldersNeedFewDescriptors(t *testing.T) {
	w := newWorld(t, nil)
	var qs []plan.Query
	for i := range 300 {
		n := unit.Name(fmt.Sprintf("u%d.service", i))
		w.put(etc+"/"+string(n)+".d/10.conf", "[Unit]\n")
		qs = append(qs, plan.Query{Unit: n, Service: service(n, plain)})
	}
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: was.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
	all, err := w.Look(t.Context(), qs)
	require.NoError(t, err)
	for _, d := range all {
		require.Empty(t, d.Errs)
		require.Empty(t, d.DropIns) // of a unit without a fragment
	}
}

// Of drop-ins of one name systemd reads the first, and that may not be the
// declared one.
func TestADropInThatIsNotReadIsTold(t *testing.T) {
	control := "/etc/systemd/system.control/web.service.d/10-a.conf"
	for name, tc := range map[string]struct {
		files map[string]string
		want  map[string]string
	}{
		"one before it":           {map[string]string{control: "[Unit]\n"}, map[string]string{etc + "/web.service.d/10-a.conf": control}},
		"one after it":            {map[string]string{"/usr/lib/systemd/system/web.service.d/10-a.conf": "[Unit]\n"}, nil},
		"its folder is elsewhere": {map[string]string{"/opt/d/20-b.conf": "[Unit]\n", etc + "/web.service.d": "-> /opt/d"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.files)
			s := service("web.service", wanted)
			s.DropIns = map[string]string{"10-a.conf": "[Unit]\n"}
			require.NoError(t, os.WriteFile(w.at(etc+"/web.service"), []byte(wanted), 0o644))
			require.Empty(t, w.declare(s).Shadowed, "it is not there yet")
			put := plan.Change{Path: etc + "/web.service.d/10-a.conf", Entry: fileOf("[Unit]\n"), Content: []byte("[Unit]\n")}
			require.NoError(t, w.Apply(t.Context(), []plan.Change{put}).Errs[0])
			require.Equal(t, tc.want, w.declare(s).Shadowed)
		})
	}
}

// The manager opens a FIFO among a unit's files, and the machine stands still.
func TestAFIFOAmongItsFilesIsTold(t *testing.T) {
	at := etc + "/web.service.d/50-x.conf"
	w := newWorld(t, map[string]string{etc + "/web.service.d/": "", etc + "/deaf.service": wanted, etc + "/deaf.service.d/": ""})
	require.NoError(t, unix.Mkfifo(w.at(at), 0o600))
	errs := w.declare(service("web.service", wanted)).Errs
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], at)
	require.Empty(t, w.declare(service("deaf.service", wanted)).Errs)
}

// A link to nothing in a folder that comes first takes the dependency back.
func TestADependencyThatIsMaskedIsTold(t *testing.T) {
	mask := "/etc/systemd/system.control/multi-user.target.wants/web.service"
	at := etc + "/multi-user.target.wants/web.service"
	for target, want := range map[string]map[string]string{"/dev/null": {at: mask}, etc + "/web.service": nil} {
		w := newWorld(t, map[string]string{etc + "/web.service": wanted, at: "-> " + etc + "/web.service", mask: "-> " + target})
		require.Equal(t, want, w.declare(enabled(service("web.service", wanted), true)).Shadowed)
	}
}
