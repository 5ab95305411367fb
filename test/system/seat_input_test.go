package system

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// mistake is a command that must be refused.
type mistake struct {
	args  string // behind stead, separated by blanks
	code  int
	class string // that the node answered with; "" when no node was asked
	says  string
	hint  string // "" when there is none
}

const seat = "node-service-manager"

func mistakes() []mistake {
	return []mistake{
		// Names that there are not.
		{"call node-service-manger.status@ws1 unit=a", 1, "", `no seat is called "node-service-manger"`, "did you mean node-service-manager?"},
		{"call " + seat + ".statsu@ws1 unit=a", 1, "", `no verb of seat node-service-manager is called "statsu"`, "did you mean status?"},
		{"call " + seat + ".status@ws11 unit=a", 1, "", `"ws11"`, "did you mean ws1?"},
		{"status a -n ws11", 1, "", `"ws11"`, "did you mean ws1?"},
		{"call " + seat + ".status@ws1 unti=a", 1, "", `no argument of status is called "unti"`, "did you mean unit?"},
		{"call " + seat + ".status@ws1 unit=dbsu.service", 1, "not_found", "dbsu.service", "did you mean dbus.service"},
		{"call " + seat + ".restart@ws1 unit=dbsu.service", 1, "not_found", "dbsu.service", "did you mean dbus.service"},
		{"call " + seat + ".enable@ws1 unit=dbsu.service", 1, "not_found", "dbsu.service", "did you mean dbus.service"},
		{"call " + seat + ".journal@ws1 unit=dbsu.service", 1, "not_found", "dbsu.service", "did you mean dbus.service"},
		{"call " + seat + ".restart@ws1 unit=dbsu-*", 1, "not_found", `no loaded unit of system scope matches`, "did you mean dbus"},
		{"restart dbsu.service -n ws1", 1, "", "dbsu.service", "did you mean dbus.service"},
		// Values of another kind.
		{"call " + seat + ".status@ws1", 1, "", "unit of status is missing", "unit=VALUE"},
		{"call " + seat + ".status@ws1 unit=a lines=many", 1, "", `"many" is no integer`, ""},
		{"call " + seat + ".status@ws1 unit:=7", 1, "invalid", "unit: it is a number, and a string is wanted", ""},
		{"call " + seat + ".status@ws1 unit=a lines=-1", 1, "invalid", "lines", ""},
		{"call " + seat + ".status@ws1 unit=a scope=sytsem", 1, "invalid", `"sytsem" is none of`, "did you mean system?"},
		{"call " + seat + ".restart@ws1 unit=a yes:=\"yes\"", 1, "invalid", "yes: it is a string, and a boolean is wanted", ""},
		{"call " + seat + ".restart@ws1 unit=a timeout=soon", 1, "invalid", "timeout", ""},
		{"call " + seat + ".restart@ws1 unit=a/b", 1, "invalid", "a/b", ""},
		{"call " + seat + ".journal@ws1 since=nonsense", 1, "invalid", "nonsense", ""},
		{"call " + seat + ".units@ws1 types=servcie", 1, "invalid", `"servcie"`, "did you mean service?"},
		{"call " + seat + ".status@ws1 unit:={", 1, "", "is no JSON", ""},
		// More than was meant.
		{"call " + seat + ".restart@ws1 unit=many-*", 1, "refused", "it means 12 units: many-00.service", "yes=true"},
		{"restart many-* -n ws1", 1, "", "it means 12 units: many-00.service", "--yes"},
		{"restart many-* --all", 1, "", "it means 12 units: many-00.service", "--yes"},
		{"stop * -n ws1 --yes", 1, "", "protected", ""},
		{"restart a -n ws1 --user", 1, "", "this node has no operator account", "stead node account NODE LOGIN"},
		{"call " + seat + ".restart@ws1 unit=a scope=user", 1, "refused", "this node has no operator account", "stead node account NODE LOGIN"},
		// What stead stands on, by any of its names.
		{"call " + seat + ".stop@ws1 unit=dbus.service", 1, "refused", "it is protected: stead stands on it", ""},
		{"call " + seat + ".stop@ws1 unit=mybus.service", 1, "refused", "dbus.service, which is protected: stead stands on it", ""},
		{"call " + seat + ".restart@ws1 unit=mybus", 1, "refused", "dbus.service, which is protected", ""},
		{"call " + seat + ".disable@ws1 unit=mybus.service", 1, "refused", "dbus.service, which is protected", ""},
		{"call " + seat + ".disable@ws1 unit=dbus.service now=true", 1, "refused", "it is protected", ""},
		{"call " + seat + ".stop@ws1 unit=" + service, 1, "refused", "it is protected: it is stead's own", ""},
		{"call " + seat + ".stop@ws1 unit=" + runtimeService, 1, "refused", "it is protected: it is stead's own", ""},
		{"call " + seat + ".restart@ws1 unit=" + helperService, 1, "refused", "it is protected: it is stead's own", ""},
		{"call " + seat + ".disable@ws1 unit=" + runtimeService, 1, "refused", "it is protected: it is stead's own", ""},
		{"call " + seat + ".stop@ws1 unit=base.service", 1, "refused", "it stops " + runtimeService + ", which is protected", ""},
		{"call " + seat + ".start@ws1 unit=poweroff.target", 1, "refused", "stops or suspends the machine", ""},
		{"call " + seat + ".start@ws1 unit=nice.target", 1, "refused", "which is protected: starting it stops or suspends the machine", ""},
		{"stop mybus -n ws1", 1, "", "dbus.service, which is protected", ""},
		{"disable --now mybus -n ws1", 1, "", "dbus.service, which is protected", ""},
		// Commands that are none.
		{"call " + seat + "@ws1", 2, "", "is not SEAT.VERB", "node-service-manager.status@web1"},
		{"call " + seat + ".status@ws1 unit", 2, "", `"unit" is neither KEY=VALUE nor KEY:=JSON`, "unit"},
		{"call " + seat + ".status@ws1 -n ws2 unit=a", 2, "", "@ws1 says which node, and flags do so too", ""},
		{"restart a", 2, "", "the mesh has 2 nodes, and none is named", "-n NODE"},
		{"journal -n ws1 -f --until now", 2, "", "--follow goes on for ever", ""},
	}
}

// input gives every command that is a mistake, and holds the nodes against how
// they were.
func (r *rig) input() {
	r.Helper()
	ws1 := r.nodes["ws1"]
	for _, m := range r.nodes {
		var many []string
		for i := range 12 {
			many = append(many, fmt.Sprintf("many-%02d.service", i))
			require.NoError(r, m.WriteFile(etc+"/"+many[i], []byte(sleeper(i)), 0o644))
		}
		m.Run(r.T, "ln", "-s", "/lib/systemd/system/dbus.service", etc+"/mybus.service")
		m.Run(r.T, "ln", "-s", "/lib/systemd/system/poweroff.target", etc+"/nice.target")
		require.NoError(r, m.WriteFile(etc+"/base.service", []byte(sleeper(99)), 0o644))
		require.NoError(r, m.WriteFile(etc+"/"+runtimeService+".d/base.conf", []byte("[Unit]\nRequires=base.service\n"), 0o644))
		m.Run(r.T, "systemctl", "daemon-reload")
		m.Run(r.T, append([]string{"systemctl", "start", "base.service"}, many...)...)
	}
	before := r.standing()
	var wrong []string
	for _, x := range mistakes() {
		wrong = append(wrong, r.mistaken(x)...)
	}
	if len(wrong) > 0 {
		r.Fatal(strings.Join(wrong, "\n"))
	}
	require.Equal(r, before, r.standing(), "something was done")
	require.NotContains(r, ws1.Run(r.T, "journalctl", "-u", helperService, "-o", "cat"), "act done")
	r.silent()
	r.Logf("%d mistakes are told, and nothing was done", len(mistakes())+6)
}

// mistaken gives a command that must be refused, and returns what of its answer is
// not as it should be.
func (r *rig) mistaken(x mistake) (wrong []string) {
	r.Helper()
	args := strings.Fields(x.args)
	if x.class != "" {
		args = append(args, "-o", "json")
	}
	out := r.stead(args...)
	hold := func(is bool, what string) {
		if !is {
			wrong = append(wrong, fmt.Sprintf("stead %s: %s: exit status %d\n%s%s", x.args, what, out.Code, out.Stdout, out.Stderr))
		}
	}
	told := func(text, hint string) {
		hold(strings.Contains(text, x.says), "it does not say "+x.says)
		hold(strings.Contains(hint, x.hint), "it does not hint "+x.hint)
		hold(x.hint != "" || !strings.Contains(hint, "did you mean"), "what did it mean?")
	}
	hold(out.Code == x.code, "another exit status")
	hold(strings.Contains(out.Stderr, "error: "), "no error")
	told(out.Stderr, out.Stderr)
	if x.class == "" {
		hold(out.Stdout == "", "an answer")
		return wrong
	}
	var reply struct {
		Answers []struct {
			Node  string
			Error struct{ Class, Text, Hint string }
		}
	}
	if json.Unmarshal([]byte(out.Stdout), &reply) != nil || len(reply.Answers) != 1 {
		return append(wrong, "stead "+x.args+": no answer of one node: "+out.Stdout+out.Stderr)
	}
	e := reply.Answers[0].Error
	hold(reply.Answers[0].Node == "ws1" && e.Class == x.class, "another class")
	told(e.Text, e.Hint)
	return wrong
}

// standing is how the units of both nodes stand that a mistake may have reached.
func (r *rig) standing() string {
	r.Helper()
	var all strings.Builder
	for _, name := range []string{"ws1", "ws2"} {
		all.WriteString(r.nodes[name].Run(r.T, "systemctl", "show", "-p", "Id,InvocationID,ActiveState,UnitFileState,NRestarts,Job", "a.service", "base.service", "many-*",
			"dbus.service", "systemd-journald.service", "stead-*", "poweroff.target"))
	}
	return all.String()
}

// silent asks a node that is cut off, and one whose runtime is down.
func (r *rig) silent() {
	r.Helper()
	ws2 := r.nodes["ws2"]
	asks := func(why string) {
		r.Helper()
		for _, args := range []string{"call " + seat + ".status@ws2 unit=a --timeout 2s", "restart a -n ws2 --timeout 2s", "status a --all --timeout 2s"} {
			out := r.stead(strings.Fields(args)...)
			require.Equal(r, 4, out.Code, "stead %s: %s%s", args, out.Stdout, out.Stderr)
			require.Regexp(r, `(error|warning): `+why+`: ws2\n`, out.Stderr, "stead %s", args)
			require.Equal(r, strings.Contains(args, "--all"), strings.Contains(out.Stdout, "a.service"), "who answers is shown: %s%s", out.Stdout, out.Stderr)
		}
	}
	answers := func() {
		r.ctl.until("it answers again", func() bool { return r.stead("status", bystander, "-n", "ws2").Code == 0 })
	}
	require.NoError(r, r.net.Cut(r.Context(), ws2.Node))
	asks(`no answer in time(; it may have been done)?`)
	require.NoError(r, r.net.Join(r.Context(), ws2.Node))
	answers()
	// What was on its way when the cable came back was done, and no more than once.
	require.LessOrEqual(r, strings.Count(ws2.Run(r.T, "journalctl", "-u", helperService, "-o", "cat"), "act done"), 1)

	ws2.Run(r.T, "systemctl", "stop", runtimeService)
	invocation := ws2.prop(bystander, "InvocationID")
	asks(`(nobody serves it|no answer in time)`)
	ws2.Run(r.T, "systemctl", "start", runtimeService)
	answers()
	require.Equal(r, invocation, ws2.prop(bystander, "InvocationID"), "it was done later")
}
