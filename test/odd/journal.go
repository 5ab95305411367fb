package odd

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
)

// Field is one of a journal entry: its name and its value.
type Field [2]string

// huge is a field that no message of the mesh can hold.
const huge = 3 << 20

// Entries are journal entries with fields that are no text, long, empty, there
// twice and not there.
func Entries() [][]Field {
	all := string([]byte{0, 1, 0x7f, 0x80, 0xff, 0xfe, '\n', '"', '\\'})
	return [][]Field{
		{{"MESSAGE", "odd bytes " + all}, {"ODD_BYTES", all}},
		{{"MESSAGE", "odd \x1b[31mcolour\x1b[0m\tand\u2028lines\nof <text> & \u00e4\U0001f642"}},
		{{"MESSAGE", ""}, {"ODD_EMPTY", ""}},
		{{"ODD_ALONE", "without a message"}},
		{{"MESSAGE", "odd and long"}, {"ODD_LONG", strings.Repeat("x", 10000)}, {"ODD_LONG_BYTES", strings.Repeat("\xff", 10000)}},
		{{"MESSAGE", "odd and twice"}, {"MESSAGE", "over"}, {"ODD_TWICE", "a"}, {"ODD_TWICE", "\xff"}, {"ODD_TWICE", ""}},
		{{"MESSAGE", "odd and huge"}, {"ODD_HUGE", strings.Repeat("y", huge)}, {"ODD_SMALL", "stays"}},
	}
}

// Say logs entries on this machine by journald's own protocol.
func Say(entries ...[]Field) error {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: "/run/systemd/journal/socket", Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, fields := range entries {
		var b []byte
		for _, f := range fields {
			b = append(append(b, f[0]...), '\n')
			b = binary.LittleEndian.AppendUint64(b, uint64(len(f[1])))
			b = append(append(b, f[1]...), '\n')
		}
		if len(b) < 64<<10 {
			_, err = c.Write(b)
		} else {
			err = sayLarge(c, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sayLarge hands journald a sealed file, since a datagram would be too large.
func sayLarge(c *net.UnixConn, data []byte) error {
	fd, err := unix.MemfdCreate("entry", unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "entry")
	defer file.Close()
	if _, err = file.Write(data); err != nil {
		return err
	}
	_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	if err != nil {
		return err
	}
	socket, err := c.File()
	if err != nil {
		return err
	}
	defer socket.Close()
	return unix.Sendmsg(int(socket.Fd()), nil, unix.UnixRights(int(file.Fd())), nil, 0)
}

// entry is one of the journal, with its fields as they are written.
type entry map[string]json.RawMessage

func (c comparison) read(text []byte) entry {
	c.Helper()
	var e entry
	require.NoError(c, json.Unmarshal(text, &e), "%.200s", text)
	return e
}

// said is what journalctl says of the same.
func (c comparison) said(args ...string) []entry {
	c.Helper()
	var all []entry
	for line := range strings.Lines(c.run(append([]string{"journalctl", "-o", "json", "--all", "--no-pager"}, args...)...)) {
		all = append(all, c.read([]byte(line)))
	}
	return all
}

// told is what the verb says, all pages of it.
func (c comparison) told(a seats.JournalArguments) (all []entry, omitted []seats.OmittedField, err error) {
	c.Helper()
	a.Scope = c.scope
	for {
		page, err := answer[seats.JournalReply](c, seats.Journal, a)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range page.Entries {
			all = append(all, c.read(e))
		}
		if omitted = append(omitted, page.Omitted...); !page.More {
			return all, omitted, nil
		}
		a.Cursor, a.Lines = page.Cursor, nil
	}
}

// same holds what the verb says against what journalctl said before it and says
// behind it, and returns how many entries that were.
func (c comparison) same(what string, before, told, after []entry) int {
	c.Helper()
	require.LessOrEqual(c, len(before), len(told), what)
	require.LessOrEqual(c, len(told), len(after), what)
	for i := range told {
		require.Equal(c, fields(after[i]), fields(told[i]), "entry %d of %s", i, what)
	}
	for i := range before {
		require.Equal(c, before[i]["__CURSOR"], told[i]["__CURSOR"], "entry %d of %s", i, what)
	}
	return len(told)
}

// fields are what stands in an entry: journalctl writes them in another order each
// time.
func fields(e entry) string {
	text, _ := json.Marshal(e) // it was read from JSON
	return string(text)
}

// journals holds what the journal says of each unit against journalctl. The
// definition of one that cannot be loaded is complained about at every look.
func (c comparison) journals() {
	units, most := 0, 10000
	for _, n := range c.names() {
		id := strings.TrimSpace(c.run("systemctl", "show", "-P", "Id", "--", string(n)))
		if !strings.Contains(id, "odd") {
			continue
		}
		if c.ofUnit(n, id, most) > 0 {
			units++
		}
	}
	require.GreaterOrEqual(c, units, c.least.journals/c.each)
	c.Logf("the journal of %d units", units)
}

func (c comparison) ofUnit(n unit.Name, id string, most int) int {
	c.Helper()
	flag := map[string]string{"system": "--unit=", "user": "--user-unit="}[c.scope]
	before := c.said(flag + id)
	told, omitted, err := c.told(seats.JournalArguments{Unit: string(n), Lines: &most})
	if fault.Is(err, fault.NotFound) {
		require.Empty(c, before, n)
		return 0
	}
	require.NoError(c, err, n)
	require.Empty(c, omitted, n)
	return c.same(string(n), before, told, c.said(flag+id))
}

// journal holds all that the journal has of this boot against journalctl, what Say
// wrote among it.
func (c comparison) journal() {
	before := c.said("-b")
	told, omitted, err := c.told(seats.JournalArguments{Boot: "0", Since: "@0"})
	require.NoError(c, err)
	after := c.said("-b")
	for _, o := range omitted {
		for _, e := range after {
			if string(e["__CURSOR"]) == `"`+o.Cursor+`"` {
				require.Len(c, e[o.Field], int(o.Bytes), o.Field)
				e[o.Field] = json.RawMessage("null")
			}
		}
	}
	n := c.same("the journal", before, told, after)
	require.Len(c, omitted, 1)
	require.Equal(c, "ODD_HUGE", omitted[0].Field)
	for what, text := range map[string]string{
		"bytes": `"ODD_BYTES":[0,1,127,128,255,254,10,34,92]`, "a field without text": `"ODD_EMPTY":""`, "a long field": `"ODD_LONG":"` + strings.Repeat("x", 10000),
		"a field that is there thrice": `"ODD_TWICE":["a",[255],""]`, "what is beside a huge field": `"ODD_SMALL":"stays"`,
	} {
		require.True(c, holds(told, text), what)
	}
	c.Logf("%d entries of the whole journal", n)
}

// holds reports whether one of the entries has a field that is written so.
func holds(all []entry, text string) bool {
	return slices.ContainsFunc(all, func(e entry) bool { return strings.Contains(fields(e), text) })
}
