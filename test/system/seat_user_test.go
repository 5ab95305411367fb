package system

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/seats"
	"stead/test/lab"
	"stead/test/odd"
)

// TestUserScopeOfAnInstalledNode asks the runtime as it is installed for the units of
// an account that nobody is logged in to.
func TestUserScopeOfAnInstalledNode(t *testing.T) {
	if !insideUp(t) {
		return
	}
	here(t)("stead", "credentials", "operator", "carol", "--out", "/root/carol.json")
	s := seatOfUser{T: t, run: here(t), carol: personOf(t, "/root/carol.json")}
	for _, one := range []struct {
		name string
		f    func(seatOfUser)
	}{
		{"no account", seatOfUser.nobody},
		{"no manager", seatOfUser.unmanaged},
		{"verbs", seatOfUser.verbs},
		{"the command line", seatOfUser.commands},
		{"the host is down", seatOfUser.alone},
		{"a manager that hangs", seatOfUser.hung},
		{"a manager that is started anew", seatOfUser.renewed},
		{"another account in its place", seatOfUser.replaced},
		{"words", seatOfUser.words},
	} {
		t.Run(one.name, func(t *testing.T) { one.f(seatOfUser{t, here(t), s.carol}) })
	}
}

// seatOfUser asks for units of user scope on this machine.
type seatOfUser struct {
	*testing.T
	run   func(args ...string) string
	carol person
}

// as is run as the account.
func (s seatOfUser) as(args ...string) string {
	s.Helper()
	return s.run(append([]string{"runuser", "-u", "opal", "--", "env", "XDG_RUNTIME_DIR=/run/user/" + s.uid(), "HOME=" + s.at()}, args...)...)
}

// at is the account's home.
func (s seatOfUser) at() string {
	s.Helper()
	return strings.Split(s.run("getent", "passwd", "opal"), ":")[5]
}

func (s seatOfUser) uid() string { s.Helper(); return strings.TrimSpace(s.run("id", "-u", "opal")) }

func (s seatOfUser) manager() string { return "user@" + s.uid() + ".service" }

// shown asks the account's manager for a property.
func (s seatOfUser) shown(unit, property string) string {
	s.Helper()
	return strings.TrimSpace(s.as("systemctl", "--user", "show", "-P", property, "--", unit))
}

// asks calls a verb that has to answer.
func asks[R any](s seatOfUser, verb subject.Verb, arguments any) (r R) {
	s.Helper()
	text, err := s.carol.ask("ws1", verb, arguments)
	require.NoError(s, err)
	require.NoError(s, json.Unmarshal(text, &r), "%s", text)
	return r
}

// refused calls each verb that acts, and the journal, for a unit of user scope.
func (s seatOfUser) refused(class fault.Class, text string, journal bool) {
	s.Helper()
	for verb, a := range map[subject.Verb]any{
		seats.Start: seats.ActArguments{Unit: "seat-home", Scope: "user"}, seats.Stop: seats.ActArguments{Unit: "seat-home", Scope: "user"},
		seats.Restart: seats.ActArguments{Unit: "seat-home", Scope: "user"}, seats.Enable: seats.EnableArguments{Unit: "seat-home", Scope: "user"},
		seats.Disable: seats.EnableArguments{Unit: "seat-home", Scope: "user"}, seats.Journal: seats.JournalArguments{Unit: "seat-home", Scope: "user"},
	} {
		if verb == seats.Journal && !journal {
			continue
		}
		_, err := s.carol.ask("ws1", verb, a)
		require.ErrorContains(s, err, text, verb)
		require.Equal(s, class, fault.ClassOf(err), "%s: %v", verb, err)
	}
	require.Equal(s, []seats.Unreadable{{Scope: "user", Reason: text}}, asks[seats.UnitsReply](s, seats.Units, seats.UnitsArguments{Scope: "user"}).Unreadable)
	require.Equal(s, []seats.Unreadable{{Scope: "user", Reason: text}}, asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: "seat-home", Scope: "user"}).Unreadable)
	both := asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: "dbus"})
	require.Len(s, both.Units, 1)
	require.Equal(s, []seats.Unreadable{{Scope: "user", Reason: text}}, both.Unreadable)
}

func (s seatOfUser) nobody() { s.refused(fault.Refused, "this node has no operator account", true) }

func (s seatOfUser) unmanaged() {
	s.run("useradd", "-m", "opal")
	s.run("stead", "node", "linger", "ws1", "off")
	s.run("stead", "node", "account", "ws1", "opal")
	require.True(s, lab.Await(patience, func() bool {
		text, err := os.ReadFile("/var/lib/stead/host/account.json")
		return err == nil && strings.Contains(string(text), `"uid":`+s.uid())
	}))
	s.refused(fault.Failed, "user manager of opal is not running", false)
}

// home gives the account a unit that the verbs are tried on.
func (s seatOfUser) home() {
	s.run("loginctl", "enable-linger", "opal")
	require.True(s, lab.Await(patience, func() bool { return shown(s.T, s.manager(), "ActiveState") == "active" }))
	s.as("mkdir", "-p", s.at()+"/.config/systemd/user")
	s.as("sh", "-c", `printf '[Unit]\nDescription=at home\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sh -c "echo said by seat-home; exec sleep infinity"\n[Install]\nWantedBy=default.target\nAlias=seat-house.service\n' > ~/.config/systemd/user/seat-home.service`)
	s.as("systemctl", "--user", "daemon-reload")
}

func (s seatOfUser) verbs() {
	s.home()
	for verb, want := range map[subject.Verb]string{seats.Start: "active", seats.Restart: "active", seats.Stop: "inactive"} {
		u := asks[seats.ActReply](s, verb, seats.ActArguments{Unit: "seat-home", Scope: "user"}).Units
		require.Len(s, u, 1)
		require.Equal(s, "seat-home.service user done "+want, strings.Join([]string{u[0].Unit, u[0].Scope, u[0].Result, u[0].After.Active}, " "))
	}
	dir := s.at() + "/.config/systemd/user"
	wants, alias := dir+"/default.target.wants/seat-home.service", dir+"/seat-house.service"
	e := asks[seats.EnableReply](s, seats.Enable, seats.EnableArguments{Unit: "seat-home", Scope: "user", Now: true})
	require.ElementsMatch(s, []seats.Link{{Path: wants, To: dir + "/seat-home.service"}, {Path: alias, To: dir + "/seat-home.service"}}, e.Made)
	require.Equal(s, "user done", e.Acted.Scope+" "+e.Acted.Result)
	require.Equal(s, "opal", strings.TrimSpace(s.run("stat", "-c", "%U", wants)), "the manager made it, and not root")
	require.Equal(s, "enabled active", s.shown("seat-home.service", "UnitFileState")+" "+s.shown("seat-home.service", "ActiveState"))
	st := asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: "seat-house"}).Units
	require.Len(s, st, 1, "no scope is said")
	require.Equal(s, "user seat-home.service at home", st[0].Scope+" "+st[0].ID+" "+st[0].Description)
	require.Equal(s, s.shown("seat-home.service", "MainPID"), strconv.Itoa(int(*st[0].MainPID)))
	require.Contains(s, strings.Join(st[0].Lines, "\n"), "said by seat-home")
	units := asks[seats.UnitsReply](s, seats.Units, seats.UnitsArguments{Patterns: []string{"seat-*"}, Details: true})
	require.Len(s, units.Units, 1)
	require.Empty(s, units.Unreadable)
	require.Equal(s, "user enabled success", units.Units[0].Scope+" "+units.Units[0].Enablement+" "+units.Units[0].Result)
	log := asks[seats.JournalReply](s, seats.Journal, seats.JournalArguments{Unit: "seat-house", Scope: "user", Grep: "said by"})
	require.NotEmpty(s, log.Entries)
	e = asks[seats.EnableReply](s, seats.Disable, seats.EnableArguments{Unit: "seat-home", Scope: "user", Now: true})
	require.ElementsMatch(s, []string{wants, alias}, e.Removed)
	require.Equal(s, "disabled inactive", s.shown("seat-home.service", "UnitFileState")+" "+s.shown("seat-home.service", "ActiveState"))

	// Of what is not said user scope is not acted in.
	_, err := s.carol.ask("ws1", seats.Start, seats.ActArguments{Unit: "seat-home"})
	require.ErrorContains(s, err, "there is no such unit in system scope; there is one in user scope")
	require.Equal(s, "stead start seat-home.service -n ws1 --user", fault.HintOf(err))
	_, err = s.carol.ask("ws1", seats.Stop, seats.ActArguments{Unit: "dbus.socket", Scope: "user"})
	require.ErrorContains(s, err, "the account's manager and session stand on it")
	_, err = s.carol.ask("ws1", seats.Start, seats.ActArguments{Unit: "exit.target", Scope: "user"})
	require.ErrorContains(s, err, "it ends the account's manager")
	_, err = s.carol.ask("ws1", seats.Start, seats.ActArguments{Unit: "seat-hme", Scope: "user"})
	require.ErrorContains(s, err, "there is no such unit in user scope")
	require.Equal(s, "did you mean seat-home.service?", fault.HintOf(err))

	require.Contains(s, s.run("journalctl", "-u", helperService, "-o", "cat"), `msg="act done" act=restart unit=seat-home.service for="operator carol" scope=user`)
	s.until("the audit has the scope", func() bool {
		return strings.Contains(s.run("stead", "events", "--unit", "seat-home.service", "-o", "json"), `"scope": "user"`)
	})
}

func (s seatOfUser) until(what string, ok func() bool) {
	s.Helper()
	require.True(s, lab.Await(patience, ok), what)
}

// commands are the command line's, with --user.
func (s seatOfUser) commands() {
	require.Contains(s, s.run("stead", "start", "seat-home", "--user"), "started seat-home.service on ws1, user scope (inactive → active, ")
	require.Contains(s, s.run("stead", "status", "seat-home", "--user"), "ws1, user scope")
	require.Contains(s, s.run("stead", "units", "seat-*", "--user"), "seat-home.service")
	require.Contains(s, s.run("stead", "journal", "-u", "seat-home", "--user", "-g", "said by", "--lines", "1"), "said by seat-home")
	require.Contains(s, s.run("stead", "enable", "seat-home", "--user"), "enabled seat-home.service on ws1, user scope")
	require.Contains(s, s.run("stead", "disable", "seat-home", "--user"), "disabled seat-home.service on ws1, user scope")
	require.Contains(s, s.run("stead", "restart", "seat-home", "--user"), "restarted seat-home.service on ws1, user scope (active")
	require.Contains(s, s.run("stead", "call", "node-service-manager.status@ws1", "unit=seat-home.service", "scope=user"), `"active": "active"`)
	require.Contains(s, s.run("stead", "__complete", "stop", "--user", "seat-"), "seat-home.service")
	require.Contains(s, s.run("stead", "stop", "seat-home", "--user"), "stopped seat-home.service on ws1, user scope")
	out := s.run("sh", "-c", "stead start seat-home 2>&1; echo code $?")
	require.Contains(s, out, "error: start seat-home.service on ws1: there is no such unit in system scope; there is one in user scope\nhint: stead start seat-home.service -n ws1 --user\ncode 1\n")
	follow := s.run("sh", "-c", "stead journal -f -u seat-home --user --lines 0 > /run/followed & "+
		"for i in $(seq 100); do stead restart seat-home --user >/dev/null; sleep 0.1; grep -q 'said by' /run/followed && break; done; kill $!; cat /run/followed")
	require.Contains(s, follow, "said by seat-home")
}

// alone: the verbs are served while the host is down.
func (s seatOfUser) alone() {
	s.run("systemctl", "stop", "stead-host")
	defer s.run("systemctl", "start", "stead-host")
	s.run("systemctl", "restart", helperService, runtimeService)
	s.until("it is served", func() bool {
		_, err := s.carol.ask("ws1", seats.Restart, seats.ActArguments{Unit: "seat-home", Scope: "user"})
		return err == nil
	})
	require.Equal(s, "active", asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: "seat-home", Scope: "user"}).Units[0].Active)
}

// hung: a manager that does not answer keeps nobody waiting who does not ask for it.
func (s seatOfUser) hung() {
	pid, err := strconv.Atoi(shown(s.T, s.manager(), "MainPID"))
	require.NoError(s, err)
	require.NoError(s, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	var asked []chan error
	for i := range 40 { // all at once, and none of them is answered
		done := make(chan error, 1)
		asked = append(asked, done)
		go func() {
			verb, a := seats.Restart, any(seats.ActArguments{Unit: "seat-home", Scope: "user"})
			if i%2 == 0 {
				verb, a = seats.Status, seats.StatusArguments{Unit: "seat-home", Scope: "user"}
			}
			text, err := s.carol.ask("ws1", verb, a)
			if err == nil && !strings.Contains(string(text), "user manager of opal") {
				err = fmt.Errorf("it is answered: %s", text)
			}
			done <- err
		}()
	}
	var took []time.Duration
	for range 20 {
		began := time.Now()
		st := asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: besides(s), Scope: "system"})
		require.Len(s, st.Units, 1)
		require.Equal(s, "done", asks[seats.ActReply](s, seats.Restart, seats.ActArguments{Unit: besides(s)}).Units[0].Result)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	require.Less(s, took[len(took)/2], 4*time.Second, "of the system scope, while a call of the account's takes five and more: %s", took)
	began := time.Now()
	st := asks[seats.StatusReply](s, seats.Status, seats.StatusArguments{Unit: besides(s)})
	require.Less(s, time.Since(began), 3*time.Second)
	require.Len(s, st.Units, 1)
	require.Equal(s, "its manager has not answered within 2s", st.Unreadable[0].Reason)
	for i, done := range asked {
		if err := <-done; i%2 == 0 {
			require.NoError(s, err)
		} else {
			require.ErrorContains(s, err, "user manager of opal does not answer")
		}
	}
	require.NoError(s, syscall.Kill(pid, syscall.SIGCONT))
	s.until("it is served again", func() bool {
		_, err := s.carol.ask("ws1", seats.Restart, seats.ActArguments{Unit: "seat-home", Scope: "user"})
		return err == nil
	})
}

// besides is a unit of the system scope that nobody minds.
func besides(s seatOfUser) string {
	s.Helper()
	const name = "seat-bystander.service"
	if _, err := os.Stat(etc + "/" + name); err != nil {
		put(s.T, etc+"/"+name, "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sleep infinity\n")
		s.run("systemctl", "daemon-reload")
		s.run("systemctl", "start", name)
	}
	return name
}

// renewed: what was under way in a manager that is gone ends, and the next is met.
func (s seatOfUser) renewed() {
	s.as("sh", "-c", `printf '[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n' > ~/.config/systemd/user/seat-never.service`)
	s.as("systemctl", "--user", "daemon-reload")
	done := make(chan error, 1)
	go func() {
		_, err := s.carol.ask("ws1", seats.Start, seats.ActArguments{Unit: "seat-never", Scope: "user"})
		done <- err
	}()
	s.until("it is under way", func() bool { return s.shown("seat-never.service", "ActiveState") == "activating" })
	s.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", s.manager())
	require.ErrorContains(s, <-done, "how it ended was not heard: the user manager that had it in hand is gone")
	s.refused(fault.Failed, "user manager of opal is not running", false)
	s.run("systemctl", "restart", s.manager())
	require.Equal(s, "done", asks[seats.ActReply](s, seats.Start, seats.ActArguments{Unit: "seat-home", Scope: "user"}).Units[0].Result)
	s.as("systemctl", "--user", "daemon-reexec")
	s.until("it is served over a new connection", func() bool {
		_, err := s.carol.ask("ws1", seats.Restart, seats.ActArguments{Unit: "seat-home", Scope: "user"})
		return err == nil
	})
}

// replaced: the account is the one that the host has noted, as root, and no other.
func (s seatOfUser) replaced() {
	s.run("systemctl", "stop", "stead-host")
	defer s.run("systemctl", "start", "stead-host")
	const file = "/var/lib/stead/host/account.json"
	noted, err := os.ReadFile(file)
	require.NoError(s, err)
	s.run("useradd", "-m", "ruby")
	s.run("useradd", "-o", "-u", "0", "-M", "toor")
	for text, reason := range map[string]string{
		`{"name":"root","uid":0}`:               "the operator account of this node is root, whose manager is the system's",
		`{"name":"toor","uid":0}`:               `the operator account of this node is "toor", which is root under another name`,
		`{"name":"ruby","uid":` + s.uid() + `}`: fmt.Sprintf(`the operator account of this node is "ruby" with uid %s, and that login has uid %s now: the host has not taken it in`, s.uid(), strings.TrimSpace(s.run("id", "-u", "ruby"))),
		`{"name":"none","uid":4711}`:            `the operator account of this node is "none", and there is no such login`,
		`{}`:                                    "this node has no operator account",
	} {
		require.NoError(s, os.WriteFile(file, []byte(text), 0o600))
		s.refused(fault.Refused, reason, true)
	}
	require.NoError(s, os.WriteFile(file, noted, 0o600))
	require.NoError(s, os.Chown(file, 1, 1))
	s.refused(fault.Refused, "the operator account of this node is not known: "+file+": others than root may write it", true)
	require.NoError(s, os.Chown(file, 0, 0))
	require.Equal(s, "done", asks[seats.ActReply](s, seats.Restart, seats.ActArguments{Unit: "seat-home", Scope: "user"}).Units[0].Result)
}

// words: from here on the machine is good for nothing else.
func (s seatOfUser) words() {
	s.run("systemctl", "restart", s.manager())
	odd.MakeUser(s.run, "opal")
	s.run("journalctl", "--sync")
	odd.CompareUser(s.T, s.run, "opal", func(verb subject.Verb, arguments any) (json.RawMessage, error) {
		return s.carol.ask("ws1", verb, arguments)
	})
}
