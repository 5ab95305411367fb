package delegate

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/become"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

func conf(content string) *shape.Declaration {
	return &shape.Declaration{Name: "file:conf", Scope: unit.User, Content: &content, OnWithdraw: shape.Restore, File: &shape.File{Path: "~/.config/app/a.toml", Mode: 0o600}}
}

func TestADeclaredFileIsWrittenByTheAccount(t *testing.T) {
	r := newRig(t, "good")
	s := conf("a")
	ask := func() plan.Disk {
		t.Helper()
		all, err := r.Look(context.Background(), []plan.Query{{Unit: s.Object(), Service: s}})
		require.NoError(t, err)
		require.Empty(t, all[0].Errs)
		return all[0]
	}
	k := ask()
	require.Equal(t, r.home+"/.config/app/a.toml", k.Real)
	w := k.Wants[0]
	require.Equal(t, []error{nil}, r.Apply(context.Background(), []plan.Change{{Path: w.Path, Entry: w.Entry, Content: w.Content}}).Errs)
	var st syscall.Stat_t
	require.NoError(t, syscall.Lstat(k.Real, &st))
	require.Equal(t, []uint32{someUID, someGID, 0o100600}, []uint32{st.Uid, st.Gid, st.Mode})
	k = ask()
	require.Equal(t, w.Entry, k.At[k.Real])
	require.NoError(t, os.Rename(r.home+"/.config/app", r.home+"/.config/gone"))
	require.NoError(t, os.Symlink("/etc", r.home+"/.config/app"))
	require.Equal(t, report.Protected, ask().Denied.Reason, "links of the account lead nowhere else")
}

// What a child says of a declared file is where it stands, and why it does not.
func TestWhatAChildSaysOfAFileIsJudged(t *testing.T) {
	d, err := New(Options{Login: become.Login{Name: "opal", UID: someUID, GID: someGID, Home: "/nowhere"}, Logger: slog.New(slog.DiscardHandler), Arguments: []string{"child"}})
	require.NoError(t, err)
	s := conf("a")
	q := plan.Query{Unit: s.Object(), Service: s}
	secret := plan.Entry{Kind: plan.File, Digest: digestOf([]byte("somebody else's")), Mode: 0o777}
	want := func(p string) plan.Want { return plan.Want{Path: p, Entry: secret, Content: []byte("b"), Why: "x"} }

	k, err := d.judge(q, looked{Disk: plan.Disk{Real: "/nowhere/a", Wants: []plan.Want{want("/nowhere/a")}, Fragment: "/x", OwnLinks: []string{"/y"}}})
	require.NoError(t, err)
	require.Equal(t, "a", string(k.Wants[0].Content))
	require.Equal(t, plan.Entry{Kind: plan.File, Digest: digestOf([]byte("a")), Mode: 0o600, UID: someUID, GID: someGID}, k.Wants[0].Entry)
	require.Empty(t, k.Fragment+k.Mask, "a file has nothing of a unit")
	require.Empty(t, k.OwnLinks)

	for name, bad := range map[string]plan.Disk{
		"elsewhere":     {Real: "/nowhere/a", Wants: []plan.Want{want("/nowhere/b")}},
		"two":           {Real: "/nowhere/a", Wants: []plan.Want{want("/nowhere/a"), want("/nowhere/a")}},
		"no path":       {Real: "a", Wants: []plan.Want{want("a")}},
		"not clean":     {Real: "/nowhere/../a", Wants: []plan.Want{want("/nowhere/../a")}},
		"other reasons": {Denied: plan.Denial{Reason: report.BadUnit, Text: "x"}},
	} {
		_, err := d.judge(q, looked{Disk: bad})
		require.ErrorContains(t, err, "broke the rules", name)
	}
	k, err = d.judge(q, looked{Disk: plan.Disk{Denied: plan.Denial{Reason: plan.DeniedTarget, Text: "a\x1b[31mb"}}})
	require.NoError(t, err)
	require.NotContains(t, k.Denied.Text, "\x1b")
}
