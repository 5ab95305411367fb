package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
	"stead/test/lab"
)

// Two accounts and the system have a unit of one name. One account has no session,
// no shell and a low uid.
func TestF015F110LinesOfAnAccountsUnitAreItsOwn(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	tool(t, "useradd", "--system", "--create-home", "--shell", "/usr/sbin/nologin", "--uid", "990", "opal")
	tool(t, "useradd", "--create-home", "--uid", "1500", "ruby")
	const name = "talks.service"
	text := func(who string) []byte {
		return []byte("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo said by " + who + "; sleep 1'\n") // journald looks up whose line it is
	}
	require.NoError(t, os.WriteFile("/etc/systemd/system/"+name, text("the system"), 0o644))
	for _, who := range []string{"opal", "ruby"} {
		tool(t, "loginctl", "enable-linger", who)
		home := strings.TrimSpace(tool(t, "sh", "-c", "getent passwd "+who+" | cut -d: -f6"))
		dir := filepath.Join(home, ".config/systemd/user")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text(who), 0o644))
		uid := strings.TrimSpace(tool(t, "id", "-u", who))
		tool(t, "sh", "-c", "until systemctl is-active user@"+uid+".service; do sleep 0.05; done")
		tool(t, "runuser", "-u", who, "--", "env", "XDG_RUNTIME_DIR=/run/user/"+uid, "systemctl", "--user", "daemon-reload")
		tool(t, "runuser", "-u", who, "--", "env", "XDG_RUNTIME_DIR=/run/user/"+uid, "systemctl", "--user", "start", name)
	}
	tool(t, "systemctl", "daemon-reload")
	tool(t, "systemctl", "start", name)
	// Fields without an underscore are the sender's: root has no unit of opal's, and
	// neither has ruby.
	say(t, []f{{"MESSAGE", "forged by root"}, {"USER_UNIT", name}})
	tool(t, "runuser", "-u", "ruby", "--", "sh", "-c",
		fmt.Sprintf(`printf 'MESSAGE=forged by ruby\nUSER_UNIT=%s\nCOREDUMP_USER_UNIT=%s\nCOREDUMP_UID=990\n' | logger --journald`, name, name))
	say(t, []f{{"MESSAGE", "opal's process dumped core"}, {"COREDUMP_USER_UNIT", name}, {"COREDUMP_UID", "990"}})
	tool(t, "journalctl", "--sync")

	r := Reader{Scope: unit.User, UID: 990}
	for what, lines := range map[string]string{
		"lines":       strings.Join(r.Lines(t.Context(), []unit.Name{name})[name], "\n"),
		"tail":        strings.Join(must(r.Tail(t.Context(), name, 50))(t), "\n"),
		"read":        strings.Join(messages(t, must(r.Read(t.Context(), seats.JournalArguments{Unit: name, Scope: "user", Boot: "0"}))(t).Entries), "\n"),
		"a bare name": strings.Join(messages(t, must(r.Read(t.Context(), seats.JournalArguments{Unit: "talks", Scope: "user"}))(t).Entries), "\n"),
		"a pattern":   strings.Join(messages(t, must(r.Read(t.Context(), seats.JournalArguments{Unit: "tal?s.*", Scope: "user"}))(t).Entries), "\n"),
	} {
		require.Contains(t, lines, "said by opal", what)
		require.Contains(t, lines, "Finished", "%s: what the manager says of it", what)
		require.Contains(t, lines, "dumped core", what)
		for _, not := range []string{"the system", "ruby", "forged"} {
			require.NotContains(t, lines, not, what)
		}
	}
	all := messages(t, must(r.Read(t.Context(), seats.JournalArguments{Scope: "user"}))(t).Entries)
	require.Contains(t, all, "said by opal")
	require.NotContains(t, all, "said by ruby")
	require.NotContains(t, all, "said by the system")
	require.Empty(t, must(r.Read(t.Context(), seats.JournalArguments{Unit: "none*", Scope: "user"}))(t).Entries)
	_, err := Reader{}.Read(t.Context(), seats.JournalArguments{Scope: "user"})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))

	var streamed []string
	stop := fmt.Errorf("enough")
	err = r.Stream(t.Context(), seats.JournalArguments{Unit: name, Scope: "user", Follow: true, Boot: "0"}, func(p seats.JournalReply) error {
		if streamed = append(streamed, messages(t, p.Entries)...); len(streamed) > 1 {
			return stop
		}
		return nil
	})
	require.ErrorIs(t, err, stop)
	require.Contains(t, strings.Join(streamed, "\n"), "said by opal")
	require.NotContains(t, strings.Join(streamed, "\n"), "ruby")
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
