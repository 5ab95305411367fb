package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

func TestReopenedLedgerHoldsWhatWasCommitted(t *testing.T) {
	path := newPath(t)
	l := openAt(t, path)
	web := accept.Identity{UID: "u1", Name: "web", Generation: 2, Digest: "abc", Body: []byte(`{"name":"web"}`)}
	meshed := accept.Identity{UID: "u2", Name: "meshed", Generation: 9, Epoch: "e", Kept: true}
	held := &accept.Held{Index: []byte("{}"), Signature: []byte("s"), At: time.Unix(7, 0).UTC()}
	a, b := memory("a.service", "old a"), memory("b.service", "")
	require.NoError(t, l.Commit(Tx{Put: []accept.Identity{web, meshed, {Name: "brief"}}, Held: held, Record: plan.Record{Scope: unit.System,
		Put: []plan.Memory{a, b, memory("c.service", "")}, Blobs: blobs("old a"),
		Manager: &plan.Manager{OwesReload: true, Boot: "boot", Made: []string{"/etc/systemd/system/a.service.d"}}}}))
	require.NoError(t, l.Commit(Tx{Delete: []string{"brief"}}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Delete: []unit.Name{"c.service", "never.service"}}))
	require.NoError(t, l.Close())

	l = openAt(t, path)
	s, err := l.Load()
	require.NoError(t, err)
	want := State{
		Declarations: map[string]accept.Identity{"web": web, "meshed": meshed},
		Held:         held,
		Units:        map[Key]plan.Memory{{unit.System, "a.service"}: a, {unit.System, "b.service"}: b},
		Managers:     map[unit.Scope]plan.Manager{unit.System: {OwesReload: true, Boot: "boot", Made: []string{"/etc/systemd/system/a.service.d"}}},
	}
	require.Empty(t, cmp.Diff(want, s))
	require.Equal(t, []plan.Memory{a, b}, s.Memories(unit.System))
	require.Empty(t, s.Memories(unit.User))
	data, err := l.Blob(sum([]byte("old a")))
	require.NoError(t, err)
	require.Equal(t, "old a", string(data))
}

// Loop and account write of one manager, and neither undoes what the other wrote.
func TestTheAccountOfAManagerIsWrittenApart(t *testing.T) {
	path := newPath(t)
	l := openAt(t, path)
	opal := &plan.Account{Name: "opal", UID: 1000, Home: "/srv/opal", LingerOurs: true}
	require.NoError(t, l.Record(plan.Record{Scope: unit.User, Manager: &plan.Manager{OwesReload: true}}))
	require.NoError(t, l.Account(opal))
	require.NoError(t, l.Record(plan.Record{Scope: unit.User, Manager: &plan.Manager{Made: []string{"/x"}}}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Manager: &plan.Manager{OwesReload: true}}))
	require.NoError(t, l.Close())
	l = openAt(t, path)
	s, err := l.Load()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(map[unit.Scope]plan.Manager{unit.User: {Made: []string{"/x"}, Account: opal}, unit.System: {OwesReload: true}}, s.Managers))
	require.NoError(t, l.Account(nil))
	s, err = l.Load()
	require.NoError(t, err)
	require.Equal(t, plan.Manager{Made: []string{"/x"}}, s.Managers[unit.User])
}

func TestWhatWasAcceptedIsThereWholeOrNotAtAll(t *testing.T) {
	l := openAt(t, newPath(t))
	first := &accept.Held{Index: []byte("1"), Signature: []byte("s1"), At: time.Unix(1, 0).UTC()}
	web := accept.Identity{UID: "u", Name: "web", Generation: 1, Epoch: "e"}
	require.NoError(t, l.Accept(accept.Change{Put: []accept.Identity{web}, Held: first}))
	require.NoError(t, l.Accept(accept.Change{}), "nothing")
	require.Error(t, l.Accept(accept.Change{Put: []accept.Identity{{Name: "db"}, {Name: ""}}, Delete: []string{"web"}, Held: &accept.Held{Index: []byte("2")}}))
	s, err := l.Load()
	require.NoError(t, err)
	require.Equal(t, map[string]accept.Identity{"web": web}, s.Declarations)
	require.Equal(t, first, s.Held)
	require.NoError(t, l.Commit(Tx{Put: []accept.Identity{{Name: "db"}}}))
	s, err = l.Load()
	require.NoError(t, err)
	require.Equal(t, first, s.Held, "what a folder declares leaves it")
}

func TestScopesAreApart(t *testing.T) {
	l := openAt(t, newPath(t))
	m := memory("a.service", "")
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{m}}))
	m.Scope = unit.User
	require.NoError(t, l.Record(plan.Record{Scope: unit.User, Put: []plan.Memory{m}}))
	require.NoError(t, l.Record(plan.Record{Scope: unit.System, Delete: []unit.Name{"a.service"}}))
	s, err := l.Load()
	require.NoError(t, err)
	require.Empty(t, s.Memories(unit.System))
	require.Equal(t, []plan.Memory{m}, s.Memories(unit.User))
}

func TestOnlyRootLooksIn(t *testing.T) {
	path := newPath(t)
	openAt(t, path)
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		st, err := os.Stat(p)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode(), p)
	}
}

func TestEmptyCommitTouchesNoDisk(t *testing.T) {
	path := newPath(t)
	l := openAt(t, path)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, l.Commit(Tx{}))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, l.Commit(Tx{Delete: []string{"x"}}))
	after, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, before, after, "a transaction does show in the file")
}

func TestSecondHostIsTurnedAway(t *testing.T) {
	path := newPath(t)
	first := openAt(t, path)
	_, err := Open(Options{Path: path, Timeout: 50 * time.Millisecond})
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, path+": another host has it open")
	require.NoError(t, first.Close())
	openAt(t, path)
}

func TestFolderThatCannotBeMadeIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(Options{Path: filepath.Join(file, "host", "ledger.db")})
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	require.ErrorContains(t, err, "make ledger: "+file)
}

// A full disk is made with a file size limit, which the shell sets.
func TestCommitThatDoesNotFitChangesNothing(t *testing.T) {
	if path := os.Getenv("LEDGER_FULL"); path != "" {
		l := openAt(t, path)
		big := plan.Record{Scope: unit.System, Put: []plan.Memory{memory("big.service", string(make([]byte, 8<<20)))}}
		big.Blobs = blobs(string(make([]byte, 8<<20)))
		err := l.Record(big)
		require.Equal(t, fault.Failed, fault.ClassOf(err), "%v", err)
		require.NoError(t, l.Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("small.service", "")}}))
		return
	}
	path := newPath(t)
	require.NoError(t, openAt(t, path).Record(plan.Record{Scope: unit.System, Put: []plan.Memory{memory("a.service", "")}}))
	copied := path + ".limited"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, data, 0o600))
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`trap "" XFSZ; ulimit -f 2048; exec %q -test.run '^TestCommitThatDoesNotFit'`, os.Args[0]))
	cmd.Env = append(os.Environ(), "LEDGER_FULL="+copied)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s, err := openAt(t, copied).Load()
	require.NoError(t, err)
	require.Len(t, s.Units, 2)
	require.Contains(t, s.Units, Key{unit.System, "small.service"})
}

func thousand(content string) plan.Record {
	r := plan.Record{Scope: unit.System, Blobs: blobs(), Manager: &plan.Manager{OwesReload: true}}
	for i := range 1000 {
		c := fmt.Sprint(content, i)
		r.Put = append(r.Put, memory(unit.Name(fmt.Sprintf("unit-%d.service", i)), c))
		r.Blobs[sum([]byte(c))] = []byte(c)
	}
	return r
}

func BenchmarkCommitThousandMemories(b *testing.B) {
	l, err := Open(Options{Path: filepath.Join(b.TempDir(), "host", "ledger.db")})
	require.NoError(b, err)
	r := thousand("old")
	for b.Loop() {
		require.NoError(b, l.Record(r))
	}
	require.NoError(b, l.Close())
}

func TestLedgerThatWasHalfMadeIsMadeAgain(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(path), ".stead-new-1"), 0o700))
	openAt(t, path)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".stead-new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
