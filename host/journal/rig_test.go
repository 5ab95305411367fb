package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/seats"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// f is one field of an entry.
type f struct{ name, value string }

// say logs entries by journald's own protocol, and waits until they are on disk.
func say(t testing.TB, all ...[]f) {
	t.Helper()
	sayNow(t, all...)
	tool(t, "journalctl", "--sync")
}

// sayNow logs entries and waits for nothing.
func sayNow(t testing.TB, all ...[]f) {
	t.Helper()
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: "/run/systemd/journal/socket", Net: "unixgram"})
	require.NoError(t, err)
	defer c.Close()
	for _, fields := range all {
		var b bytes.Buffer
		for _, one := range fields {
			b.WriteString(one.name + "\n")
			require.NoError(t, binary.Write(&b, binary.LittleEndian, uint64(len(one.value))))
			b.WriteString(one.value + "\n")
		}
		if b.Len() < 64<<10 {
			_, err := c.Write(b.Bytes())
			require.NoError(t, err)
			continue
		}
		sayLarge(t, c, b.Bytes())
	}
}

// sayLarge hands journald a sealed file, since a datagram would be too large.
func sayLarge(t testing.TB, c *net.UnixConn, data []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("entry", unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "entry")
	defer file.Close()
	_, err = file.Write(data)
	require.NoError(t, err)
	_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	require.NoError(t, err)
	socket, err := c.File()
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, unix.Sendmsg(int(socket.Fd()), nil, unix.UnixRights(int(file.Fd())), nil, 0))
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
