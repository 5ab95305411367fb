package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/seats"
	"stead/test/lab"
)

func TestEntriesAreThoseOfJournalctl(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	who := f{"SYSLOG_IDENTIFIER", "odd"}
	say(t,
		[]f{who, {"MESSAGE", "plain"}, {"PRIORITY", "3"}},
		[]f{who, {"MESSAGE", "bytes \xff\x00\x1b[2J"}},
		[]f{who, {"MESSAGE", "two\nlines <b>&amp; \u2028 \"__CURSOR\":\"s=1\" \\"}, {"TRAP", `"__CURSOR" : "s=2"`}},
		[]f{who, {"MESSAGE", "twice"}, {"F", "1"}, {"F", "2"}, {"F", "\xfe"}},
		[]f{who, {"NO_MESSAGE", ""}},
		[]f{who, {"MESSAGE", strings.Repeat("long ", 5000)}},
		[]f{who, {"MESSAGE", strings.Repeat("\x01", 30000)}},
		[]f{who, {"MESSAGE", "last"}},
	)
	// One name, one object: the order of the fields differs from run to run.
	want := said(t)
	require.Greater(t, len(want), 20)
	got := read(t, seats.JournalArguments{Lines: lines(MaxEntries)})
	require.Equal(t, want, objects(t, got.Entries))
	require.Equal(t, want[len(want)-1]["__CURSOR"], got.Cursor)
	require.False(t, got.More)
	require.Empty(t, got.Omitted)

	var back seats.JournalReply
	require.NoError(t, json.Unmarshal(got.JSON(), &back))
	require.Equal(t, got, back, "byte for byte, over the wire")

	var streamed []json.RawMessage
	require.NoError(t, Reader{}.Stream(t.Context(), seats.JournalArguments{Lines: lines(MaxEntries)}, func(p seats.JournalReply) error {
		streamed = append(streamed, p.Entries...)
		return nil
	}))
	require.Equal(t, want, objects(t, streamed))
}

func TestEveryArgumentIsHeeded(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	service(t, "talks-a", "/bin/sh", "-c", "echo a1; echo a2")
	service(t, "talks-b", "/bin/sh", "-c", "echo '<3>b1'; echo '<7>b2'; echo '<4>b3'")
	for i := range 30 {
		say(t, line("counts", fmt.Sprintf("number %d", i)))
	}
	all := said(t, "-t", "counts")
	at := func(i int) string { // the time of the ith number
		us, err := strconv.ParseInt(all[i]["__REALTIME_TIMESTAMP"].(string), 10, 64)
		require.NoError(t, err)
		return fmt.Sprintf("@%d.%06d", us/1e6, us%1e6)
	}
	boot := all[0]["_BOOT_ID"].(string)
	numbers := func(from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprintf("number %d", i))
		}
		return out
	}
	is := func(want []string, a seats.JournalArguments) {
		t.Helper()
		require.Equal(t, want, messages(t, read(t, a).Entries))
		var streamed []json.RawMessage
		require.NoError(t, Reader{}.Stream(t.Context(), a, func(p seats.JournalReply) error {
			streamed = append(streamed, p.Entries...)
			return nil
		}))
		require.Equal(t, want, messages(t, streamed))
	}
	manager := func(unit string) []string { // what the manager says about a unit is the unit's too
		var out []string
		for _, e := range said(t, "-u", unit) {
			out = append(out, e["MESSAGE"].(string))
		}
		require.NotEmpty(t, out)
		return out
	}
	is(numbers(28, 30), seats.JournalArguments{Lines: lines(2)})
	is(nil, seats.JournalArguments{Lines: lines(0)})
	is(manager("talks-a.service"), seats.JournalArguments{Unit: "talks-a.service"})
	is(manager("talks-a.service"), seats.JournalArguments{Unit: "talks-a"})
	is(manager("talks-*"), seats.JournalArguments{Unit: "talks-*"})
	is(nil, seats.JournalArguments{Unit: "no-such-*"})
	is(nil, seats.JournalArguments{Grep: "nobody says that"})
	is(nil, seats.JournalArguments{Grep: "nobody says that", Since: "-1h"})
	is(nil, seats.JournalArguments{Grep: "nobody says that", Cursor: all[24]["__CURSOR"].(string)})
	is(nil, seats.JournalArguments{Unit: "no-such.service"})
	is([]string{"b1"}, seats.JournalArguments{Unit: "talks-b.service", Priority: "err"})
	is([]string{"b1", "b3"}, seats.JournalArguments{Unit: "talks-b.service", Priority: "3..4"})
	is([]string{"b2"}, seats.JournalArguments{Unit: "talks-b.service", Priority: "debug..debug"})
	is(numbers(10, 20), seats.JournalArguments{Grep: "^number 1.$"})
	is(numbers(18, 20), seats.JournalArguments{Grep: "^NUMBER 1.$|^number 1.$", Lines: lines(2)})
	is(numbers(20, 30), seats.JournalArguments{Since: at(20)})
	is(numbers(25, 30), seats.JournalArguments{Since: at(20), Lines: lines(5)})
	is(numbers(16, 21), seats.JournalArguments{Until: at(20), Lines: lines(5)})
	is(numbers(18, 21), seats.JournalArguments{Since: at(18), Until: at(20)})
	is(numbers(19, 20), seats.JournalArguments{Since: at(18), Until: at(20), Grep: "1.$", Lines: lines(1)})
	is(numbers(28, 30), seats.JournalArguments{Boot: "0", Lines: lines(2)})
	is(numbers(28, 30), seats.JournalArguments{Boot: boot, Lines: lines(2)})
	is(numbers(28, 30), seats.JournalArguments{Boot: "all", Lines: lines(2)})
	is(numbers(25, 30), seats.JournalArguments{Cursor: all[24]["__CURSOR"].(string)})
	is(numbers(25, 27), seats.JournalArguments{Cursor: all[24]["__CURSOR"].(string), Lines: lines(2)})
	is(numbers(25, 28), seats.JournalArguments{Cursor: all[24]["__CURSOR"].(string), Since: at(3), Until: at(27)})
	is([]string{"number 27"}, seats.JournalArguments{Cursor: all[24]["__CURSOR"].(string), Grep: "7$"})
	is(nil, seats.JournalArguments{Cursor: all[29]["__CURSOR"].(string)})

	p := read(t, seats.JournalArguments{Cursor: all[4]["__CURSOR"].(string), Lines: lines(3)})
	require.True(t, p.More)
	require.Equal(t, all[7]["__CURSOR"], p.Cursor)
	p = read(t, seats.JournalArguments{Cursor: all[4]["__CURSOR"].(string), Lines: lines(25)})
	require.False(t, p.More)
	p = read(t, seats.JournalArguments{Cursor: all[29]["__CURSOR"].(string)})
	require.Equal(t, all[29]["__CURSOR"], p.Cursor, "nothing came: from there again")
}

func TestArgumentsThatBreakARuleAreNamed(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	say(t, line("one", "one"))
	for name, c := range map[string]struct {
		a     seats.JournalArguments
		class fault.Class
		text  string
	}{
		"a path":                 {seats.JournalArguments{Unit: "/dev/sda"}, fault.Invalid, `unit: "/dev/sda"`},
		"an option":              {seats.JournalArguments{Unit: "--vacuum-time=1s"}, fault.Invalid, ""},
		"a bad pattern of units": {seats.JournalArguments{Unit: "a*/b"}, fault.Invalid, "no pattern of unit names"},
		"too few lines":          {seats.JournalArguments{Lines: lines(-1)}, fault.Invalid, `lines: "-1"`},
		"too many lines":         {seats.JournalArguments{Lines: lines(MaxEntries + 1)}, fault.Invalid, "must be 0 to 10000"},
		"no time":                {seats.JournalArguments{Since: "some day"}, fault.Invalid, "Failed to parse timestamp: some day"},
		"no time to end":         {seats.JournalArguments{Until: "some day"}, fault.Invalid, "Failed to parse timestamp: some day"},
		"a time with a newline":  {seats.JournalArguments{Since: "now\n"}, fault.Invalid, "since:"},
		"an end before":          {seats.JournalArguments{Since: "now", Until: "yesterday"}, fault.Invalid, "before"},
		"no priority":            {seats.JournalArguments{Priority: "loud"}, fault.Invalid, `priority: "loud"`},
		"half a range":           {seats.JournalArguments{Priority: "3.."}, fault.Invalid, "priority:"},
		"no pattern":             {seats.JournalArguments{Grep: "("}, fault.Invalid, "Bad pattern"},
		"a long pattern":         {seats.JournalArguments{Grep: strings.Repeat("x", maxPattern+1)}, fault.Invalid, "grep:"},
		"no boot":                {seats.JournalArguments{Boot: "last week"}, fault.Invalid, `boot: "last week"`},
		"another boot":           {seats.JournalArguments{Boot: strings.Repeat("0123", 8)}, fault.NotFound, "pecified boot"},
		"a boot too early":       {seats.JournalArguments{Boot: "-99"}, fault.NotFound, "pecified boot"},
		"no cursor":              {seats.JournalArguments{Cursor: "here"}, fault.Invalid, `cursor: "here"`},
		"half a cursor":          {seats.JournalArguments{Cursor: "s=1;i=2"}, fault.Invalid, "Failed to seek to cursor"},
		"no scope":               {seats.JournalArguments{Scope: "session"}, fault.Invalid, `scope: "session"`},
		"the other scope":        {seats.JournalArguments{Scope: "user"}, fault.Unsupported, "scope user"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Reader{}.Read(t.Context(), c.a)
			require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, c.text)
			for _, follow := range []bool{false, true} {
				c.a.Follow = follow
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err = Reader{}.Stream(ctx, c.a, func(seats.JournalReply) error { return nil })
				require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
			}
		})
	}
	_, err := Reader{}.Read(t.Context(), seats.JournalArguments{Unit: "/", Lines: lines(-1), Priority: "x", Boot: "x"})
	for _, field := range []string{"unit:", "lines:", "priority:", "boot:"} {
		require.ErrorContains(t, err, field, "all at once")
	}
}

// TestBootIsLookedForOnce: it is that of the process, and costs a journalctl.
func TestBootIsLookedForOnce(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	var b Boot
	require.Eventually(t, func() bool {
		id, err := b.find(t.Context())
		return err == nil && id != ""
	}, 10*time.Second, 10*time.Millisecond)
	want, err := thisBoot(t.Context())
	require.NoError(t, err)
	t.Setenv("PATH", t.TempDir())
	_, err = thisBoot(t.Context())
	require.Error(t, err, "there is no journalctl any more")
	got, err := b.find(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
