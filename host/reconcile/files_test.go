package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// file declares a file beside the folders of units.
func (r *rig) file(name, content string, more ...func(*shape.Declaration)) *shape.Declaration {
	s := &shape.Declaration{Name: "file:" + name, Scope: unit.System, Content: &content, OnWithdraw: shape.Restore,
		File: &shape.File{Path: r.trigger(name), Mode: 0o640, Owner: "root"}}
	for _, m := range more {
		m(s)
	}
	return s
}

// safely has conf lie where root alone can write: nobody can put links there.
func (r *rig) safely() {
	r.t.Helper()
	dir, err := os.MkdirTemp("/run", "reconcile-test-")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, os.RemoveAll(dir)) })
	r.conf = dir
}

func (r *rig) stands(name string) string {
	data, err := os.ReadFile(r.trigger(name))
	if err != nil {
		return ""
	}
	return string(data)
}

// object is what a declared file is known by.
func (r *rig) object(name string) unit.Name { return unit.Name(r.trigger(name)) }

// citesFiles has a unit cite declared files.
func citesFiles(how shape.OnChange, names ...string) func(*shape.Service) {
	return func(s *shape.Service) {
		s.OnChange = how
		for _, n := range names {
			s.Triggers = append(s.Triggers, "file:"+n)
		}
	}
}

func TestAFileIsWrittenBeforeWhoCitesItStartsAndTakenInOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep 9000", reloadable, citesFiles(shape.ReloadOnChange, "app"))
		r.declare(web, r.file("app", "port = 1\n"))
		r.after(5 * time.Second)
		rep := r.outcome(r.object("app"), report.Converged, "")
		require.Equal(t, "file:app", rep.Name)
		require.Equal(t, []string{"write"}, acted(rep))
		require.Empty(t, rep.State.Enabled)
		require.Equal(t, "port = 1\n", r.stands("app"))
		r.outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start"}, r.jobs("web.service"), "a first start takes the file in")

		r.declare(web, r.file("app", "port = 2\n"))
		r.after(5 * time.Second)
		require.Equal(t, "port = 2\n", r.stands("app"))
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
		require.Equal(t, "file:app changed", last(r.report("web.service")).Reason)
		r.outcome("web.service", report.Converged, "")

		r.declare(web, r.file("app", "port = 2\n", func(s *shape.Declaration) { s.File.Mode = 0o600 }))
		r.after(5 * time.Second)
		st, err := os.Stat(r.trigger("app"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode())
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"), "mode and owner are no part of the digest")
	})
}

func acted(rep *report.Report) (all []string) {
	for _, s := range rep.Steps {
		all = append(all, s.Action)
	}
	return all
}

func last(rep *report.Report) report.Step { return rep.Steps[len(rep.Steps)-1] }

func TestWhatSomebodyDoesToAFileIsKeptAsideAndRefreshesNobody(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep 9000", reloadable, citesFiles(shape.ReloadOnChange, "app")), r.file("app", "ours"))
		r.after(5 * time.Second)
		r.pull("app", "theirs")
		r.after(5 * time.Second)
		require.Equal(t, "ours", r.stands("app"))
		rep := r.outcome(r.object("app"), report.Converged, "")
		require.Equal(t, "the file was changed outside", last(rep).Reason)
		require.Len(t, rep.Warnings, 1)
		copies := r.kept()
		require.Contains(t, rep.Warnings[0], copies[0], "the report says where it is")
		data, err := os.ReadFile(copies[0])
		require.NoError(t, err)
		require.Equal(t, "theirs", string(data))
		require.Equal(t, []string{"start"}, r.jobs("web.service"), "what was put back in time is no change")

		require.NoError(t, os.Chmod(r.trigger("app"), 0o666))
		r.watch.saw(r.trigger("app"))
		r.after(5 * time.Second)
		require.Equal(t, "mode or owner was changed outside", last(r.report(r.object("app"))).Reason)
		r.pull("app", "")
		r.after(5 * time.Second)
		require.Equal(t, "the file was removed outside", last(r.report(r.object("app"))).Reason)
		require.Equal(t, "ours", r.stands("app"))
		require.Zero(t, r.reloads(), "no manager reads it")
	})
}

// reloads counts the reloads of the manager but for the first one, that of web's file.
func (r *rig) reloads() int {
	n := 0
	for _, l := range r.fake.Log() {
		if l == "reload" {
			n++
		}
	}
	return max(0, n-1)
}

func TestAFileThatIsFoughtOverIsContested(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(r.file("app", "ours"))
		r.after(2 * time.Second)
		for range 4 {
			r.pull("app", "theirs")
			r.after(time.Second)
		}
		rep := r.outcome(r.object("app"), report.Contested, "")
		require.Contains(t, rep.Text, "changed from outside")
		require.Equal(t, "theirs", r.stands("app"), "it is put right with delay")
		r.after(10 * time.Minute)
		require.Equal(t, "ours", r.stands("app"))
		r.outcome(r.object("app"), report.Converged, "")
	})
}

func TestAFileIsGivenBackAsItWasFound(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("app", "before")
		require.NoError(t, os.Chmod(r.trigger("app"), 0o604))
		released := func(s *shape.Declaration) { s.OnWithdraw = shape.Release }
		r.declare(r.file("app", "ours"), r.file("deep/new", "n"), r.file("stays", "s", released))
		r.after(2 * time.Second)
		require.Equal(t, "n", r.stands("deep/new"))
		r.declare()
		r.after(2 * time.Second)
		require.Equal(t, "before", r.stands("app"))
		st, err := os.Stat(r.trigger("app"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o604), st.Mode())
		require.NoDirExists(t, r.trigger("deep"), "folders that were made go too")
		require.Equal(t, "s", r.stands("stays"))
		require.Empty(t, r.book.names())
		require.Len(t, r.given, 3)
	})
}

func TestAFileThatMovesRefreshesNobodyAndLeavesItsPlace(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep 9000", reloadable, citesFiles(shape.ReloadOnChange, "app"))
		r.declare(web, r.file("app", "a"))
		r.after(5 * time.Second)
		moved := r.file("app", "a", func(s *shape.Declaration) { s.File.Path += ".toml" })
		r.declare(web, moved)
		r.after(5 * time.Second)
		require.Equal(t, "a", r.stands("app.toml"))
		require.NoFileExists(t, r.trigger("app"))
		require.Equal(t, []string{"start"}, r.jobs("web.service"))
		*moved.Content = "b" // what is cited is where it is now
		r.declare(web, r.file("app", "b", func(s *shape.Declaration) { s.File.Path += ".toml" }))
		r.after(5 * time.Second)
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
	})
}

func TestAPathHasOneDeclarationAlsoBehindLinks(t *testing.T) {
	inRig(t, func(r *rig) {
		r.safely()
		require.NoError(t, os.MkdirAll(r.trigger("real"), 0o755))
		require.NoError(t, os.Symlink("real", r.trigger("link")))
		a := r.file("real/a", "first")
		b := r.file("b", "second", func(s *shape.Declaration) { s.File.Path = r.trigger("link/a") })
		r.declare(a)
		r.after(2 * time.Second)
		r.declare(a, b)
		r.after(2 * time.Second)
		require.Equal(t, "first", r.stands("real/a"))
		rep := r.outcome(r.object("link/a"), report.Refused, report.OwnedBy)
		require.Equal(t, "conflict with file:real/a: "+r.trigger("real/a")+" is declared by it already", rep.Text)
		r.declare(b)
		r.after(2 * time.Second)
		require.Equal(t, "second", r.stands("real/a"), "until one goes")
		r.outcome(r.object("link/a"), report.Converged, "")

		c := r.file("c", "third", func(s *shape.Declaration) { s.File.Path = r.trigger("link/a") })
		r.declare(b, c)
		r.after(2 * time.Second)
		require.Equal(t, "second", r.stands("real/a"))
		require.Len(t, r.loop.Reports(), 2, "one of one path is told of the other")
	})
}

func TestAFileAtAPathThatIsCitedRefreshesWhoCitesThePath(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep 9000", reloadable, r.cites(shape.ReloadOnChange, "app")))
		r.after(5 * time.Second)
		r.declare(service("web", "/bin/sleep 9000", reloadable, r.cites(shape.ReloadOnChange, "app")), r.file("app", "a"))
		r.after(5 * time.Second)
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
	})
}

func TestAFileThatIsRefusedChangesNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		require.NoError(t, os.MkdirAll(r.trigger("folder"), 0o755))
		nobody := r.file("nobody", "x", func(s *shape.Declaration) { s.File.Owner = "nobody-of-this-name" })
		web := service("web", "/bin/sleep 9000", citesFiles("", "folder", "gone"))
		r.declare(r.file("folder", "x"), nobody, web)
		r.after(5 * time.Second)
		rep := r.outcome(r.object("folder"), report.Refused, report.BadTarget)
		require.Equal(t, "rmdir "+r.trigger("folder"), rep.Hint)
		r.outcome(r.object("nobody"), report.Refused, report.NoLogin)
		require.NoFileExists(t, r.trigger("nobody"))
		require.Empty(t, r.book.unit(r.object("folder")).Wrote)
		rep = r.outcome("web.service", report.Converged, "")
		require.Contains(t, rep.Warnings, "trigger file:gone: no file of that name is declared on this node")
		require.NoError(t, os.Remove(r.trigger("folder")))
		r.after(time.Minute)
		require.Equal(t, "x", r.stands("folder"), "it heals by itself")
	})
}

// A host that dies at any boundary of a pass goes on with a file where it was.
func TestAKilledHostGoesOnWithAFile(t *testing.T) {
	for _, point := range []string{"recorded", "written", "remembered", "queued"} {
		t.Run(point, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.pull("app", "before")
				web := service("web", "/bin/sleep 9000", reloadable, citesFiles(shape.ReloadOnChange, "app"))
				r.declare(web, r.file("app", "one"))
				r.after(5 * time.Second)
				r.stop()
				r.killAt(point)
				r.declare(web, r.file("app", "two"))
				r.after(5 * time.Second)
				r.stop()
				r.start()
				r.declare(web, r.file("app", "two"))
				r.after(5 * time.Second)
				require.Equal(t, "two", r.stands("app"))
				r.outcome("web.service", report.Converged, "")
				require.Contains(t, r.jobs("web.service"), "reload")
				require.LessOrEqual(t, len(r.jobs("web.service")), 3)
				r.declare()
				r.after(5 * time.Second)
				require.Equal(t, "before", r.stands("app"))
			})
		})
	}
}

func TestADryRunTellsOfAFileAndOfNoSecret(t *testing.T) {
	inRig(t, func(r *rig) {
		secret := func(s *shape.Declaration) { s.Sensitive = true }
		web := service("web", "/bin/sleep 9000", reloadable, citesFiles(shape.ReloadOnChange, "app", "key"))
		r.declare(web, r.file("app", "a = 1\n"), r.file("key", "s3cret\n", secret))
		r.after(5 * time.Second)
		previews := r.plan([]*shape.Service{r.file("app", "a = 2\n"), r.file("key", "other\n", secret)})
		require.Equal(t, "file:app", previews[0].Name)
		require.Contains(t, previews[0].Steps[0].Diff, "+a = 2")
		diff := strings.Join(previews[1].Steps[0].Diff, "\n")
		require.Contains(t, diff, "sha256")
		require.NotContains(t, diff, "s3cret")
		require.NotContains(t, diff, "other")
		require.Equal(t, plan.ReloadUnit, previews[2].Steps[0].Action, "and of who is refreshed by it")
		require.Len(t, previews[2].Steps, 1)
		public := r.plan([]*shape.Service{r.file("key", "other\n")})
		require.NotContains(t, strings.Join(public[0].Steps[0].Diff, "\n"), "s3cret", "what was a secret stays one")
		gone := r.plan(nil, "file:key")
		require.Equal(t, plan.Remove, gone[0].Steps[0].Action)
		require.NotContains(t, strings.Join(gone[0].Steps[0].Diff, "\n"), "s3cret")
		require.Equal(t, "a = 1\n", r.stands("app"))
	})
}

func TestAFileOwesNoReloadAlsoWhereTheHostDies(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.killAt("recorded")
		r.declare(r.file("app", "one"))
		r.after(5 * time.Second)
		r.stop()
		require.False(t, r.book.rest().OwesReload)
		r.start()
	})
}

func TestAFolderThatIsChangedOnTheWayMovesTheFile(t *testing.T) {
	inRig(t, func(r *rig) {
		r.safely()
		for _, d := range []string{"one", "two"} {
			require.NoError(t, os.MkdirAll(r.trigger(d), 0o755))
		}
		require.NoError(t, os.Symlink("one", r.trigger("link")))
		r.declare(r.file("link/a", "a"))
		r.after(2 * time.Second)
		require.Equal(t, "a", r.stands("one/a"))
		require.NoError(t, os.Remove(r.trigger("link")))
		require.NoError(t, os.Symlink("two", r.trigger("link")))
		r.after(10 * time.Minute) // a full look
		require.Equal(t, "a", r.stands("two/a"))
		require.Equal(t, "", r.stands("one/a"), "what is not wanted there is given back")
		require.Contains(t, r.watch.folders(), filepath.Join(r.trigger("two")))
	})
}

func TestWithNeverAUnitWaitsForSomebodyElsesReload(t *testing.T) {
	inRig(t, func(r *rig) {
		never := func(s *shape.Service) { s.DaemonReload = shape.NeverReload }
		waits := func() {
			t.Helper()
			r.after(5 * time.Second)
			rep := r.outcome("web.service", report.Waiting, report.OwedReload)
			require.Contains(t, rep.Text, "daemon_reload: never")
			require.NotEmpty(t, rep.Hint)
		}
		r.declare(service("web", "/bin/sleep 9000", never))
		waits()
		require.NotContains(t, r.fake.Log(), "reload")
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		r.after(5 * time.Second)
		r.outcome("web.service", report.Converged, "")

		r.declare(service("web", "/bin/sleep 8000", never))
		waits()
		require.Equal(t, []string{"start"}, r.jobs("web.service"), "it runs on")
		r.stop()
		r.start() // the debt is in the ledger
		r.declare(service("web", "/bin/sleep 8000", never))
		waits()
		r.declare(service("web", "/bin/sleep 8000", never), service("other", "/bin/sleep 7000"))
		r.after(10 * time.Second)
		r.outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "try-restart"}, r.jobs("web.service"), "what another unit's reload brought is taken in")
	})
}

// A folder above a declared file that is renamed takes it along, and nothing is told
// of the file itself.
func TestAFolderThatIsRenamedTakesNoFileAlong(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(r.file("real/in/a", "first"))
		r.after(5 * time.Second)
		require.Equal(t, "first", r.stands("real/in/a"))
		for _, dir := range []string{"real/in", "real"} {
			require.NoError(t, os.Rename(r.trigger(dir), r.trigger("away-"+filepath.Base(dir))))
			r.watch.saw(r.trigger(dir))
			r.after(5 * time.Second)
			require.Equal(t, "first", r.stands("real/in/a"), "of "+dir)
		}
		before := r.fake.Calls()
		r.watch.saw(r.trigger("real"))
		r.after(5 * time.Second)
		require.Equal(t, before["Observe"], r.fake.Calls()["Observe"], "what stands as it was written is no news")
	})
}

// Whoever cites a file that cannot be as it is declared runs, and says so for as long as that is so.
func TestAUnitSaysThatAFileWhichItCitesIsNotAsDeclared(t *testing.T) {
	inRig(t, func(r *rig) {
		nobodys := func(s *shape.Declaration) { s.File.Owner = "nobody-of-this-name" }
		web := service("web", "/bin/sleep 9000", citesFiles(shape.RestartOnChange, "app"))
		for _, content := range []string{"a", "b"} { // refused at first, and refused later
			r.declare(web, r.file("app", content, nobodys))
			r.after(10*time.Second).outcome(r.object("app"), report.Refused, report.NoLogin)
			require.Equal(t, []string{"it cites file:app, which is refused (login)"}, r.outcome("web.service", report.Converged, "").Warnings)
			r.declare(web, r.file("app", content))
			r.after(10 * time.Second)
			require.Empty(t, r.outcome("web.service", report.Converged, "").Warnings)
			require.Equal(t, content, r.stands("app"))
		}
	})
}
