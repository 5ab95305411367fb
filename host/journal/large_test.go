package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/seats"
	"stead/test/lab"
)

func TestEntryThatIsTooLargeLosesItsLargestFieldsByName(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	who := f{"SYSLOG_IDENTIFIER", "large"}
	several := []f{who, {"MESSAGE", "several"}}
	for i := range 20 {
		several = append(several, f{fmt.Sprintf("PART_%02d", i), strings.Repeat("p", 100<<10)})
	}
	many := []f{who, {"MESSAGE", "many"}}
	for i := range 900 {
		many = append(many, f{fmt.Sprintf("FIELD_%03d_%s", i, strings.Repeat("N", 50)), strings.Repeat("m", 8<<10)})
	}
	say(t,
		[]f{who, {"MESSAGE", "one field"}, {"BLOB", strings.Repeat("y", 1<<20)}, {"BEHIND", "it"}},
		[]f{who, {"MESSAGE", "bytes"}, {"BLOB", strings.Repeat("\xff", 3<<20)}},
		[]f{who, {"MESSAGE", strings.Repeat("long ", 300<<10)}},
		several, many,
		[]f{who, {"MESSAGE", "fits"}, {"BLOB", strings.Repeat("z", MaxEntry-2000)}},
		[]f{who, {"MESSAGE", "small"}},
	)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var got []map[string]any
	omitted := map[string][]string{}
	a := seats.JournalArguments{Grep: ".", Since: "-1h", Unit: ""}
	for more := true; more; {
		p := read(t, a)
		for _, e := range objects(t, p.Entries) {
			if e["SYSLOG_IDENTIFIER"] == "large" {
				got = append(got, e)
			}
		}
		for _, o := range p.Omitted {
			require.Greater(t, o.Bytes, int64(8<<10))
			omitted[o.Cursor] = append(omitted[o.Cursor], o.Field)
		}
		more, a.Cursor = p.More, p.Cursor
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d MiB allocated over all pages", (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Len(t, got, 7)
	of := func(i int) []string { return omitted[got[i]["__CURSOR"].(string)] }
	require.Equal(t, []string{"BLOB"}, of(0))
	require.Equal(t, "one field", got[0]["MESSAGE"])
	require.Nil(t, got[0]["BLOB"])
	require.Contains(t, got[0], "BLOB")
	require.Equal(t, "it", got[0]["BEHIND"])
	require.Equal(t, []string{"BLOB"}, of(1))
	require.Equal(t, []string{"MESSAGE"}, of(2))
	require.Equal(t, "several", got[3]["MESSAGE"])
	require.InDelta(t, 14, len(of(3)), 1, "as many stay as have room")
	require.Greater(t, len(of(4)), 700)
	require.Empty(t, of(5))
	require.Len(t, got[5]["BLOB"], MaxEntry-2000)
	require.Equal(t, "small", got[6]["MESSAGE"])
	// Apart from what was omitted, journalctl says the same.
	for i, want := range said(t, "-t", "large") {
		for _, name := range of(i) {
			require.Contains(t, want, name)
			want[name] = nil
		}
		require.Equal(t, want, got[i])
	}
}

func TestPagesHoldEveryEntryOnce(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	const n = 2400
	var all [][]f
	for i := range n {
		all = append(all, line("pages", fmt.Sprintf("%d %s", i, strings.Repeat("x", i%3000))))
	}
	say(t, all...)
	take := func(a seats.JournalArguments, left int) (got []string, pages int) {
		for more := true; more; pages++ {
			if left > 0 {
				rest := left - len(got)
				a.Lines = &rest
			}
			p := read(t, a)
			for _, m := range messages(t, p.Entries) {
				got = append(got, strings.Fields(m)[0])
			}
			more, a.Cursor = p.More, p.Cursor
		}
		return got, pages
	}
	first := said(t, "-t", "pages", "-n", fmt.Sprint(n))[0]
	us := first["__REALTIME_TIMESTAMP"].(string)
	for name, c := range map[string]struct {
		a     seats.JournalArguments
		left  int
		first int
	}{
		"the newest":           {seats.JournalArguments{}, 1800, n - 1800},
		"the newest that fit":  {seats.JournalArguments{Grep: "^[0-9]+ "}, 1800, n - 1800},
		"all behind a time":    {seats.JournalArguments{Since: "@" + us[:len(us)-6] + "." + us[len(us)-6:], Grep: "^[0-9]+ "}, 0, 0},
		"all behind an entry":  {seats.JournalArguments{Cursor: first["__CURSOR"].(string)}, 0, 1},
		"some behind an entry": {seats.JournalArguments{Cursor: first["__CURSOR"].(string)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "some behind an entry" {
				one := 1
				c.a.Lines = &one
				p := read(t, c.a)
				require.True(t, p.More)
				require.Len(t, p.Entries, 1)
				return
			}
			got, pages := take(c.a, c.left)
			require.Len(t, got, n-c.first)
			for i, text := range got {
				require.Equal(t, fmt.Sprint(c.first+i), text)
			}
			require.Greater(t, pages, 3)
		})
	}
}

// reader is entries over text, with little room.
func reader(text string) *entries {
	return &entries{bufio.NewReaderSize(strings.NewReader(text), 64), 200}
}

func TestEntriesAreReadWhole(t *testing.T) {
	const cursor = `"__CURSOR":"s=1;i=2"`
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct{ in, want, omitted string }{
		"short":              {`{` + cursor + `,"A":"b"}`, `{` + cursor + `,"A":"b"}`, ""},
		"longer than buffer": {`{"A":"` + long[:100] + `",` + cursor + `}`, `{"A":"` + long[:100] + `",` + cursor + `}`, ""},
		"of the largest size": {`{"A":"` + long[:200-len(cursor)-9] + `",` + cursor + `}`,
			`{"A":"` + long[:200-len(cursor)-9] + `",` + cursor + `}`, ""},
		"too large":            {`{"A":"` + long + `",` + cursor + `,"B":"c"}`, `{"A":null,` + cursor + `,"B":"c"}`, "A"},
		"with a list":          {`{"A":["1",[1,2,` + strings.Repeat("3,", 200) + `4],{"x":"]"}],` + cursor + `}`, `{"A":null,` + cursor + `}`, "A"},
		"with marks in a text": {`{"A":"\"\\` + long + `,}{\"","B":"\\",` + cursor + `}`, `{"A":null,"B":"\\",` + cursor + `}`, "A"},
		"with the larger one last": {`{"A":"` + long[:120] + `","B":"` + long[:130] + `",` + cursor + `}`,
			`{"A":"` + long[:120] + `","B":null,` + cursor + `}`, "B"},
		"with blanks":              {`{ "A" : "` + long + `" , ` + cursor + ` }`, `{"A":null,` + cursor + ` }`, "A"},
		"with a trap in its texts": {`{"A":"\"__CURSOR\":\"s=9\"","B":"\"__CURSOR",` + cursor + `}`, `{"A":"\"__CURSOR\":\"s=9\"","B":"\"__CURSOR",` + cursor + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(c.in + "\n" + `{` + cursor + `}` + "\n" + `{"cut`)
			e, err := r.next()
			require.NoError(t, err)
			require.Equal(t, c.want, string(e.raw))
			require.Equal(t, "s=1;i=2", e.cursor)
			require.True(t, json.Valid(e.raw))
			if c.omitted != "" {
				require.Len(t, e.omitted, 1)
				require.Equal(t, c.omitted, e.omitted[0].Field)
				require.Equal(t, "s=1;i=2", e.omitted[0].Cursor)
			} else {
				require.Empty(t, e.omitted)
			}
			e, err = r.next()
			require.NoError(t, err)
			require.Equal(t, `{`+cursor+`}`, string(e.raw))
			_, err = r.next()
			require.ErrorIs(t, err, io.EOF, "what is cut off is dropped")
		})
	}
	for _, bad := range []string{"", "{}", "null", `{"A":1}`, `{"__CURSOR":1}`, `{"__CURSOR":"s=1`, `{"__CURSOR":"s=1"`, `x"__CURSOR":"s=1"`,
		`{"__CURSOR":"s=1",}`, `{"` + long + `":"",` + cursor + `}`, `{"A":"` + long, `["` + long + `"]`, `{"A" "` + long + `"}`, `{A:"` + long + `"}`} {
		_, err := reader(bad + "\n").next()
		require.Error(t, err, "%q", bad)
		require.False(t, errors.Is(err, io.EOF) && !strings.Contains(bad, long), "%q", bad)
	}
	_, err := reader("no entry\n").next()
	require.Equal(t, fault.Failed, fault.ClassOf(err))
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte(`{"__CURSOR":"s=1","A":"b"}` + "\n"))
	f.Add([]byte(`{"A":["1",[1,2]],"B":"` + strings.Repeat(`\"x`, 100) + `","__CURSOR":"s=1"}` + "\n"))
	f.Add([]byte(`{"A":"` + strings.Repeat("x", 400) + `","__CURSOR":"s=1"}` + "\n" + `{}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := reader(string(in))
		for {
			e, err := r.next()
			if err != nil {
				return
			}
			require.True(t, json.Valid(e.raw))
			require.NotEmpty(t, e.cursor)
			var fields map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(e.raw, &fields))
			for _, o := range e.omitted {
				require.Contains(t, fields, o.Field)
			}
		}
	})
}
