package host

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/account"
	"stead/host/delegate"
	"stead/host/report"
	"stead/test/lab"
)

// killEnv makes this program a host that kills itself at the first boundary of that
// name; "never" is none.
const killEnv = "STEAD_TEST_KILL"

// another makes this program what a test starts it as; false when that is the test.
func another() (code int, is bool) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch at := os.Getenv(killEnv); {
	case len(os.Args) > 3 && os.Args[1] == "host" && os.Args[2] == "delegate":
		if delegate.Be(context.Background(), strings.TrimPrefix(os.Args[3], "--as="), os.Args[min(5, len(os.Args)):], log) != nil {
			return 1, true
		}
		return 0, true
	case at != "":
		return beHost(at, log), true
	}
	return 0, false
}

func beHost(at string, log *slog.Logger) int {
	h, err := New(Options{Folder: "/srv/declared", State: "/srv/state", Socket: "/srv/host.sock", Account: "opal", Linger: string(account.Auto), Logger: log,
		Point: func(name string) {
			if name == at {
				fmt.Fprintln(os.Stderr, "killed at", name)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
	if err == nil {
		err = h.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// victim is a lab node on which hosts are killed.
type victim struct {
	t      *testing.T
	uid    string
	home   string
	killed map[string]int // by the boundary's name
}

const never = "never"

const (
	anyUnit = `content: |
  [Service]
  ExecStart=/bin/sh -c 'echo run >> /srv/runs/%[1]s; exec sleep %[2]d'
  ExecReload=/bin/sh -c 'echo reload >> /srv/runs/%[1]s'
  [Install]
  WantedBy=%[3]s
`
	targets = "default.target"
)

// doc declares one unit in both scopes, with its name behind s- and u-.
func doc(name string, n int, more string) string {
	var all []string
	for prefix, scope := range map[string]string{"s": "system", "u": "user"} {
		all = append(all, fmt.Sprintf("shape: service\nname: %s-%s\nscope: %s\n", prefix, name, scope)+
			fmt.Sprintf(anyUnit, prefix+"-"+name, n, targets)+more)
	}
	slices.Sort(all)
	return strings.Join(all, "---\n")
}

// scenes are what is declared one after the other, and what is done to the machine
// before.
func scenes() []struct {
	name, trigger string
	docs          []string
} {
	masked := "shape: service\nname: %[1]s-mask\nunit: %[1]s-mask.service\nscope: %[2]s\nmasked: %[3]s\n"
	masks := func(is string) string {
		return fmt.Sprintf(masked, "s", "system", is) + "---\n" + fmt.Sprintf(masked, "u", "user", is)
	}
	up := "ensure: running\nenabled: true\n"
	return []struct {
		name, trigger string
		docs          []string
	}{
		{"applied", "one", []string{doc("web", 1001, up), doc("reads", 1001, up+"on_change: reload\ntriggers: [/srv/trigger]\n"),
			doc("once", 1001, "ensure: restarted\n"), masks("true")}},
		{"changed", "two", []string{doc("web", 1002, up), doc("reads", 1001, up+"on_change: reload\ntriggers: [/srv/trigger]\n"),
			doc("once", 1001, "ensure: restarted\ntimeout: 90s\n"), masks("false")}},
		{"withdrawn", "two", []string{"# nothing\n"}},
	}
}

func TestKilledAtEachBoundaryAHostEndsAsIfItWereNot(t *testing.T) {
	t.Parallel()
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	v := &victim{t: t, killed: map[string]int{}}
	v.run("useradd", "-m", "opal")
	v.home = strings.Split(v.run("getent", "passwd", "opal"), ":")[5]
	v.uid = strings.TrimSpace(v.run("id", "-u", "opal"))
	v.run("mkdir", "-p", "/srv/declared", "/srv/runs")
	v.run("chmod", "1777", "/srv/runs")
	for scope, dir := range map[string]string{"s": "/etc/systemd/system", "u": "/etc/systemd/user"} { // what is masked is the machine's
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile("/usr/lib/systemd/"+filepath.Base(dir)+"/"+scope+"-mask.service", []byte("[Service]\nExecStart=/bin/sleep 1003\n"), 0o644))
	}
	v.run("systemctl", "daemon-reload")
	began := v.state()
	boundaries := []string{"recorded", "written", "reloaded", "remembered", "queued"}
	var users []string
	for _, b := range boundaries {
		users = append(users, "user "+b)
	}
	var want []map[string]string
	for _, s := range scenes() {
		v.declare(s.trigger, s.docs)
		require.False(t, v.host(never), "it was not to be killed")
		want = append(want, v.state())
	}
	require.Empty(t, cmp.Diff(began, want[len(want)-1]), "withdrawn, and not as it was found")

	// One host after the other is killed, each at the boundary behind the one before;
	// in the long run each also by itself.
	whole := os.Getenv("STEAD_CHECK") == "full"
	for _, order := range [][]string{append(slices.Clone(boundaries), users...), append(slices.Clone(users), boundaries...)} {
		for i, s := range scenes() {
			v.declare(s.trigger, s.docs)
			for _, at := range order {
				if !v.host(at) {
					break // nothing is left to do
				}
			}
			require.False(t, v.host(never))
			require.Empty(t, cmp.Diff(want[i], v.state()), "%s, killed at %v", s.name, order)
		}
	}
	for i := 0; whole && i < len(boundaries)*2; i++ {
		at := append(slices.Clone(boundaries), users...)[i]
		for i, s := range scenes() {
			v.declare(s.trigger, s.docs)
			v.host(at)
			require.False(t, v.host(never))
			require.Empty(t, cmp.Diff(want[i], v.state()), "%s, killed at %s", s.name, at)
		}
	}
	t.Logf("killed at %v", v.killed)
	for _, at := range append(boundaries, users...) {
		require.NotZero(t, v.killed[at], at)
	}
}

func (v *victim) run(name string, args ...string) string {
	v.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(v.t, err, "%s", out)
	return string(out)
}

func (v *victim) declare(trigger string, docs []string) {
	v.t.Helper()
	require.NoError(v.t, os.WriteFile("/srv/trigger", []byte(trigger), 0o644))
	require.NoError(v.t, os.WriteFile("/srv/declared/all.yaml", []byte(strings.Join(docs, "---\n")), 0o644))
}

// host runs a host until it was killed, or all is as declared, and says whether it
// was killed.
func (v *victim) host(at string) (killed bool) {
	v.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), killEnv+"="+at)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(v.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	calm := 0
	for end := time.Now().Add(90 * time.Second); ; {
		select {
		case <-ended:
			_, name, _ := strings.Cut(said.String(), "killed at ")
			require.NotEmpty(v.t, name, "%s", said.String())
			name, _, _ = strings.Cut(name, "\n")
			v.killed[name]++
			return true
		case <-time.After(100 * time.Millisecond):
		}
		if calm++; !v.done() {
			calm = 0
		}
		if calm == 5 {
			require.NoError(v.t, cmd.Process.Signal(syscall.SIGTERM))
			<-ended
			return false
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			v.t.Fatalf("it does not come to rest: %s", said.String())
		}
	}
}

// done reports whether everything is as declared, or given back.
func (v *victim) done() bool {
	st, err := ReadStatus(v.t.Context(), "/srv/host.sock")
	if err != nil || st.Source.Accepted.IsZero() || st.Source.Taking || len(st.Source.Leaving) > 0 {
		return false
	}
	text, _ := os.ReadFile("/srv/declared/all.yaml")
	declared := strings.Count(string(text), "shape: service")
	if len(st.Reports) != declared {
		return false
	}
	for _, r := range st.Reports {
		if r.Outcome != report.Converged {
			return false
		}
	}
	_, lingers := os.Lstat("/var/lib/systemd/linger/opal")
	return declared > 0 || lingers != nil
}

// state is what there is of units: files, links and modes, how they stand, and how
// often they ran and were reloaded.
func (v *victim) state() map[string]string {
	v.t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"/etc/systemd/system", "/etc/systemd/user", v.home} {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			is := fmt.Sprint(info.Mode(), " ", info.Sys().(*syscall.Stat_t).Uid)
			if target, err := os.Readlink(p); err == nil {
				is += " → " + target
			} else if text, err := os.ReadFile(p); err == nil {
				is += " " + string(text)
			}
			all[p] = is
			return nil
		})
	}
	for _, n := range []string{"web", "reads", "once", "mask"} {
		all["s-"+n] = v.run("systemctl", "show", "-p", "LoadState", "-p", "ActiveState", "s-"+n)
		out, err := exec.Command("runuser", "-u", "opal", "--", "env", "XDG_RUNTIME_DIR=/run/user/"+v.uid,
			"systemctl", "--user", "show", "-p", "LoadState", "-p", "ActiveState", "u-"+n).Output()
		if err != nil {
			out = []byte("no manager")
		}
		all["u-"+n] = string(out)
	}
	return all
}
