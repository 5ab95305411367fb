package subject_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
)

func TestSubjectsReadAsTheyAreWritten(t *testing.T) {
	for want, a := range map[string]subject.Address{
		"node.v1.ws1.sync":                              {Node: "ws1", Topic: subject.Sync},
		"node.v1.ws1.body":                              {Node: "ws1", Topic: subject.Body},
		"node.v1.ws1.report":                            {Node: "ws1", Topic: subject.Report},
		"node.v1.ws1.profile":                           {Node: "ws1", Topic: subject.Profile},
		"node.v1.ws1.event":                             {Node: "ws1", Topic: subject.Event},
		"node.v1.0.tools":                               {Node: "0", Topic: subject.Tools},
		"node.v1.a-b.claim":                             {Node: "a-b", Topic: subject.Claim},
		"node.v1.ws1.changed":                           {Node: "ws1", Topic: subject.Changed},
		"node.v1.ws1.plan":                              {Node: "ws1", Topic: subject.Plan},
		"mesh.v1.r.get":                                 {Class: subject.Read, Operation: "get"},
		"mesh.v1.w.apply":                               {Class: subject.Write, Operation: "apply"},
		"seat.v1.r.ws1.node-service-manager.status":     {Class: subject.Read, Node: "ws1", Seat: "node-service-manager", Verb: "status"},
		"seat.v1.w._all.node-service-manager.restart":   {Class: subject.Write, Node: subject.All, Seat: "node-service-manager", Verb: "restart"},
		"seat.v1.r." + strings.Repeat("a", 63) + ".s.v": {Class: subject.Read, Node: subject.Node(strings.Repeat("a", 63)), Seat: "s", Verb: "v"},
	} {
		require.Equal(t, want, a.String())
		got, err := subject.Parse(want)
		require.NoError(t, err, want)
		require.Equal(t, a, got)
	}
}

func TestWhatIsNoSubjectIsNotParsed(t *testing.T) {
	for _, s := range []string{
		"", ".", "node", "node.v1", "node.v1.ws1", "node.v1.ws1.", "node.v1..sync", "node.v1.ws1.sync.x", "node.v2.ws1.sync", "node.v1.ws1.other",
		"node.v1.*.sync", "node.v1.>", "node.v1._all.sync", "node.v1.WS1.sync", "node.v1.ws_1.sync", "node.v1.-ws1.sync", "node.v1.ws1-.sync",
		"node.v1." + strings.Repeat("a", 64) + ".sync", "node.v1.ws 1.sync", "node.v1.ws1.sync\n", "node.v1.{{name()}}.sync",
		"mesh.v1.x.get", "mesh.v1.r.*", "mesh.v1.r.", "mesh.v1.r.Get", "mesh.v1.get", "mesh.v1.r.get.x",
		"seat.v1.r.ws1.s", "seat.v1.r.ws1.s.*", "seat.v1.r.*.s.v", "seat.v1.rw.ws1.s.v", "seat.v1.r.ws1.s.v.x", "seat.v1.r.ws1.s.ctl-0123456789abcdef",
		"seat.v1.r._other.s.v", "seat.v1.r.ws1.>.v", "$SYS.REQ", "_INBOX.x",
	} {
		_, err := subject.Parse(s)
		require.True(t, fault.Is(err, fault.Invalid), "%q: %v", s, err)
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"ws1", "0", "a", "a-b", "a--b", strings.Repeat("a", 63)} {
		n, err := subject.ParseNode(s)
		require.NoError(t, err)
		require.Equal(t, s, string(n))
	}
	for _, s := range []string{"", "*", ">", "ws1.>", "a.b", "_all", "A", "-a", "a-", "a b", "ä", "a\n", "{{name()}}", "$SYS", strings.Repeat("a", 64)} {
		_, err := subject.ParseNode(s)
		require.True(t, fault.Is(err, fault.Invalid), "%q", s)
	}
	_, err := subject.ParseSeat("node-service-manager")
	require.NoError(t, err)
	_, err = subject.ParseOperation("node_label")
	require.NoError(t, err)
	for _, s := range []string{"", "*", "1a", "a-", "a.b", "Get", "ctl-x"} {
		_, err = subject.ParseVerb(s)
		require.True(t, fault.Is(err, fault.Invalid), "%q", s)
	}
	require.EqualError(t, subject.CheckLabel("node", "a.b"),
		`node: "a.b": must be a DNS label: 1 to 63 of a-z, 0-9 and "-", beginning and ending with a letter or digit`)
}

// TestControlSubjectsNameNothingElse: a node tells the caller where to send
// credit, and must not be able to name a verb, or another node.
func TestControlSubjectsNameNothingElse(t *testing.T) {
	s, err := subject.ForControl("ws1", "s", "0123456789abcDEF")
	require.NoError(t, err)
	require.Equal(t, "seat.v1.r.ws1.s.ctl-0123456789abcDEF", s)
	require.True(t, subject.IsControl(s, "ws1", "s"))
	for _, other := range []string{
		"", "seat.v1.w.ws1.s.ctl-0123456789abcDEF", "seat.v1.r.ws2.s.ctl-0123456789abcDEF", "seat.v1.r.ws1.x.ctl-0123456789abcDEF",
		"seat.v1.r.ws1.s.status", "seat.v1.r.ws1.s.ctl-0123456789abcDE", "seat.v1.r.ws1.s.ctl-0123456789abcDEF.x", "seat.v1.r.ws1.s.ctl-0123456789abcDE*",
		"$KV.state.seed", "seat.v1.r.ws1.s.ctl->", "seat.v1.r.ws1.s.ctl-" + strings.Repeat("a", 65),
	} {
		require.False(t, subject.IsControl(other, "ws1", "s"), other)
	}
	for _, token := range []string{"", "short", "0123456789abcde.", "0123456789abcde*", strings.Repeat("a", 65)} {
		_, err := subject.ForControl("ws1", "s", token)
		require.True(t, fault.Is(err, fault.Invalid), token)
	}
}

func TestPatterns(t *testing.T) {
	require.Equal(t, "node.v1.*.sync", subject.TopicPattern(subject.Any, subject.Sync))
	require.Equal(t, "node.v1.{{name()}}.changed", subject.TopicPattern(subject.Own, subject.Changed))
	require.Equal(t, "mesh.v1.w.*", subject.OperationPattern(subject.Write))
	require.Equal(t, "seat.v1.r._all.*.*", subject.VerbPattern(subject.Read, string(subject.All), subject.Any))
	require.Equal(t, "seat.v1.r.*.*.journal", subject.VerbPattern(subject.Read, subject.Any, "journal"))
	require.Equal(t, "_INBOX.UABC", subject.Inbox("UABC"))
	require.Contains(t, subject.Discovery(), "$SRV.PING")
	require.Len(t, subject.Discovery(), 9)
	require.Equal(t, []string{"$SRV.*", "$SRV.*.*", "$SRV.*.*.*"}, subject.DiscoveryPatterns())
}

// FuzzParse: what is parsed is made again to the byte, and holds no wildcard.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"node.v1.ws1.sync", "mesh.v1.r.get", "seat.v1.w._all.s.stop", "seat.v1.r.*.s.v", "node.v1.>", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := subject.Parse(s)
		if err != nil {
			require.True(t, fault.Is(err, fault.Invalid))
			return
		}
		require.Equal(t, s, a.String())
		require.False(t, strings.ContainsAny(s, "*> \t\r\n"))
	})
}

// FuzzNamesAreOfTheirPatterns holds the rules of names against the patterns by which
// they are known.
func FuzzNamesAreOfTheirPatterns(f *testing.F) {
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	word := regexp.MustCompile(`^[a-z]([a-z0-9_-]{0,61}[a-z0-9])?$`)
	for _, s := range []string{"", "a", "-", "_", "a-", "-a", "a_", "_a", "a_b-c", "a-b", "0", "0a", "A", "a.b", "a*", "a>", "a b", "ä", "a\n", "\x00",
		strings.Repeat("a", 62), strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, err := subject.ParseNode(s)
		require.Equal(t, label.MatchString(s), err == nil, "%q", s)
		_, err = subject.ParseSeat(s)
		require.Equal(t, word.MatchString(s), err == nil, "%q", s)
	})
}
