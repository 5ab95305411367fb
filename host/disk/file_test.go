package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

const passwd = "root:x:0:0::/root:/bin/sh\nwww:x:33:34::/:/bin/false\n"

// conf declares a file.
func conf(path, content string) *shape.Declaration {
	return &shape.Declaration{Name: "file:conf", Scope: unit.System, Content: &content, File: &shape.File{Path: path, Mode: 0o640, Owner: "root"}}
}

// fileAt looks at a declared file.
func (w *world) fileAt(s *shape.Declaration) plan.Disk {
	w.t.Helper()
	return w.look(plan.Query{Unit: s.Object(), Service: s})
}

// puts makes what a look says is wanted stand there.
func (w *world) puts(k plan.Disk) plan.Applied {
	var all []plan.Change
	for _, want := range k.Wants {
		all = append(all, plan.Change{Path: want.Path, Entry: want.Entry, Content: want.Content})
	}
	return w.Apply(w.t.Context(), all)
}

func TestADeclaredFileIsWrittenWithItsModeAndOwner(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/passwd": passwd, "/etc/group": "root:x:0:\nadm:x:4:www\n"})
	s := conf("/etc/app/deep/app.toml", "a")
	s.File.Owner, s.File.Group = "www", "adm"
	k := w.fileAt(s)
	require.Empty(t, k.Errs)
	require.Equal(t, plan.Denial{}, k.Denied)
	require.Equal(t, "/etc/app/deep/app.toml", k.Real)
	require.Equal(t, plan.Absent, k.At[k.Real].Kind)
	require.Equal(t, []string{"/etc/app", "/etc/app/deep"}, w.Missing([]string{k.Real}))
	require.Equal(t, []error{nil}, w.puts(k).Errs)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(w.at(k.Real), &st))
	require.Equal(t, []uint32{33, 4, 0o100640}, []uint32{st.Uid, st.Gid, st.Mode})
	k = w.fileAt(s)
	require.Equal(t, k.Wants[0].Entry, k.At[k.Real], "it stands as declared")
	require.NoError(t, os.Chmod(w.at(k.Real), 0o666))
	k = w.fileAt(s)
	require.NotEqual(t, k.Wants[0].Entry, k.At[k.Real], "another mode is a difference")
	s.File.Group = ""
	require.Equal(t, 34, w.fileAt(s).Wants[0].Entry.GID, "the owner's first group")
}

func TestADeclaredFileIsRefusedWithRuleAndCure(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/passwd": passwd, "/etc/group": "root:x:0:\n", "/etc/folder/x": "", "/etc/file": "a",
		"/etc/units": "-> systemd/system", "/etc/mesh": "-> stead/declarations", "/etc/stead/declarations/": "", "/srv/www/": "", "/srv/www/out": "-> ../../etc", "/srv/www/in/": ""})
	require.NoError(t, unix.Mkfifo(w.at("/etc/fifo"), 0o600))
	require.NoError(t, unix.Mknod(w.at("/etc/device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	require.NoError(t, os.Chown(w.at("/srv/www"), 33, 34))
	someone, nobody := conf("/etc/a", ""), conf("/etc/a", "")
	someone.File.Owner, nobody.File.Group = "opal", "wheel"
	for name, c := range map[string]struct {
		s    *shape.Declaration
		why  any
		text string
	}{
		"a folder":             {conf("/etc/folder", ""), plan.DeniedTarget, "/etc/folder is a folder, which no file replaces"},
		"a FIFO":               {conf("/etc/fifo", ""), plan.DeniedTarget, "/etc/fifo is a device, FIFO or socket, which no file replaces"},
		"a device":             {conf("/etc/device", ""), plan.DeniedTarget, "/etc/device is a device, FIFO or socket, which no file replaces"},
		"below a file":         {conf("/etc/file/x", ""), plan.DeniedTarget, "/etc/file is no folder"},
		"no owner":             {someone, plan.DeniedLogin, "this node has no login opal"},
		"no group":             {nobody, plan.DeniedLogin, "this node has no group wheel"},
		"units behind a link":  {conf("/etc/units/a.service", ""), plan.DeniedProtected, "/etc/units/a.service leads to /etc/systemd/system/a.service, which is protected: systemd reads units there"},
		"stead behind a link":  {conf("/etc/mesh/a.yaml", ""), plan.DeniedProtected, "/etc/mesh/a.yaml leads to /etc/stead/declarations/a.yaml, which is protected: it is stead's own"},
		"a stranger's link":    {conf("/srv/www/out/a", ""), plan.DeniedTarget, "/srv/www/out is a link, in the folder /srv/www that others than root can write to: it is not followed"},
		"a link to a stranger": {conf("/etc/units/../../srv/www/out/a", ""), plan.DeniedTarget, "/srv/www/out is a link, in the folder /srv/www that others than root can write to: it is not followed"},
	} {
		k := w.fileAt(c.s)
		require.Empty(t, k.Errs, name)
		require.EqualValues(t, c.why, k.Denied.Reason, name)
		require.Equal(t, c.text, k.Denied.Text, name)
		require.NotEmpty(t, k.Denied.Hint, name)
	}
	require.Equal(t, plan.Denial{}, w.fileAt(conf("/srv/www/in/a", "")).Denied, "a folder of somebody's is no harm")
}

func TestLinksOfRootAreFollowed(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/alt": "-> ../srv/./conf", "/srv/conf/": "", "/etc/a.conf": "-> nowhere", "/etc/round": "-> round"})
	k := w.fileAt(conf("/etc/alt/b.conf", "b"))
	require.Equal(t, "/srv/conf/b.conf", k.Real)
	require.Equal(t, []error{nil}, w.puts(k).Errs)
	require.Equal(t, "b", w.read("/srv/conf/b.conf"))
	k = w.fileAt(conf("/etc/a.conf", "a"))
	require.Equal(t, plan.Entry{Kind: plan.Link, Target: "nowhere"}, k.At["/etc/a.conf"], "the last one is replaced")
	require.Equal(t, []error{nil}, w.puts(k).Errs)
	require.Equal(t, "a", w.read("/etc/a.conf"))
	k = w.fileAt(conf("/etc/round/a", "a"))
	require.Empty(t, k.Errs)
	require.Equal(t, plan.DeniedTarget, k.Denied.Reason)
}

// Between the look and the write somebody puts a link in the place of a folder.
func TestAWayThatIsChangedIsNotGone(t *testing.T) {
	w := newWorld(t, map[string]string{"/srv/www/in/": "", "/etc/app/": ""})
	require.NoError(t, os.Chown(w.at("/srv/www"), 33, 34))
	k := w.fileAt(conf("/srv/www/in/a", "a"))
	require.NoError(t, os.Remove(w.at("/srv/www/in")))
	require.NoError(t, os.Symlink("/etc/app", w.at("/srv/www/in")))
	require.ErrorIs(t, w.puts(k).Errs[0], unix.ELOOP)
	require.Empty(t, w.list("/etc/app"))
	_, _, err := w.Snapshot("/srv/www/in/a")
	require.ErrorIs(t, err, unix.ELOOP)
	require.Empty(t, w.RemoveDirs([]string{"/srv/www/in/x"}))
}

func TestAFileOfAnAccountStandsBelowItsHome(t *testing.T) {
	root := t.TempDir()
	for p, text := range map[string]string{"/data/opal/.config/": "", "/users": "-> data", "/data/opal/out": "-> ../../etc", "/etc/": "", "/usr/units/": "", "/data/opal/.config/u": "-> systemd/user", "/data/opal/.config/systemd/user/": ""} {
		require.NoError(t, lay(root, p, text))
	}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "data"), func(p string, _ os.DirEntry, err error) error {
		return os.Lchown(p, 1000, 1000)
	}))
	d, err := New(Options{Root: root, UnitPath: []string{"/usr/units"}, ConfigDir: "/usr/units", UID: 1000, GID: 1000, Home: "/users/opal"})
	require.NoError(t, err)
	w := &world{Disk: d, t: t, root: root}
	mine := func(p string) plan.Disk {
		s := conf(p, "a")
		s.Scope, s.File.Owner = unit.User, ""
		return w.fileAt(s)
	}
	k := mine("~/.config/app/a.toml")
	require.Equal(t, "/data/opal/.config/app/a.toml", k.Real)
	require.Equal(t, 1000, k.Wants[0].Entry.UID)
	require.Equal(t, []error{nil}, w.puts(k).Errs)
	require.Equal(t, "a", w.read(k.Real))
	require.Equal(t, "~/out/a leads to /etc/a, which is protected: it is not below the account's home", mine("~/out/a").Denied.Text)
	require.Equal(t, plan.DeniedProtected, mine("~/.config/u/a.service").Denied.Reason)
}

func TestACitedFileIsKnownByItsPath(t *testing.T) {
	w := newWorld(t, map[string]string{"/etc/app.toml": "a"})
	q := plan.Query{Unit: "web.service", Service: citing("file:app", "file:none", "/etc/app.toml"), Files: map[string]string{"file:app": "/etc/app.toml"}}
	k := w.look(q)
	require.Equal(t, plan.Cited{Digest: fileOf("a").Digest, Path: "/etc/app.toml"}, k.Triggers["file:app"])
	require.Equal(t, plan.Cited{Trouble: "no file of that name is declared on this node"}, k.Triggers["file:none"])
	w.put("/etc/app.toml", "b")
	require.Equal(t, fileOf("b").Digest, w.look(q).Triggers["file:app"].Digest, "also where a look is remembered")
	require.Equal(t, fileOf("a").Digest, k.Triggers["/etc/app.toml"].Digest)
	require.True(t, k.Cites(map[string]bool{"/etc/app.toml": true}))
	require.False(t, k.Cites(map[string]bool{"/etc/other": true}))
	after, err := w.LookAfter(t.Context(), []plan.Query{q}, []plan.Change{{Path: "/etc/app.toml", Entry: fileOf("c"), Content: []byte("c")}})
	require.NoError(t, err)
	require.Equal(t, fileOf("c").Digest, after[0].Triggers["file:app"].Digest)
}
