package escalate

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/test/lab"
)

func TestRuntimeActsThroughTheHelperOnARealMachine(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	a := n.do(Start, "a.service")
	require.Empty(t, a.Err)
	require.Equal(t, unit.JobDone, a.Out.Result)
	require.Equal(t, "active", n.show("a.service", "ActiveState"))
	before := n.show("a.service", "InvocationID")
	require.Empty(t, n.do(Restart, "a.service").Err)
	require.NotEqual(t, before, n.show("a.service", "InvocationID"))

	a = n.do(Enable, "a.service")
	require.Empty(t, a.Err)
	require.Equal(t, []unit.LinkMade{{Path: "/etc/systemd/system/multi-user.target.wants/a.service", To: "/etc/systemd/system/a.service"}}, a.Out.Links.Made)
	require.Contains(t, n.show("multi-user.target", "Wants"), "a.service", "systemd knows it")
	a = n.do(Disable, "a.service")
	require.Equal(t, []string{"/etc/systemd/system/multi-user.target.wants/a.service"}, a.Out.Links.Removed)
	require.NotContains(t, n.show("multi-user.target", "Wants"), "a.service")

	require.Empty(t, n.do(Stop, "a.service").Err)
	require.Equal(t, "inactive", n.show("a.service", "ActiveState"))
	n.unit("bad.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n")
	n.run("systemctl", "daemon-reload")
	a = n.do(Start, "bad.service")
	require.Empty(t, a.Err)
	require.Equal(t, unit.JobFailed, a.Out.Result)
	require.Equal(t, "failed", n.show("bad.service", "ActiveState"))
	require.Empty(t, n.do(ResetFailed, "bad.service").Err)
	require.Equal(t, "inactive", n.show("bad.service", "ActiveState"))
	a = n.do(Start, "none.service")
	require.Equal(t, fault.NotFound, a.Class)
	require.Contains(t, a.Err, "Unit none.service not found")

	log := n.run("journalctl", "-u", "stead-escalate", "-o", "cat")
	for _, act := range []Act{Start, Restart, Enable, Disable, Stop} {
		require.Regexp(t, fmt.Sprintf(`act done.* act=%s unit=a.service for="operator alice"`, act), log)
	}
	require.Equal(t, "root", n.run("stat", "-c", "%U", fmt.Sprintf("/proc/%d", n.pid("stead-escalate.service"))))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid("stead-escalate.service")))
	require.NoError(t, err)
	require.Contains(t, string(status), "CapEff:\t0000000000000002", "of root's capabilities the one that leads through folders of others")
	require.Contains(t, string(status), "NoNewPrivs:\t1")
}

func TestHelperServesNobodyElseOnARealMachine(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	const no = "it is not the main process of stead-runtime.service"
	require.Empty(t, n.do(Start, "a.service").Err)
	group := n.journalGroup()
	account := func(groups ...uint32) string {
		out, err := n.as(groups, binary)
		require.NoError(t, err, out)
		return out
	}
	require.Equal(t, no, knock(SocketPath), "root")
	require.Equal(t, no, child("connects", nil), "another process of root's")
	require.Equal(t, no, account(group), "another process of the account")
	require.Contains(t, account(), "permission denied", "the account without the group")
	require.Equal(t, no, n.ask(order{What: "child"}).Text, "a child of the main process, in its unit")
	require.Equal(t, no, n.run("systemd-run", "-q", "--pipe", "--wait", "-p", "User=stead", "-p", "DynamicUser=yes", "-p", "SupplementaryGroups=systemd-journal",
		"-E", otherEnv+"=connects", "-E", "SOCKET="+SocketPath, binary), "another unit of the account")
	out, err := n.as([]uint32{group}, "/bin/sh", "-c", "exec "+binary)
	require.NoError(t, err)
	require.Equal(t, no, out, "a process that became another program")

	// A child that inherits the very connection sends on it.
	helper := n.pid("stead-escalate.service")
	require.Equal(t, "<nil>", n.ask(order{What: "inherit"}).Text)
	require.True(t, lab.Await(5*time.Second, func() bool {
		return strings.Contains(n.run("journalctl", "-u", "stead-escalate", "-o", "cat"), "it was not the runtime that sent")
	}))
	require.Equal(t, "active", n.show("a.service", "ActiveState"), "it asked for a stop")
	// The main process connects again, and is served as before.
	require.Empty(t, n.do(Restart, "a.service").Err)
	require.Equal(t, helper, n.pid("stead-escalate.service"), "the helper lives on")

	// No program that the runtime starts has the connection.
	text := n.ask(order{What: "descriptors"}).Text
	require.Contains(t, text, "0 -> ")
	require.NotContains(t, text, "socket:")

	// A main process that became another program has lost its connection; it is
	// still the main process.
	pid := n.pid("stead-runtime.service")
	n.ask(order{What: "exec"})
	require.True(t, lab.Await(10*time.Second, func() bool { _, err := os.Stat("/run/stead-runtime/exec"); return err == nil }))
	require.Equal(t, "0 sockets, knock: hello", n.run("cat", "/run/stead-runtime/exec"))
	require.Equal(t, pid, n.pid("stead-runtime.service"))

	// A unit of that name that runs as root is not served.
	n.run("mkdir", "-p", "/etc/systemd/system/stead-runtime.service.d")
	n.unit("stead-runtime.service.d/root.conf", "[Service]\nUser=\nDynamicUser=no\n")
	n.run("systemctl", "daemon-reload")
	n.run("systemctl", "restart", "stead-runtime.service")
	a := n.ask(order{What: "do", Request: Request{Act: Stop, Unit: "a.service"}, Wait: time.Second})
	require.Equal(t, fault.Unavailable, a.Class)
	require.Contains(t, a.Err, no)
}

func TestRuntimesAccountCanReadAndNothingElse(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	// The message bus serves no account that it cannot look up, and it looks up no
	// dynamic one.
	require.NoError(t, os.WriteFile("/run/stead.conf", []byte("u stead - \"stead runtime\"\n"), 0o644))
	require.NoError(t, exec.Command("systemd-sysusers", "/run/stead.conf").Run())
	n := newNode(t)
	require.Empty(t, n.do(Start, "a.service").Err, "served as the dynamic one is")
	group := []uint32{n.journalGroup()}
	can := func(args ...string) {
		t.Helper()
		out, err := n.as(group, args...)
		require.NoError(t, err, out)
		require.NotEmpty(t, out)
	}
	cannot := func(why string, args ...string) {
		t.Helper()
		out, err := n.as(group, args...)
		require.Error(t, err, "%s: %s", args, out)
		require.Regexp(t, why, out)
	}
	can("systemctl", "show", "a.service")
	can("systemctl", "list-units", "--all")
	can("systemctl", "list-unit-files")
	can("journalctl", "-u", "stead-escalate", "-n", "5")
	for _, act := range []string{"start", "stop", "restart", "enable", "disable", "reset-failed", "mask", "kill"} {
		cannot("(?i)denied|authentication|not permitted", "systemctl", "--no-ask-password", act, "a.service")
	}
	cannot("(?i)denied|authentication|not permitted", "systemctl", "--no-ask-password", "daemon-reload")
	cannot("(?i)denied|not permitted|not connected", "busctl", "--address=unix:path=/run/systemd/private", "list")
	cannot("(?i)denied|read-only", "touch", "/etc/systemd/system/x.service")
	cannot("(?i)denied|read-only", "touch", "/run/systemd/system/x.service")
	cannot("(?i)denied", "ls", "/run/stead-escalate")
	cannot("(?i)not permitted", "/bin/sh", "-c", fmt.Sprint("kill -9 ", n.pid("a.service")))
	cannot("(?i)not permitted", "/bin/sh", "-c", fmt.Sprint("kill -9 ", n.pid("stead-escalate.service")))
	require.Equal(t, "active", n.show("a.service", "ActiveState"))
}

func TestBranchThatSteadSitsOnIsNotSawnOff(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	n.unit("base.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	n.unit("under.service", "[Unit]\nRequires=base.service\n[Service]\nExecStart=/bin/sleep infinity\n")
	n.unit("foe.service", "[Unit]\nConflicts=stead-runtime.service\n[Service]\nExecStart=/bin/sleep infinity\n")
	n.unit("goes.target", "[Unit]\nDescription=x\n")
	require.NoError(t, os.MkdirAll("/etc/systemd/system/stead-runtime.service.d", 0o755))
	n.unit("stead-runtime.service.d/x.conf", "[Unit]\nRequires=under.service\n")
	require.NoError(t, os.Symlink("/lib/systemd/system/dbus.service", "/etc/systemd/system/mybus.service"))
	require.NoError(t, os.Symlink("/lib/systemd/system/reboot.target", "/etc/systemd/system/nice.target"))
	n.run("systemctl", "daemon-reload")
	n.run("systemctl", "restart", "stead-runtime.service")
	pid := n.pid("stead-runtime.service")
	for _, c := range []struct {
		act  Act
		unit unit.Name
		text string
	}{
		{Stop, "stead-runtime.service", "it is protected: it is stead's own"},
		{Restart, "stead-escalate.service", "it is protected: it is stead's own"},
		{Stop, "dbus.service", "it is protected: stead stands on it"},
		{Restart, "dbus.socket", "it is protected: stead stands on it"},
		{Stop, "mybus.service", "it is dbus.service, which is protected"},
		{Disable, "mybus.service", "it is dbus.service, which is protected"},
		{Stop, "base.service", "it stops stead-runtime.service, which is protected: it is stead's own"},
		{Restart, "base.service", "it stops stead-runtime.service"},
		{Stop, "sysinit.target", "it is protected"},
		{Start, "foe.service", "it stops stead-runtime.service"},
		{Start, "poweroff.target", "stops or suspends the machine"},
		{Start, "nice.target", "target, which is protected: starting it stops or suspends the machine"},
	} {
		a := n.do(c.act, c.unit)
		require.Equal(t, fault.Refused, a.Class, "%s %s: %+v", c.act, c.unit, a)
		require.Contains(t, a.Err, c.text)
	}
	require.Equal(t, pid, n.pid("stead-runtime.service"))
	require.Equal(t, "active", n.show("base.service", "ActiveState"))
	require.Empty(t, n.do(Start, "stead-runtime.service").Err, "a start harms nothing")
	require.Empty(t, n.do(Start, "goes.target").Err)
	require.Empty(t, n.do(Stop, "goes.target").Err)
}

func TestCallsOutliveRuntimeAndHelperOnARealMachine(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	kill := func(name string) {
		t.Helper()
		require.NoError(t, syscall.Kill(n.pid(name), syscall.SIGKILL))
	}
	queued := func() {
		t.Helper()
		require.True(t, lab.Await(5*time.Second, func() bool { return n.show("slow.service", "ActiveState") == "activating" }))
	}

	// The runtime dies while a restart is under way: the next one is told.
	n.run("systemctl", "start", "slow.service")
	before := n.show("slow.service", "InvocationID")
	gone := make(chan told, 1)
	go func() { gone <- n.do(Restart, "slow.service") }()
	queued()
	kill("stead-runtime.service")
	require.NotEmpty(t, (<-gone).Err)
	require.True(t, lab.Await(20*time.Second, func() bool { return len(n.ask(order{What: "late"}).Late) == 1 }))
	late := n.ask(order{What: "late"}).Late[0]
	require.Equal(t, "restart slow.service operator alice done", fmt.Sprintf("%s %s %s %s", late.Act, late.Unit, late.For, late.Result))
	require.Greater(t, late.Took, 2*time.Second)
	require.NotEqual(t, before, n.show("slow.service", "InvocationID"))
	require.Equal(t, "active", n.show("slow.service", "ActiveState"))

	// The helper dies: the same call is answered by the next one, with systemd's word.
	answered := make(chan told, 1)
	go func() { answered <- n.do(Restart, "slow.service") }()
	queued()
	kill("stead-escalate.service")
	a := <-answered
	require.Empty(t, a.Err)
	require.Equal(t, unit.JobDone, a.Out.Result)
	require.Empty(t, a.Out.Note)

	// Both die, and PID 1 starts itself anew.
	go func() { answered <- n.do(Restart, "slow.service") }()
	queued()
	kill("stead-runtime.service")
	kill("stead-escalate.service")
	n.run("systemctl", "daemon-reexec")
	require.NotEmpty(t, (<-answered).Err)
	require.True(t, lab.Await(20*time.Second, func() bool { return len(n.ask(order{What: "late"}).Late) == 1 }))
	late = n.ask(order{What: "late"}).Late[0]
	require.NoError(t, late.Err)
	require.Equal(t, unit.JobDone, late.Result)

	// A job that ends while nobody listens is made out from the unit.
	require.NoError(t, os.MkdirAll("/run/systemd/system/stead-escalate.service.d", 0o755))
	require.NoError(t, os.WriteFile("/run/systemd/system/stead-escalate.service.d/late.conf", []byte("[Service]\nExecStartPre=/bin/sleep 4\n"), 0o644))
	n.run("systemctl", "daemon-reload")
	go func() { answered <- n.do(Restart, "slow.service") }()
	queued()
	kill("stead-escalate.service")
	a = <-answered
	require.Empty(t, a.Err)
	require.Equal(t, unit.JobDone, a.Out.Result)
	require.Equal(t, "systemd's own word was not heard: the unit is active (exited) now", a.Out.Note)
}

// TestMixedCallsWhileTheHelperIsKilled: each call gets one answer, none is done
// twice, and none that is said to be undone was done.
func TestMixedCallsWhileTheHelperIsKilled(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	n := newNode(t)
	const units = 10
	for i := range units {
		n.unit(fmt.Sprintf("k%d.service", i), fmt.Sprintf("[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo x >> /run/k%d; sleep 0.3'\n", i))
	}
	n.run("systemctl", "daemon-reload")
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(1500 * time.Millisecond):
				_ = exec.Command("systemctl", "kill", "--kill-who=main", "-s", "KILL", "stead-escalate.service").Run()
			}
		}
	})
	var wg sync.WaitGroup
	done, doubt := make([]int, units), make([]int, units)
	for i := range units {
		wg.Go(func() {
			for range 10 {
				a := n.do(Restart, unit.Name(fmt.Sprintf("k%d.service", i)))
				switch {
				case a.Err == "" && a.Out.Result == unit.JobDone:
					done[i]++
				case a.Class == fault.Unavailable:
				default:
					t.Logf("in doubt: %s %s", a.Out.Result, a.Err)
					doubt[i]++
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	killer.Wait()
	all, unsure := 0, 0
	for i := range units {
		text, err := os.ReadFile(fmt.Sprintf("/run/k%d", i))
		require.NoError(t, err)
		ran := strings.Count(string(text), "x")
		require.GreaterOrEqual(t, ran, done[i], "k%d", i)
		require.LessOrEqual(t, ran, done[i]+doubt[i], "k%d: it was done twice, or although it was said to be undone", i)
		all, unsure = all+done[i], unsure+doubt[i]
	}
	t.Logf("%d of %d done, %d in doubt", all, 10*units, unsure)
	require.GreaterOrEqual(t, all, 95)
}
