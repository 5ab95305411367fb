package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func versionOf(text string) Version {
	sum := sha256.Sum256([]byte(text))
	return Version{Entry: Entry{Kind: File, Digest: hex.EncodeToString(sum[:]), Mode: 0o644}, Content: []byte(text)}
}

func linkTo(target string) Version { return Version{Entry: Entry{Kind: Link, Target: target}} }

func with(v Version, mode fs.FileMode, uid int) Version {
	v.Entry.Mode, v.Entry.UID = mode, uid
	return v
}

func TestADiffTellsWhatBecomesOfAPath(t *testing.T) {
	const p = "/etc/systemd/system/web.service"
	old, fresh := []string{"--- " + p, "+++ " + p}, []string{"--- /dev/null", "+++ " + p}
	none := Version{Entry: Entry{Kind: Absent}}
	unit := versionOf("[Service]\nExecStart=/bin/a\n")
	for name, c := range map[string]struct {
		was, now Version
		want     []string
	}{
		"nothing":                     {none, none, nil},
		"the same":                    {unit, unit, nil},
		"a new file":                  {none, unit, append(fresh, "@@ -0,0 +1,2 @@", "+[Service]", "+ExecStart=/bin/a")},
		"a file that was not there":   {Version{}, versionOf("a\n"), append(fresh, "@@ -0,0 +1,1 @@", "+a")},
		"a file that goes":            {versionOf("a\n"), none, []string{"--- " + p, "+++ /dev/null", "@@ -1,1 +0,0 @@", "-a"}},
		"a changed line":              {unit, versionOf("[Service]\nExecStart=/bin/b\n"), append(old, "@@ -1,2 +1,2 @@", " [Service]", "-ExecStart=/bin/a", "+ExecStart=/bin/b")},
		"no newline at the end":       {versionOf("a"), versionOf("a\n"), append(old, "@@ -1,1 +1,1 @@", "-a", "\\ No newline at end of file", "+a")},
		"an emptied file":             {versionOf("a\n"), versionOf(""), append(old, "@@ -1,1 +0,0 @@", "-a")},
		"rights alone":                {with(unit, 0o600, 7), unit, append(old, "mode -rw------- → -rw-r--r--", "owner 7:0 → 0:0")},
		"a new link":                  {none, linkTo("/dev/null"), append(fresh, "@@ -0,0 +1,1 @@", "+link to /dev/null")},
		"a link that leads elsewhere": {linkTo("../a"), linkTo("../b"), append(old, "@@ -1,1 +1,1 @@", "-link to ../a", "+link to ../b")},
		"a file for a link":           {linkTo("/dev/null"), versionOf("a\n"), append(old, "@@ -1,1 +1,1 @@", "-link to /dev/null", "+a")},
		"a folder in the way":         {Version{Entry: Entry{Kind: Dir}}, versionOf("a\n"), append(old, "@@ -1,1 +1,1 @@", "-(dir)", "+a")},
		"bytes that are not at hand":  {Version{Entry: Entry{Kind: File, Digest: strings.Repeat("ab", 32)}}, none, []string{"--- " + p, "+++ /dev/null", "@@ -1,1 +0,0 @@", "-(file, sha256 abababababababab…)"}},
		"bytes that are no text":      {versionOf("a\x00b"), versionOf("\xff\xfe"), append(old, "@@ -1,1 +1,1 @@", "-(file of 3 bytes, sha256 "+versionOf("a\x00b").Entry.Digest[:16]+"…)", "+(file of 2 bytes, sha256 "+versionOf("\xff\xfe").Entry.Digest[:16]+"…)")},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Diff(p, c.was, c.now)) })
	}
}

func TestADiffIsBounded(t *testing.T) {
	var long, longer, wide strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d\n", i)
		fmt.Fprintf(&longer, "Zeile %d\n", i)
	}
	for range 300 {
		wide.WriteString(strings.Repeat("ü", 300) + "\n")
	}
	huge := versionOf(strings.Repeat("x\n", maxDiffed))
	for name, c := range map[string]struct {
		was, now Version
		last     string
	}{
		"many lines": {versionOf(long.String()), versionOf(longer.String()), "… 5804 more lines"},
		"wide lines": {versionOf(""), versionOf(wide.String()), "… 260 more lines"},
		"huge files": {huge, versionOf("a\n"), "+a"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Diff("/p", c.was, c.now)
			require.Equal(t, c.last, d[len(d)-1])
			require.LessOrEqual(t, len(d), DiffLines)
			require.LessOrEqual(t, len(strings.Join(d, "")), DiffBytes)
			for _, l := range d {
				require.LessOrEqual(t, len(l), DiffLine)
				require.True(t, utf8.ValidString(l))
			}
		})
	}
}
