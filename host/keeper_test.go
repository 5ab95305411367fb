package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/ledger"
	"stead/host/reconcile"
	"stead/host/shape"
	"stead/host/unit"
)

// desk is a keeper over a real folder and a real ledger, whose turns a test
// calls itself and whose clock it moves.
type desk struct {
	t    *testing.T
	dir  string
	book *ledger.Ledger
	k    *keeper
	host *Host
	at   time.Time
	last reconcile.Set
	// taking is what the status said while last was handed over.
	taking bool
}

func (d *desk) Declare(_ context.Context, set reconcile.Set) error {
	d.last, d.taking = set, d.host.source.Taking
	return nil
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), "declarations"), at: time.Now()}
	book, err := ledger.Open(ledger.Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	d.book = book
	require.NoError(t, os.Mkdir(d.dir, 0o755))
	d.restart()
	return d
}

// restart begins with what the ledger holds, as a new host does.
func (d *desk) restart() {
	state, err := d.book.Load()
	require.NoError(d.t, err)
	d.host = &Host{o: Options{Folder: d.dir}, log: slog.New(slog.DiscardHandler)}
	d.k, err = newKeeper(d.host, d.book, d, state)
	require.NoError(d.t, err)
	d.k.now = func() time.Time { return d.at }
	d.last = d.k.set()
}

func (d *desk) write(name, text string) {
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644))
}

func (d *desk) turn() Source {
	d.t.Helper()
	_, err := d.k.turn(d.t.Context())
	require.NoError(d.t, err)
	return d.host.source
}

func (d *desk) names() []string {
	var all []string
	for _, s := range d.last.Declared {
		all = append(all, s.Service.Name)
	}
	return all
}

func declared(name, ensure string) string {
	return "shape: service\nname: " + name + "\nensure: " + ensure + "\n"
}

func TestAReadingThatIsHandedOverIsSaidToBe(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	require.False(t, d.turn().Taking)
	require.True(t, d.taking)
}

func TestUIDStaysAndGenerationRisesWithTheMeaning(t *testing.T) {
	d := newDesk(t)
	d.write("web.yaml", declared("web", "running"))
	d.turn()
	first := d.last.Declared[0]
	require.Len(t, first.UID, 32)
	require.EqualValues(t, 1, first.Generation)

	d.write("web.yaml", "# the same in other words\n"+declared("web", "running")+"nodes: [web1]\n")
	d.turn()
	require.EqualValues(t, 1, d.last.Declared[0].Generation, "addressing and comments are no part of it")

	d.write("web.yaml", declared("web", "stopped"))
	d.turn()
	require.EqualValues(t, 2, d.last.Declared[0].Generation)
	require.Equal(t, first.UID, d.last.Declared[0].UID)

	d.restart()
	require.EqualValues(t, 2, d.last.Declared[0].Generation, "it is durable")
	require.Equal(t, first.UID, d.last.Declared[0].UID)
}

func TestOnlyExplicitAbsenceWithdraws(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	d.write("b.yaml", declared("b", "running"))
	d.turn()
	require.Equal(t, []string{"a", "b"}, d.names())

	for what, change := range map[string]func(){
		"a mistake in one file": func() { d.write("a.yaml", "shape: service\nname: a\nensure: runing\n") },
		"an empty file":         func() { d.write("a.yaml", "") },
		"an emptied folder":     func() { require.NoError(t, os.RemoveAll(d.dir)); require.NoError(t, os.Mkdir(d.dir, 0o755)) },
		"a folder that is gone": func() { require.NoError(t, os.RemoveAll(d.dir)) },
		"a file in its place": func() {
			require.NoError(t, os.RemoveAll(d.dir))
			d.at = d.at.Add(0)
			require.NoError(t, os.WriteFile(d.dir, nil, 0o644))
		},
		"a name declared doubly": func() { d.write("c.yaml", declared("a", "stopped")) },
	} {
		t.Run(what, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(d.dir))
			require.NoError(t, os.Mkdir(d.dir, 0o755))
			d.write("a.yaml", declared("a", "running"))
			d.write("b.yaml", declared("b", "running"))
			require.Empty(t, d.turn().Trouble)
			change()
			for range 3 {
				src := d.turn()
				require.NotEmpty(t, src.Trouble)
				require.Equal(t, []string{"a", "b"}, d.names())
				d.at = d.at.Add(time.Hour)
			}
		})
	}
}

func TestAFileThatGoesWithdrawsWhenItStaysGone(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	d.write("b.yaml", declared("b", "running"))
	d.turn()
	require.NoError(t, os.Remove(filepath.Join(d.dir, "a.yaml")))
	require.Equal(t, []string{"a"}, d.turn().Leaving)
	require.Equal(t, []string{"a", "b"}, d.names(), "editors take files away for a moment")
	d.at = d.at.Add(grace / 2)
	d.write("a.yaml", declared("a", "running"))
	require.Empty(t, d.turn().Leaving)
	require.NoError(t, os.Remove(filepath.Join(d.dir, "a.yaml")))
	d.turn()
	d.at = d.at.Add(grace * 3 / 4)
	d.turn()
	require.Equal(t, []string{"a", "b"}, d.names(), "the time counts anew")
	d.at = d.at.Add(grace)
	require.Empty(t, d.turn().Leaving)
	require.Equal(t, []string{"b"}, d.names())
	d.restart()
	require.Equal(t, []string{"b"}, d.names(), "it is durable")
}

func TestAFileWithOnlyACommentWithdrawsTheLast(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	d.turn()
	d.write("a.yaml", "# nothing any more\n")
	d.turn()
	d.at = d.at.Add(grace)
	require.Empty(t, d.turn().Trouble)
	require.Empty(t, d.names())
}

func TestANewNameForAUnitNeedNotWait(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running")+"unit: web\n")
	d.turn()
	d.write("a.yaml", declared("b", "running")+"unit: web\n")
	d.turn()
	require.Equal(t, []string{"b"}, d.names(), "a unit has one declaration")
}

func TestANewNameInAnotherScopeWaits(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running")+"unit: web\n")
	d.turn()
	d.write("a.yaml", declared("b", "running")+"unit: web\nscope: user\n")
	d.turn()
	require.Equal(t, []string{"a", "b"}, d.names(), "the unit of the other manager is another one")
}

func TestAnAcceptedBodyThatCannotBeReadLeavesItsUnitAlone(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.book.Commit(ledger.Tx{Put: []accept.Identity{{UID: "u", Name: "old", Generation: 4, Digest: "d", Body: []byte(`{"from":"a later version"}`)}}}))
	d.restart()
	require.Empty(t, d.last.Declared)
	require.Len(t, d.last.Leave, 1)
	left := d.last.Leave[0]
	require.Contains(t, left.Why, "from", "it names what cannot be read")
	left.Why = ""
	require.Equal(t, reconcile.Left{Name: "old", Scope: unit.System, UID: "u", Generation: 4}, left)
	d.write("old.yaml", declared("old", "running"))
	d.turn()
	require.EqualValues(t, 5, d.last.Declared[0].Generation)
	require.Equal(t, "u", d.last.Declared[0].UID)
}

func TestCheckNeedsNoHost(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(declared("a", "running")), 0o644))
	services, _, err := Check(t.Context(), dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, services, 1)
	_, _, err = Check(t.Context(), filepath.Join(dir, "nowhere"), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "nowhere")
}

// A link to a folder is not followed, and that is said where people look.
func TestWhatIsPassedOverIsSaid(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(d.dir, "linked")))
	source := d.turn()
	require.Len(t, source.Warnings, 1)
	require.Contains(t, source.Warnings[0], "linked is a link to a folder, and is not followed")
	services, warnings, err := Check(t.Context(), d.dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, services, 1)
	require.Equal(t, source.Warnings, warnings)
	require.NoError(t, os.Remove(filepath.Join(d.dir, "linked")))
	require.Empty(t, d.turn().Warnings)
}

// A file that stays open for writing holds everything up, and that is said.
func TestAFileThatIsBeingWrittenIsNamedAfterAWhile(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	require.Empty(t, d.turn().Trouble)
	f, err := os.OpenFile(filepath.Join(d.dir, "b.yaml"), os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer f.Close()
	source := d.turn()
	require.Empty(t, source.Trouble)
	require.True(t, source.Taking, "the reports are behind it")
	d.at = d.at.Add(patient)
	source = d.turn()
	require.Contains(t, source.Trouble, "it is being written")
	require.False(t, source.Taking)
	require.Len(t, source.Problems, 1)
	require.Contains(t, source.Problems[0], "b.yaml")
	require.Equal(t, []string{"a"}, d.names(), "what was accepted stays in force")
	_, err = f.WriteString(declared("b", "running"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Empty(t, d.turn().Trouble)
	require.Equal(t, []string{"a", "b"}, d.names())
}

// A host that goes over from a mesh to a folder keeps what the mesh declared until
// the folder declares it too.
func TestAFolderWithdrawsOnlyWhatAFolderDeclared(t *testing.T) {
	d := newDesk(t)
	d.write("a.yaml", declared("a", "running"))
	d.turn()
	same := d.last.Declared[0].Service.Canonical()
	h, _ := d.k.identify(service(t, declared("b", "stopped")))
	require.NoError(t, d.book.Commit(ledger.Tx{Put: []accept.Identity{
		{UID: "ua", Name: "a", Generation: 7, Digest: d.k.accepted["a"].id.Digest, Body: same, Epoch: "e"},
		{UID: "ub", Name: "b", Generation: 3, Digest: h.id.Digest, Body: h.id.Body, Epoch: "e"},
	}}))
	d.restart()
	require.Equal(t, []string{"a", "b"}, d.names())
	require.NoError(t, os.Remove(filepath.Join(d.dir, "a.yaml")))
	d.write("c.yaml", declared("c", "running"))
	d.turn()
	d.at = d.at.Add(time.Hour)
	require.Equal(t, []string{"a", "b"}, d.turn().Kept)
	require.Equal(t, []string{"a", "b", "c"}, d.names())

	d.write("a.yaml", declared("a", "running"))
	d.write("b.yaml", declared("b", "running"))
	require.Empty(t, d.turn().Kept)
	require.Equal(t, "ua", d.last.Declared[0].UID, "it says the same, and nothing of it is done again")
	require.EqualValues(t, 7, d.last.Declared[0].Generation)
	require.Len(t, d.last.Declared[1].UID, 32, "it says something else")
	require.EqualValues(t, 1, d.last.Declared[1].Generation)

	d.restart()
	require.NoError(t, os.Remove(filepath.Join(d.dir, "a.yaml")))
	d.turn()
	d.at = d.at.Add(grace)
	require.Empty(t, d.turn().Kept)
	require.Equal(t, []string{"b", "c"}, d.names(), "now it is the folder's to withdraw")
}

func service(t *testing.T, text string) *shape.Service {
	all, problems := shape.Parse("a.yaml", []byte(text))
	require.NoError(t, problems.Err())
	return all[0]
}
