package admit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/mesh/wire"
)

func (w *world) pause(r wire.PauseRequest) Decision {
	w.t.Helper()
	r.Wire = wire.Version
	d, err := Pause(w.basis(), r)
	require.NoError(w.t, err)
	checkReply(w.t, d)
	w.commit(d)
	return d
}

// heeding has hosts that know of pauses.
func (w *world) heeding(nodes ...string) *world {
	for _, n := range nodes {
		w.profiles[n] = wire.Profile{Version: "2.0.0", Capabilities: []string{wire.PausesUnits}, Vocabulary: wire.Vocabulary()}
	}
	return w
}

// half is half an hour.
func half(node, unit string) wire.PauseRequest {
	return wire.PauseRequest{Node: node, Unit: unit, Seconds: 1800, Reason: "the disk is changed"}
}

func TestAPauseIsOfOneUnitOfOneNode(t *testing.T) {
	w := newWorld(t).node("web1", "role=web").node("web2", "role=web").heeding("web1", "web2")
	w.landed(service("web", "labels: {role: web}", "content: |", "  [Install]", "  Alias=www.service"), service("db", "unit: data.service", "labels: {role: web}", "scope: user"))
	d := w.pause(half("web1", "web"))
	at := d.Node.At.UTC().Truncate(time.Second)
	first := wire.Pause{Unit: "web.service", Scope: "system", Until: at.Add(30 * time.Minute), Seconds: 1800, Declaration: "web", By: "operator alice", At: at, Reason: "the disk is changed"}
	require.Equal(t, []wire.Pause{first}, d.Node.Pauses)
	require.Equal(t, &first, d.Reply.Pause)
	require.Empty(t, d.Writes)
	index, err := assign.Place(w.state).Index("web1", wire.SyncRequest{})
	require.NoError(t, err)
	require.Equal(t, []wire.Pause{first}, index.Pauses)
	tools, err := assign.Place(w.state).Tools("web1", nil)
	require.NoError(t, err)
	require.Equal(t, []*wire.Pause{&first, nil}, []*wire.Pause{tools.Units[0].Paused, tools.Units[1].Paused})
	index, err = assign.Place(w.state).Index("web2", wire.SyncRequest{})
	require.NoError(t, err)
	require.Empty(t, index.Pauses)

	r := half("web1", "data")
	r.Scope = "user"
	second := w.pause(r).Reply.Pause
	require.Equal(t, "data.service/user/db", fmt.Sprintf("%s/%s/%s", second.Unit, second.Scope, second.Declaration))
	w.now = w.now.Add(20 * time.Minute)
	again := w.pause(half("web1", "www.service")).Reply.Pause // an alias is the unit
	require.Equal(t, "web.service", string(again.Unit))
	require.Len(t, w.state.Nodes["web1"].Pauses, 2)
	require.Equal(t, *again, *w.state.Nodes["web1"].Pause("system", "web.service"), "it is paused anew")

	w.withdraw(wire.WithdrawRequest{Names: []string{"web"}})
	require.Empty(t, w.pause(half("web1", "web")).Reply.Problems, "what is withdrawn is given back when its pause ends")
	ended := w.pause(wire.PauseRequest{Node: "web1", Unit: "web", End: true})
	require.Equal(t, "web.service", string(ended.Reply.Pause.Unit))
	require.Len(t, ended.Node.Pauses, 1)

	w.now = w.now.Add(time.Hour)
	require.Empty(t, w.pause(wire.PauseRequest{Node: "web1", Unit: "data", Scope: "user", End: true}).Reply.Problems)
	require.Equal(t, []string{"data.service of user scope is not paused on web1"}, w.pause(wire.PauseRequest{Node: "web1", Unit: "data", Scope: "user", End: true}).Reply.Warnings)
}

// TestEndingWhatDoesNotRestIsNoChange: so that it may be asked for again.
func TestEndingWhatDoesNotRestIsNoChange(t *testing.T) {
	w := newWorld(t).node("web1").heeding("web1")
	w.landed(service("web", "nodes: [web1]"))
	d := w.pause(wire.PauseRequest{Node: "web1", Unit: "web", End: true})
	require.Nil(t, d.Node)
	require.Nil(t, d.Reply.Pause)
	require.Equal(t, []string{"web.service of system scope is not paused on web1"}, d.Reply.Warnings)
}

func TestAPauseIsRefusedByName(t *testing.T) {
	w := newWorld(t).node("web1").node("web2").node("old").node("unheard").heeding("web1")
	w.profiles["old"] = wire.Profile{Version: "1.0.0", Capabilities: []string{wire.ServiceManager}, Vocabulary: wire.Vocabulary()}
	w.landed(service("web", "all: true", "unit: nginx.service"), service("desk", "all: true", "scope: user"))
	w.state.Nodes["web2"].Removed = true
	for name, c := range map[string]struct {
		r    wire.PauseRequest
		want string
	}{
		"no such node":       {half("wbe1", "nginx"), `wbe1: "wbe1" is no node of this mesh; did you mean web1? if not: stead node add wbe1, or start its host`},
		"a removed node":     {half("web2", "nginx"), `web2: it was removed`},
		"a node with a path": {half("../x", "nginx"), `../x: "../x" is no node name`},
		"a typo":             {half("web1", "ngin"), `web1.unit: nothing is declared of ngin.service in system scope on node "web1"; did you mean nginx.service?`},
		"a declaration":      {half("web1", "web"), `web1.unit: nothing is declared of web.service in system scope on node "web1"; declaration web is of nginx.service: name that`},
		"another scope":      {half("web1", "desk"), `web1.unit: nothing is declared of desk.service in system scope on node "web1"; declaration desk is of it in user scope: --user`},
		"a file":             {half("web1", "file:cfg"), `web1.unit: "file:cfg" is a file, and a pause is of a unit; name a unit, such as web.service; a file is left alone once it is withdrawn with on_withdraw: release`},
		"nobody's":           {half("web1", "ssh"), `web1.unit: nothing is declared of ssh.service in system scope on node "web1"; what stead does not keep needs no pause; what is declared there: stead get declarations -n web1`},
		"a path":             {half("web1", "/etc/x"), `web1.unit: "/etc/x" is a file, and a pause is of a unit`},
		"nothing":            {half("web1", ""), `web1.unit: unit name`},
		"a scope":            {wire.PauseRequest{Node: "web1", Unit: "nginx", Scope: "global", Seconds: 60}, `web1.scope: "global" is no scope; write system or user`},
		"too short":          {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 59}, `web1.for: 59s is out of bounds; a pause is 1m to 7d long; what is to rest for longer is declared so (ensure: stopped), or withdrawn`},
		"too long":           {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 7*24*3600 + 1}, `web1.for: 7d1s is out of bounds`},
		"no time":            {wire.PauseRequest{Node: "web1", Unit: "nginx"}, `web1.for: 0s is out of bounds`},
		"a negative time":    {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: -60}, `web1.for: -60s is out of bounds`},
		"more than there is": {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 1 << 62}, `is out of bounds`},
		"a long reason":      {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 60, Reason: strings.Repeat("x", 201)}, `web1.reason: it is no line of text that can be shown; write one line of at most 200 bytes`},
		"lines":              {wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 60, Reason: "a\nb"}, `web1.reason: `},
		"an older host":      {half("old", "nginx"), `old: the host of old (stead 1.0.0) does not know of pauses; upgrade stead there; until then withdraw what is to be left alone`},
		"an unknown host":    {half("unheard", "nginx"), `unheard: its host was never heard of, and whether it knows of pauses neither; start the host of unheard first`},
		"an end of a typo":   {wire.PauseRequest{Node: "web1", Unit: "ngin", End: true}, `did you mean nginx.service?`},
	} {
		t.Run(name, func(t *testing.T) {
			d := w.pause(c.r)
			require.Len(t, d.Reply.Problems, 1)
			require.Contains(t, d.Reply.Problems[0].String(), c.want)
			require.Nil(t, d.Node, "nothing was changed")
			require.Nil(t, d.Reply.Pause)
		})
	}
	require.Empty(t, w.pause(wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 7 * 24 * 3600}).Reply.Problems)
	require.Empty(t, w.pause(wire.PauseRequest{Node: "web1", Unit: "nginx", Seconds: 60}).Reply.Problems)
}

func TestANodeHoldsSoManyPauses(t *testing.T) {
	w := newWorld(t).node("web1").heeding("web1")
	var docs strings.Builder
	for i := range wire.MaxPauses + 1 {
		docs.WriteString(service(fmt.Sprintf("d%d", i), "all: true"))
	}
	w.landed(docs.String())
	for i := range wire.MaxPauses {
		require.Empty(t, w.pause(half("web1", fmt.Sprintf("d%d", i))).Reply.Problems)
	}
	require.Equal(t, "web1: 256 units of it are paused already; end some: what is paused is in stead describe node web1", w.pause(half("web1", "d256")).Reply.Problems[0].String())
	w.now = w.now.Add(time.Hour)
	d := w.pause(half("web1", "d256"))
	require.Len(t, d.Node.Pauses, 1, "those that have ended go")
}

// TestAnotherAccountEndsWhatWasPausedOfTheOneBefore: its units are given back.
func TestAnotherAccountEndsWhatWasPausedOfTheOneBefore(t *testing.T) {
	w := newWorld(t).node("web1").heeding("web1")
	opal, pearl := "opal", "pearl"
	w.set(wire.SettingsRequest{Node: "web1", Account: &opal})
	w.landed(service("web", "all: true"), service("desk", "all: true", "scope: user"))
	w.pause(half("web1", "web"))
	r := half("web1", "desk")
	r.Scope = "user"
	w.pause(r)
	same := w.set(wire.SettingsRequest{Node: "web1", Account: &opal})
	require.Nil(t, same.Node)
	d := w.set(wire.SettingsRequest{Node: "web1", Account: &pearl})
	require.Len(t, d.Node.Pauses, 1)
	require.Equal(t, "web.service", string(d.Node.Pauses[0].Unit))
	require.Contains(t, d.Reply.Warnings, `the pause of desk.service ends: what account "opal" has is given back`)
}

// The end of a declaration waits for the end of a pause, and whoever ends it is told so.
func TestAPauseComesBeforeAWithdrawal(t *testing.T) {
	w := newWorld(t).node("web1", "role=web").node("web2", "role=web").heeding("web1", "web2")
	w.landed(service("web", "labels: {role: web}"), service("db", "labels: {role: web}"))
	p := w.pause(half("web1", "web")).Reply.Pause
	request := w.request(service("web", "nodes: [web2]"), service("db", "nodes: [web2]"))
	request.DryRun, request.Yes = true, true
	request.Wire = wire.Version
	moved, err := Apply(w.basis(), request)
	require.NoError(t, err)
	text := "web stays on web1 as it is: web.service is paused until " + p.Until.UTC().Format("2006-01-02 15:04 UTC") + " by operator alice: the disk is changed; " +
		"it is given back when that ends, or at once with: stead resume web.service -n web1"
	require.Equal(t, []string{text}, moved.Reply.Warnings)
	require.Equal(t, []string{text}, w.withdraw(wire.WithdrawRequest{Names: []string{"db", "web"}, Seen: w.seen(), DryRun: true, Yes: true}).Reply.Warnings)
	taken, err := Settings(w.basis(), wire.SettingsRequest{Wire: wire.Version, Node: "web1", Labels: map[string]string{"role": "db"}, Yes: true})
	require.NoError(t, err)
	require.Contains(t, taken.Reply.Warnings, text, "a label that goes takes it away, too")
	w.now = w.now.Add(time.Hour)
	require.Empty(t, w.withdraw(wire.WithdrawRequest{Names: []string{"db", "web"}, Seen: w.seen(), Yes: true}).Reply.Warnings, "the pause is over")
}
