package journal

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/seats"
	"stead/test/odd"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// f is one field of an entry.
type f = odd.Field

// say logs entries by journald's own protocol, and waits until they are on disk.
func say(t testing.TB, all ...[]f) {
	t.Helper()
	sayNow(t, all...)
	tool(t, "journalctl", "--sync")
}

// sayNow logs entries and waits for nothing.
func sayNow(t testing.TB, all ...[]f) {
	t.Helper()
	require.NoError(t, odd.Say(all...))
}

// line is a plain entry of a program that no other test has.
func line(who, text string) []f { return []f{{"SYSLOG_IDENTIFIER", who}, {"MESSAGE", text}} }

func tool(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, "%q: %s", args, out)
	return string(out)
}

// service runs a command as a unit and waits until it is done.
func service(t testing.TB, unit string, command ...string) {
	t.Helper()
	tool(t, append([]string{"systemd-run", "--quiet", "--wait", "--unit=" + unit}, command...)...)
	tool(t, "journalctl", "--sync")
}

// said is what journalctl itself says, oldest first.
func said(t testing.TB, args ...string) []map[string]any {
	t.Helper()
	cmd := exec.Command("journalctl", append([]string{"-o", "json", "--all", "--no-pager", "--quiet"}, args...)...)
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []map[string]any
	for text := range strings.Lines(string(out)) {
		all = append(all, object(t, []byte(text)))
	}
	return all
}

func object(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var e map[string]any
	require.NoError(t, json.Unmarshal(text, &e), "%s", text)
	return e
}

func objects(t testing.TB, entries []json.RawMessage) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, e := range entries {
		all = append(all, object(t, e))
	}
	return all
}

// messages are the texts of entries.
func messages(t testing.TB, entries []json.RawMessage) []string {
	t.Helper()
	var all []string
	for _, e := range objects(t, entries) {
		all = append(all, fmt.Sprint(e["MESSAGE"]))
	}
	return all
}

func read(t testing.TB, a seats.JournalArguments) seats.JournalReply {
	t.Helper()
	p, err := Reader{}.Read(t.Context(), a)
	require.NoError(t, err)
	require.LessOrEqual(t, len(p.JSON()), 1<<20-4<<10, "a page fits into a message")
	return p
}

func lines(n int) *int { return &n }
