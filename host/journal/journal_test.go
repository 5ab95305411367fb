package journal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseKeepsWhatIsNotText(t *testing.T) {
	in := strings.Join([]string{
		`{"MESSAGE":"plain","__REALTIME_TIMESTAMP":"0"}`,
		`{"MESSAGE":[255,27,91,50,74],"__REALTIME_TIMESTAMP":"0"}`,
		`{"MESSAGE":"esc \u001b[2J tab\there","__REALTIME_TIMESTAMP":"0"}`,
		`{"MESSAGE":null,"__REALTIME_TIMESTAMP":"0"}`,
		`{"MESSAGE":["a","b"],"__REALTIME_TIMESTAMP":"0"}`,
		`{"MESSAGE":"cut of`,
	}, "\n")
	lines, err := parse(strings.NewReader(in))
	require.NoError(t, err)
	require.Len(t, lines, 5)
	var got []string
	for _, l := range lines {
		got = append(got, l[len("15:04:05 "):])
	}
	require.Equal(t, []string{"plain", `\xff\x1b[2J`, "esc \\x1b[2J tab\there", "", "a / b"}, got)
}

func TestCleanCutsLongMessages(t *testing.T) {
	got := clean([]byte(strings.Repeat("x", MaxLine+1)))
	require.Equal(t, strings.Repeat("x", MaxLine)+" (cut)", got)
}

func TestOutputIsBounded(t *testing.T) {
	l := limited{left: 4}
	n, err := l.Write([]byte("abcdef"))
	require.NoError(t, err)
	require.Equal(t, 6, n, "the writer must not make journalctl fail")
	require.Equal(t, "abcd", l.String())
}
