package delegate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/become"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// An account that no machine has: numbers suffice to be somebody else.
const (
	someUID = 61234
	someGID = 61234
)

// TestMain makes of this program the child when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(beChild(os.Args[2], strings.TrimPrefix(os.Args[3], "--as=")))
	}
	os.Exit(m.Run())
}

// beChild serves, or misbehaves.
func beChild(how, as string) int {
	if how == "good" {
		if err := Be(context.Background(), as, nil, slog.New(slog.DiscardHandler)); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
		return 0
	}
	who, err := become.Parse(as)
	if err != nil || who.Become() != nil {
		return 3
	}
	if how == "dies" {
		os.Stderr.WriteString("no such luck\x1b[31m\n")
		return 1
	}
	switch how {
	case "complains", "tells":
		chatter(how)
		return 0
	case "robs":
		return robs()
	}
	ossignal.Ignore(syscall.SIGTERM)
	in := bufio.NewReader(os.Stdin)
	for {
		text, _, err := receive(in, func() (int, int) { return maxAsk, maxAsk })
		if err != nil {
			return 0
		}
		var a ask
		if json.Unmarshal(text, &a) != nil {
			return 2
		}
		misbehave(how, a)
	}
}

func misbehave(how string, a ask) {
	if a.Op == opOpen || a.Op == opWatch {
		_ = send(os.Stdout, reply{ID: a.ID}, nil)
		return
	}
	secret := plan.Entry{Kind: plan.File, Digest: digestOf([]byte("somebody else's")), Mode: 0o600}
	switch how {
	case "silent":
		time.Sleep(time.Hour)
	case "foreign":
		_ = send(os.Stdout, reply{ID: a.ID + 7}, nil)
	case "huge":
		_, _ = os.Stdout.Write([]byte{0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0})
	case "many":
		text := []byte(`{"id":` + itoa(a.ID) + `,"paths":[`)
		for range 40 << 10 {
			text = append(text, `"",`...)
		}
		_ = send(os.Stdout, json.RawMessage(append(text, `""]}`...)), nil)
	case "few":
		_ = send(os.Stdout, reply{ID: a.ID}, nil)
	case "digest":
		_ = send(os.Stdout, reply{ID: a.ID, Entry: secret}, []byte("mine"))
	case "wants":
		d := plan.Disk{Wants: []plan.Want{{Path: a.Queries[0].Memory.Name, Entry: secret, Why: "content"}}}
		_ = send(os.Stdout, reply{ID: a.ID, Disks: []looked{{Disk: d}}}, nil)
	case "swaps":
		w := plan.Want{Path: Config{Home: "/nowhere"}.ConfigDir() + "/web.service", Entry: secret, Why: "content"}
		_ = send(os.Stdout, reply{ID: a.ID, Disks: []looked{{Disk: plan.Disk{Wants: []plan.Want{w}}}}}, nil)
	case "colours":
		_ = send(os.Stdout, reply{ID: a.ID, Disks: []looked{{Disk: plan.Disk{Fragment: "/x/\x1b[2J"},
			Errs: []*fault.Told{{Class: "mine", Cause: "a\x1b[31mb\nc"}}}}}, nil)
	}
}

func itoa(n uint64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// rig is a delegate and the home that it is for.
type rig struct {
	*Delegate
	home string
}

func newRig(t *testing.T, how string, before ...func(*Delegate)) *rig {
	home := t.TempDir()
	for dir := home; dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chown(home, someUID, someGID))
	if how == "swaps" {
		home = "/nowhere"
	}
	d, err := New(Options{Login: become.Login{Name: "opal", UID: someUID, GID: someGID, Home: home}, Logger: slog.New(slog.DiscardHandler),
		Arguments: []string{"child", how}, Answer: 5 * time.Second})
	require.NoError(t, err)
	r := &rig{d, home}
	for _, f := range before {
		f(d)
	}
	r.Open([]string{"/etc/systemd/user", r.ConfigDir()}, 252)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return r
}

// briefly waits for an answer no longer than a child on a busy machine takes to begin.
func briefly(d *Delegate) { d.o.Answer = 2 * time.Second }

func web(content string) *shape.Service {
	return &shape.Service{Name: "web", Scope: unit.User, Unit: "web.service", Content: &content, Timeout: time.Minute, OnWithdraw: shape.Restore}
}

func (r *rig) look(t *testing.T, s *shape.Service) plan.Disk {
	all, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: s}})
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func TestFilesAreWrittenByTheAccount(t *testing.T) {
	r := newRig(t, "good")
	s := web("[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=default.target\n")
	on := true
	s.Enabled = &on
	k := r.look(t, s)
	require.Empty(t, k.Errs)
	require.Len(t, k.Wants, 2)
	require.Equal(t, *s.Content, string(k.Wants[0].Content))
	require.Equal(t, plan.Absent, k.At[k.Wants[0].Path].Kind)

	var changes []plan.Change
	for _, w := range k.Wants {
		changes = append(changes, plan.Change{Path: w.Path, Entry: w.Entry, Content: w.Content})
	}
	require.Equal(t, []string{r.home + "/.config", r.home + "/.config/systemd", r.ConfigDir()}, r.Missing([]string{k.Wants[0].Path}))
	done := r.Apply(context.Background(), changes)
	require.Equal(t, []error{nil, nil}, done.Errs)
	require.Contains(t, done.Made, r.ConfigDir())

	var st syscall.Stat_t
	require.NoError(t, syscall.Lstat(k.Wants[0].Path, &st))
	require.EqualValues(t, someUID, st.Uid)
	require.EqualValues(t, someGID, st.Gid)
	k = r.look(t, s)
	for _, w := range k.Wants {
		require.Equal(t, w.Entry, k.At[w.Path])
	}

	entry, data, err := r.Snapshot(k.Wants[0].Path)
	require.NoError(t, err)
	require.Equal(t, *s.Content, string(data))
	require.Equal(t, someUID, entry.UID)

	require.NoError(t, os.WriteFile(k.Wants[0].Path, []byte("[Service]\nExecStart=/bin/edited\n"), 0o644))
	changes[0].Keep = true
	done = r.Apply(context.Background(), changes[:1])
	require.Equal(t, []error{nil}, done.Errs)
	copied, err := os.ReadFile(done.Kept[changes[0].Path])
	require.NoError(t, err)
	require.Contains(t, string(copied), "/bin/edited")
	require.Contains(t, done.Kept[changes[0].Path], r.home+"/.local/state/stead/kept/")
}

func TestWhatLeadsOutOfTheHomeIsNotWritten(t *testing.T) {
	r := newRig(t, "good")
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o700)) // root's
	require.NoError(t, os.MkdirAll(r.home+"/.config/systemd", 0o755))
	require.NoError(t, os.Symlink(root, r.ConfigDir()))
	s := web("[Service]\nExecStart=/bin/true\n")
	k := r.look(t, s)
	done := r.Apply(context.Background(), []plan.Change{{Path: r.ConfigDir() + "/web.service", Entry: k.Wants[0].Entry, Content: k.Wants[0].Content}})
	require.Error(t, done.Errs[0])
	require.ErrorContains(t, done.Errs[0], "permission denied")
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
	_, _, err = r.Snapshot(root + "/x")
	require.ErrorContains(t, err, "permission denied")
}

func TestWhatHappensInTheHomeIsTold(t *testing.T) {
	r := newRig(t, "good")
	require.NoError(t, os.MkdirAll(r.ConfigDir(), 0o755))
	for _, p := range []string{r.home + "/.config", r.home + "/.config/systemd", r.ConfigDir()} {
		require.NoError(t, os.Chown(p, someUID, someGID))
	}
	r.Set([]string{r.ConfigDir()})
	require.Eventually(t, func() bool {
		select {
		case <-r.Wake():
			r.Drain()
		default:
		}
		require.NoError(t, os.WriteFile(r.ConfigDir()+"/web.service", []byte("[Unit]\n"), 0o644))
		select {
		case <-r.Wake():
		case <-time.After(500 * time.Millisecond):
			return false
		}
		paths, all := r.Drain()
		return !all && slices.Contains(paths, r.ConfigDir()+"/web.service")
	}, 20*time.Second, time.Millisecond)
}

func TestAKilledChildIsReplaced(t *testing.T) {
	r := newRig(t, "good")
	s := web("[Service]\nExecStart=/bin/true\n")
	r.look(t, s)
	r.mu.Lock()
	pid := r.process.cmd.Process.Pid
	r.mu.Unlock()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		all, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: s}})
		if err != nil {
			require.Contains(t, []fault.Class{fault.Unavailable}, fault.ClassOf(err))
			return false
		}
		return len(all) == 1 && len(all[0].Wants) == 1
	}, 20*time.Second, 10*time.Millisecond)
	_, all := r.Drain()
	require.True(t, all, "nobody watched meanwhile")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEqual(t, pid, r.process.cmd.Process.Pid)
}

func TestAStoppedChildIsNotWaitedForLong(t *testing.T) {
	r := newRig(t, "good", briefly)
	s := web("[Service]\nExecStart=/bin/true\n")
	require.Eventually(t, func() bool {
		_, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: s}})
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	r.mu.Lock()
	pid := r.process.cmd.Process.Pid
	r.mu.Unlock()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return err == nil && strings.Contains(string(text), "State:\tT")
	}, 10*time.Second, time.Millisecond)
	// The first to wait for it may be who tells it the folders to watch.
	if _, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: s}}); err != nil {
		require.Contains(t, []fault.Class{fault.Timeout, fault.Unavailable}, fault.ClassOf(err), "%v", err)
	}
	require.Eventually(t, func() bool {
		_, err := r.Look(context.Background(), []plan.Query{{Unit: "web.service", Service: s}})
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEqual(t, pid, r.process.cmd.Process.Pid)
}

// A caller that goes away leaves the child, and the next call its own answer.
func TestACallersGoingMixesNoAnswers(t *testing.T) {
	r := newRig(t, "good")
	r.look(t, web("[Service]\nExecStart=/bin/true\n"))
	for range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		_, _ = r.Look(ctx, []plan.Query{{Unit: "web.service", Service: web("[Service]\nExecStart=/bin/true\n")}})
		require.Empty(t, r.Missing(nil))
	}
	require.Len(t, r.look(t, web("[Service]\nExecStart=/bin/true\n")).Wants, 1)
	require.Empty(t, r.Trouble())
}

func TestALyingChildIsNotBelieved(t *testing.T) {
	look := func(r *rig) error {
		q := plan.Query{Unit: "web.service", Service: web("[Service]\nExecStart=/bin/true\n")}
		q.Memory.Name = "/etc/passwd"
		_, err := r.Look(context.Background(), []plan.Query{q})
		return err
	}
	snapshot := func(r *rig) error {
		_, data, err := r.Snapshot(r.home + "/x")
		if len(data) > 0 {
			t.Errorf("believed: %q", data)
		}
		return err
	}
	for _, c := range []struct {
		how, says string
		call      func(*rig) error
	}{
		{"foreign", "nobody asked for", look},
		{"huge", "bytes; at most", look},
		{"many", "parts", look},
		{"few", "0 units, asked about 1", look},
		{"digest", "not those that it states", snapshot},
		{"wants", "declared by nobody", look},
	} {
		t.Run(c.how, func(t *testing.T) {
			r := newRig(t, c.how)
			err := c.call(r)
			require.ErrorContains(t, err, c.says)
		})
	}
	t.Run("silent", func(t *testing.T) {
		r := newRig(t, "silent", briefly)
		require.Equal(t, fault.Timeout, fault.ClassOf(look(r)))
	})
}

// Bytes of a digest that the account names are fetched from the ledger when
// something is put back: what shall stand in a declared file is never its word.
func TestWhatADeclaredFileHoldsIsNotTheChildsWord(t *testing.T) {
	r := newRig(t, "swaps")
	s := web("[Service]\nExecStart=/bin/true\n")
	k := r.look(t, s)
	require.Equal(t, *s.Content, string(k.Wants[0].Content))
	require.Equal(t, digestOf([]byte(*s.Content)), k.Wants[0].Entry.Digest)
	require.Equal(t, someUID, k.Wants[0].Entry.UID)
}

func TestWhatIsNoTextIsNotShown(t *testing.T) {
	r := newRig(t, "colours")
	k := r.look(t, web("[Service]\nExecStart=/bin/true\n"))
	require.Len(t, k.Errs, 2)
	for _, err := range k.Errs {
		require.NotContains(t, err.Error(), "\x1b")
		require.NotContains(t, err.Error(), "\n")
	}
	require.Equal(t, fault.Failed, fault.ClassOf(k.Errs[0]), "a class of its own making")
}

func TestTroubleIsTold(t *testing.T) {
	r := newRig(t, "dies")
	require.Eventually(t, func() bool { return r.Trouble() != "" }, 20*time.Second, 10*time.Millisecond)
	require.Contains(t, r.Trouble(), "no such luck")
	require.NotContains(t, r.Trouble(), "\x1b")
	_, err := r.Look(context.Background(), nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
}

func TestRootIsNoAccount(t *testing.T) {
	_, err := New(Options{Login: become.Login{Name: "root", Home: "/root"}, Logger: slog.New(slog.DiscardHandler)})
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.Equal(t, fault.Refused, fault.ClassOf(Serve(context.Background(), Ends{})))
}
