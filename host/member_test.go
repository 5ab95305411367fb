package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) {
	if code, is := another(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func TestANodeTakesWhatItsMeshDeclaresAndTellsHowItStands(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.eventually(func() bool { return w.host.Status().Source.Mesh.Revision == 1 }, "nothing of the mesh was accepted")
	begun := time.Now()
	w.declare(sleeper(t, "web", 1))
	w.up("web.service")
	t.Logf("a hint made the unit run after %v", time.Since(begun).Round(time.Millisecond))
	w.converged("web", 1)

	st := w.host.Status()
	require.Equal(t, "web1", st.Node)
	require.Empty(t, st.Source.Folder)
	require.Empty(t, st.Source.Trouble)
	require.False(t, st.Source.Read.IsZero())
	require.True(t, st.Source.Mesh.Connected)
	require.Equal(t, []any{w.mesh.Keys.ID(), "e1", uint64(2), w.path("credentials")},
		[]any{st.Source.Mesh.Mesh, st.Source.Mesh.Epoch, st.Source.Mesh.Revision, st.Source.Mesh.Credentials})
	w.eventually(func() bool { return get(w, func() bool { return w.source.Revision == 2 && len(w.events) >= 3 }) }, "no events came")

	p := get(w, func() wire.Profile { return w.profiles[0] })
	require.Equal(t, []any{"1.2.3", "Simulated 1", "6.1", "boot", []string{wire.PausesUnits, wire.ServiceManager}, wire.Vocabulary()},
		[]any{p.Version, p.OS, p.Kernel, p.Boot, p.Capabilities, p.Vocabulary})
	require.NotContains(t, p.Machine, "5eed", "a machine-id is nobody else's business")
	require.Len(t, p.Machine, 32)
	require.Equal(t, hostname(), p.Host)
	asked := get(w, func() wire.SyncRequest { return w.asked })
	require.Equal(t, []string{p.Machine, p.Boot}, []string{asked.Machine, asked.Boot})

	w.declare()
	w.eventually(func() bool { return w.active("web.service") == unit.Inactive }, "what was withdrawn runs")
	w.eventually(func() bool { return get(w, func() bool { return len(w.reports) == 0 }) }, "what was withdrawn is reported")
	w.eventually(func() bool {
		return get(w, func() bool {
			return slices.ContainsFunc(w.events, func(e wire.Event) bool { return e.Kind == "removed" })
		})
	}, "that its file went is not told")
	last := get(w, func() wire.Event { return w.events[len(w.events)-1] })
	require.Equal(t, []string{"given-back", "web", "web.service"}, []string{last.Kind, last.Declaration, last.Unit})
}

func TestWhatIsHeldIsKeptBeforeAndWithoutAnyMesh(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	w.stop()
	w.way.Swallow(true)
	w.start()
	w.drift("web.service")
	w.eventually(func() bool { return w.host.Status().Source.Trouble != "" }, "that the mesh is out of reach is not said")
	st := w.host.Status()
	require.Contains(t, st.Source.Trouble, "not connected")
	require.Equal(t, uint64(2), st.Source.Mesh.Revision)
	require.Equal(t, "web1", st.Node)

	w.drift("web.service")
	w.declare(sleeper(t, "web", 2))
	w.way.Swallow(false)
	w.converged("web", 2)
	w.eventually(func() bool {
		return get(w, func() bool {
			n := 0
			for _, e := range w.events {
				if e.Kind == "started" && e.Node == "web1" {
					n++
				}
			}
			return n == 3
		})
	}, "what happened meanwhile was not told")
	w.eventually(func() bool { return w.host.Status().Source.Mesh.Events == 0 }, "acknowledged events wait")
	require.Empty(t, w.host.Status().Source.Trouble)
}

// A host whose credentials are missing, or are not what they should be, says which
// file and why, keeps what it holds, and goes on by itself when they are mended.
func TestCredentialsThatCannotBeUsedAreNamedAndHoldNothingUp(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	w.stop()
	at := func(file string) string { return filepath.Join(w.path("credentials"), file) }
	for _, c := range []struct {
		name  string
		spoil func()
		says  string
	}{
		{"no folder", func() { require.NoError(t, os.RemoveAll(w.path("credentials"))) }, at(hostFile) + ": there is no such file"},
		{"one file is missing", func() { w.credentials("web1"); require.NoError(t, os.Remove(at(listenerFile))) }, at(listenerFile) + ": there is no such file"},
		{"no JSON", func() { require.NoError(t, os.WriteFile(at(hostFile), []byte("what is this?"), 0o600)) }, at(hostFile)},
		{"others may read it", func() { require.NoError(t, os.Chmod(at(hostFile), 0o644)) }, at(hostFile)},
		{"of another role", func() {
			require.NoError(t, identity.WriteCredentials(at(hostFile), w.mesh.Credentials(identity.Listener, "web1", w.way)))
		}, `they are of role "listener", and "host" is wanted`},
		{"of two nodes", func() {
			require.NoError(t, identity.WriteCredentials(at(listenerFile), w.mesh.Credentials(identity.Listener, "web2", w.way)))
		}, `listener.json of node "web2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(w.path("credentials"), 0o700))
			w.credentials("web1")
			c.spoil()
			w.start()
			defer w.stop()
			w.drift("web.service")
			st := w.host.Status()
			require.Contains(t, st.Source.Trouble, c.says)
			require.Equal(t, "web1", st.Node, "by what is held")
			require.Equal(t, uint64(2), st.Source.Mesh.Revision)
		})
	}
	require.NoError(t, os.RemoveAll(w.path("credentials")))
	w.start()
	w.drift("web.service")
	require.NoError(t, os.Mkdir(w.path("credentials"), 0o700))
	w.credentials("web1")
	w.eventually(func() bool { return w.host.Status().Source.Trouble == "" }, "credentials that came are not used")
	require.NoError(t, os.Remove(at(hostFile)))
	w.eventually(func() bool { return w.host.Status().Source.Trouble != "" }, "credentials that went are not missed")
	require.True(t, w.host.Status().Source.Mesh.Connected, "and what was read is used on")
}

// Where nobody says whether it is a folder or a mesh, a machine that held something
// of a mesh stays in it though its credentials are gone: its declarations would be
// in force, and nobody would say so.
func TestAMachineOfAMeshStaysInItWithoutItsCredentials(t *testing.T) {
	w := newWorld(t)
	either := func() {
		t.Helper()
		w.startFrom(Options{Credentials: w.path("credentials"), Folder: w.path("folder")})
	}
	require.NoError(t, os.Remove(w.path("credentials")))
	either()
	w.eventually(func() bool { return !w.host.Status().Source.Read.IsZero() }, "the folder is not read")
	require.Nil(t, w.host.Status().Source.Mesh, "it was never in one")
	require.Equal(t, w.path("folder"), w.host.Status().Source.Folder)
	w.stop()

	require.NoError(t, os.Mkdir(w.path("credentials"), 0o700))
	w.credentials("web1")
	either()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	w.stop()
	require.NoError(t, os.RemoveAll(w.path("credentials")))
	require.NoError(t, os.Mkdir(w.path("folder"), 0o700))
	either()
	w.drift("web.service")
	st := w.host.Status()
	require.Equal(t, "web1", st.Node)
	require.Equal(t, []any{"", uint64(2)}, []any{st.Source.Folder, st.Source.Mesh.Revision})
	require.False(t, st.Source.Accepted.IsZero(), "something is in force")
	require.Contains(t, st.Source.Trouble, filepath.Join(w.path("credentials"), hostFile)+": there is no such file")
	require.Contains(t, st.Source.Trouble, "stead credentials node")

	require.NoError(t, os.Mkdir(w.path("credentials"), 0o700))
	w.credentials("web1")
	w.declare(sleeper(t, "web", 2))
	w.converged("web", 2)
	require.Empty(t, w.host.Status().Source.Trouble)
	w.stop()

	w.startFrom(Options{Folder: w.path("folder")})
	w.eventually(func() bool { return w.host.Status().Source.Trouble != "" }, "the folder is not read")
	require.Nil(t, w.host.Status().Source.Mesh, "somebody said that it is a folder")
	require.Equal(t, []string{"web"}, w.host.Status().Source.Kept)
}

// Root gave the node another mesh: it goes there, and keeps what the old one
// declared until somebody says otherwise.
func TestCredentialsThatAreReplacedAreUsed(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	other := &world{t: t, mesh: meshtest.New(t), dir: w.dir, fake: w.fake, host: w.host, revision: 1, reports: map[string]*report.Report{}}
	other.way = other.mesh.Way()
	other.serve()
	other.credentials("web1")
	w.eventually(func() bool {
		return w.host.Status().Source.Mesh.Mesh == other.mesh.Keys.ID() && w.host.Status().Source.Mesh.Connected
	}, "it does not go over")
	w.eventually(func() bool { return w.host.Status().Source.Mesh.Revision == 1 }, "nothing was accepted")
	require.Equal(t, []string{"web"}, w.host.Status().Source.Kept)
	require.Equal(t, unit.Active, w.active("web.service"))
	other.declare(sleeper(t, "db", 1))
	other.converged("db", 1)
	other.converged("web", 1)
	require.Equal(t, unit.Active, w.active("web.service"))
}

func TestAFolderAndAMeshDoNotTakeFromEachOther(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	w.stop()
	require.NoError(t, os.Mkdir(w.path("declarations"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(w.path("declarations"), "db.yaml"),
		[]byte("shape: service\nname: db\nensure: running\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep 1\n"), 0o644))
	w.startFrom(Options{Folder: w.path("declarations")})
	w.up("db.service")
	w.eventually(func() bool { return len(w.host.Status().Source.Kept) == 1 }, "nothing is kept")
	require.Equal(t, "web", w.host.Status().Source.Kept[0])
	require.Nil(t, w.host.Status().Source.Mesh)
	require.Equal(t, unit.Active, w.active("web.service"))
	w.stop()
	w.start()
	w.declare()
	w.eventually(func() bool { return w.active("web.service") == unit.Inactive }, "the mesh does not take back its own")
	w.eventually(func() bool { k := w.host.Status().Source.Kept; return len(k) == 1 && k[0] == "db" }, "what the folder declared is not kept")
	require.Equal(t, unit.Active, w.active("db.service"))
}

func TestControllersAreToldWhatWouldBeDone(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	ask := func(q wire.PlanRequest) (wire.PlanReply, error) {
		payload, err := json.Marshal(q)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		answer, err := w.control.Call(ctx, subject.ForNode("web1", subject.Plan), payload)
		var reply wire.PlanReply
		if err == nil {
			require.NoError(t, json.Unmarshal(answer, &reply))
		}
		return reply, err
	}
	next := sleeper(t, "web", 2)
	before := len(w.fake.Log())
	reply, err := ask(wire.PlanRequest{Wire: wire.Version, Declarations: []wire.Declared{
		{UID: "uid-web", Generation: 2, Canonical: next.Canonical()},
		{UID: "u", Generation: 1, Canonical: []byte(`{"shape":"service","name":"later","unit":"later.service","scope":"system","colour":"red"}`)},
		{UID: "uid-db", Generation: 1, Canonical: sleeper(t, "db", 1).Canonical()},
	}})
	require.NoError(t, err)
	plans := map[string]wire.Plan{}
	for _, p := range reply.Plans {
		plans[p.Name] = p
	}
	require.Equal(t, []any{report.Refused, report.Unsupported}, []any{plans["later"].Outcome, plans["later"].Reason})
	require.Contains(t, plans["later"].Text, "colour")
	var actions []string
	for _, s := range plans["web"].Steps {
		actions = append(actions, s.Action)
	}
	require.Subset(t, actions, []string{"write", "reload"})
	require.Contains(t, plans["web"].Steps[0].Diff, "+ExecStart=/bin/sleep 1002")
	require.NotEmpty(t, plans["db"].Steps)
	require.Len(t, w.fake.Log(), before, "nothing was done")
	require.Equal(t, uint64(2), w.host.Status().Source.Mesh.Revision)

	reply, err = ask(wire.PlanRequest{Wire: wire.Version, Withdrawn: []string{"web"}})
	require.NoError(t, err)
	require.NotEmpty(t, reply.Plans)
	_, err = ask(wire.PlanRequest{Wire: 7})
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	require.NotEmpty(t, fault.HintOf(err))
}

// A hint comes from controllers, and a question too; others of the mesh are not
// heard.
func TestThatTheNodeWasRemovedIsSaid(t *testing.T) {
	w := newWorld(t)
	w.removed = "operator alice removed it at noon"
	w.credentials("web1")
	w.start()
	w.eventually(func() bool { return w.host.Status().Source.Trouble == "operator alice removed it at noon" }, "it is not said")
}

func TestAPlanThatIsTooLargeLosesLinesOfDiffs(t *testing.T) {
	long := make([]string, 3000)
	for i := range long {
		long[i] = "+a line of a file that is declared, and that is about so long"
	}
	var reply wire.PlanReply
	for range 100 {
		reply.Plans = append(reply.Plans, wire.Plan{Name: "a", Steps: []wire.PlanStep{{Action: "write", Diff: append([]string{}, long...)}}})
	}
	data, err := fitPlans(reply)
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), wire.MaxPage)
	var got wire.PlanReply
	require.NoError(t, json.Unmarshal(data, &got))
	diff := got.Plans[99].Steps[0].Diff
	require.Regexp(t, `^… and \d+ lines more$`, diff[len(diff)-1])
	require.Greater(t, len(diff), 40)
}

func TestAHostHasASource(t *testing.T) {
	_, err := New(Options{Machine: &Machine{}})
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
}

func TestAHostIsToldAnAccountByItsName(t *testing.T) {
	for _, bad := range []Options{{Account: "root"}, {Account: "../opal"}, {Account: strings.Repeat("a", 33)}, {Linger: "maybe"}} {
		bad.Folder, bad.Machine = "f", &Machine{}
		_, err := New(bad)
		require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	}
	h, err := New(Options{Folder: "f", Machine: &Machine{}, Account: "opal", Linger: "off", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.Equal(t, []string{"opal", "off"}, []string{h.o.Account, h.o.Linger})
	h, err = New(Options{Folder: "f", Machine: &Machine{}})
	require.NoError(t, err)
	require.Equal(t, []string{"", "auto"}, []string{h.o.Account, h.o.Linger})
}

func TestTheNameOfASystemIsReadAsAShellWould(t *testing.T) {
	require.Equal(t, `Debian GNU/Linux 12 "bookworm"`, prettyName("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 \\\"bookworm\\\"\"\n"))
	require.Equal(t, "Arch", prettyName("PRETTY_NAME=Arch"))
	require.Equal(t, "it is", prettyName("PRETTY_NAME='it is'\n# PRETTY_NAME=no\n"))
	require.Equal(t, "", prettyName("NAME=x"))
}
