package cases

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F058: an entry from which a reader goes on is gone, with the file that it lay in.
// stead: goes on with what comes after it, and tells the caller that there may be a
// gap; without one it says nothing.
func TestF058AGapBehindALostCursorIsTold(t *testing.T) {
	d := sitAlone(t)
	d.script("f058", "", "echo one; echo two\n")
	first := d.entries("f058")
	cursor := func(word string) string {
		for _, e := range first {
			if e["MESSAGE"] == word {
				return e["__CURSOR"].(string)
			}
		}
		t.Fatal(word)
		return ""
	}
	read := func(args ...string) (string, string) {
		out := d.stead("", append([]string{"journal", "-u", "f058", "-n", hostname, "--cursor", cursor("one")}, args...)...)
		require.Zero(t, out.Code, out.Stderr)
		return out.Stdout, out.Stderr
	}
	shown, told := read()
	require.Contains(t, shown, ": two")
	require.Empty(t, told)
	shown, told = read("-g", "nothing like that", "-o", "json")
	require.Empty(t, shown+told, "its entry is there, and is not asked for")

	d.sh("journalctl --rotate; journalctl --vacuum-files=1; systemctl start f058; journalctl --sync")
	shown, told = read()
	require.Contains(t, shown, ": two")
	require.Contains(t, told, "warning: journal on ws1: the entry of the cursor is no longer there")
	c := d.node.Command(t.Context(), "timeout", "3", "stead", "journal", "-f", "-u", "f058", "-n", hostname, "--cursor", cursor("one"))
	out, _ := c.CombinedOutput() // it ends by the signal
	require.Contains(t, string(out), "no longer there")
	require.Contains(t, string(out), ": two")
}

// F103: a file of the journal is damaged, or taken away, while it is followed.
// stead: goes on; what lies in other files is shown, and nothing comes twice.
func TestF103AFollowerOutlivesADamagedJournal(t *testing.T) {
	d := sitAlone(t)
	d.write("/srv/f103.sh", `for i in 1 2 3 4 5; do
	for j in 1 2 3 4 5 6 7 8 9; do echo "line-$i$j"; done
	journalctl --sync; journalctl --rotate
	for f in $(ls -t /var/log/journal/*/system@*.journal /run/log/journal/*/system@*.journal 2>/dev/null | head -n 1); do
		head -c 4096 /dev/urandom | dd of="$f" bs=4096 seek=40 conv=notrunc 2>/dev/null
	done
	journalctl --vacuum-files=3 2>/dev/null
	sleep 0.2
done
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "the end $i"; sleep 0.5; done
`)
	d.foreign(map[string]string{"f103.service": "[Service]\nExecStart=/bin/sh /srv/f103.sh\n"})
	out, end := d.start("stead", "journal", "-f", "-u", "f103", "-n", hostname)
	d.run("systemctl", "start", "f103.service")
	times := map[string]int{}
	ended := false
	for s := bufio.NewScanner(out); !ended && s.Scan(); {
		if i := strings.Index(s.Text(), "line-"); i >= 0 {
			times[s.Text()[i:]]++
		}
		ended = strings.Contains(s.Text(), "the end")
	}
	require.True(t, ended, "it follows to the end")
	end()
	for line, n := range times {
		require.Equal(t, 1, n, line)
	}
	require.Greater(t, len(times), 30, "what was there to read while it was whole")
	require.NotEmpty(t, said(d.entries("f103"), "the end"), "asked anew it reads what can be read")
	d.sh("rm -f /var/log/journal/*/system@*.journal /run/log/journal/*/system@*.journal")
}

// F068: the manager reloads again and again while jobs end.
// stead: hears the end of every job, of its own and of verbs, and asks where it did not.
func TestF068NoEndOfAJobIsLostToAReload(t *testing.T) {
	d := sitAlone(t)
	var docs []service
	for i := range 5 {
		docs = append(docs, d.service(fmt.Sprint(i), "ensure: running\n", sleeper))
	}
	_, end := d.start("sh", "-c", "while :; do systemctl daemon-reload; done")
	d.apply(docs...)
	d.converged()
	for i := range 5 {
		begun := time.Now()
		out := d.stead("", "restart", fmt.Sprintf("f068-%d", i), "-n", hostname)
		require.Zero(t, out.Code, out.Stderr)
		require.Contains(t, out.Stdout, "restarted")
		require.Less(t, time.Since(begun), 20*time.Second)
	}
	end()
	d.converged()
}

// F081: the bus goes away, and the manager is executed anew.
// stead: connects again, looks at everything, and goes on: what is changed meanwhile
// lands, what drifts is put right, and verbs answer.
func TestF081TheBusAndTheManagerMayGoAway(t *testing.T) {
	d := sitAlone(t)
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	for i, hurt := range [][]string{{"systemctl", "restart", "dbus.service"}, {"systemctl", "daemon-reexec"}} {
		d.run(hurt...)
		d.apply(d.service("", "ensure: running\n", sleeper+fmt.Sprintf("Environment=RUN=%d\n", i)))
		d.converged()
		require.Equal(t, fmt.Sprintf("RUN=%d", i), d.prop("f081.service", "Environment"))
		d.run("systemctl", "stop", "f081.service")
		d.until("it is started again", func() bool { return d.prop("f081.service", "ActiveState") == "active" })
		last := ""
		d.until("verbs answer", func() bool {
			out := d.stead("", "restart", "f081", "-n", hostname)
			last = out.Stderr
			return out.Code == 0
		}, &last)
		require.Equal(t, "active", d.status("f081.service").Active)
	}
}

// F088: two hundred units change at once.
// stead: reloads the manager once for all of them, and not when nothing changes.
func TestF088TwoHundredUnitsTakeOneReload(t *testing.T) {
	d := sitAlone(t)
	d.until("nothing is left of others", func() bool { return len(d.reports()) == 0 })
	reloads := func() int {
		d.run("journalctl", "--sync")
		return strings.Count(d.exec("journalctl", "--quiet", "--output=cat", "_PID=1", "--grep=^Reloading\\.").Stdout, "Reloading.")
	}
	docs := func(version int) (all []service) {
		for i := range 200 {
			all = append(all, d.service(fmt.Sprint(i), fmt.Sprintf("unit: f088-%d.target\nensure: running\n", i), fmt.Sprintf("[Unit]\nDescription=%d in version %d\n", i, version)))
		}
		return all
	}
	for version := range 2 {
		before := reloads()
		d.apply(docs(version)...)
		d.converged("f088-0", "f088-199")
		d.converged()
		require.Equal(t, 1, reloads()-before, "version %d", version)
		require.Equal(t, fmt.Sprintf("199 in version %d", version), d.prop("f088-199.target", "Description"))
	}
	before := reloads()
	d.apply(docs(1)...)
	d.run("systemctl", "stop", "f088-0.target")
	d.until("it is put right", func() bool { return d.prop("f088-0.target", "ActiveState") == "active" })
	require.Equal(t, before, reloads())
}

// F093: lingering is off, and is declared off again.
// stead: reads how it stands whether there is a session or not, and changes nothing.
func TestF093LingeringThatIsOffStaysUntouched(t *testing.T) {
	d := sitAlone(t)
	set := func(how string) uint64 {
		out := d.stead("", "node", "linger", hostname, how, "--yes", "-o", "json")
		require.Zero(t, out.Code, out.Stderr)
		var reply struct{ Revision uint64 }
		require.NoError(t, json.Unmarshal([]byte(out.Stdout), &reply))
		return reply.Revision
	}
	t.Cleanup(func() {
		_, err := d.node.Exec(context.Background(), "stead", "node", "linger", hostname, "auto", "--yes")
		require.NoError(t, err)
	})
	d.until("nothing is left of others", func() bool { return d.exec("test", "-e", "/var/lib/systemd/linger/"+account).Code == 1 })
	first := set("off")
	since := strings.TrimSpace(d.run("date", "+%s"))
	require.Equal(t, first, set("off"), "the second time is no change")
	d.apply(d.service("", "scope: user\nensure: running\n", sleeper))
	d.says("f093", report.Waiting, report.LingerOff, "lingering")
	require.NoFileExists(t, d.node.Path("/var/lib/systemd/linger/"+account))
	require.Empty(t, d.exec("journalctl", "--quiet", "--output=cat", "--since=@"+since, "--unit=stead-host", "--grep=linger.*(on|off)$").Stdout)
	set("on")
	d.converged()
	require.FileExists(t, d.node.Path("/var/lib/systemd/linger/"+account))
}

// F094: a node is away, and what happens to its units meanwhile is missed.
// stead: a verb says who does not answer, what is known of the node has its age, and
// when it is back everything is looked at and told anew.
func TestF094WhatIsMissedOfANodeThatIsAwayIsToldWhenItIsBack(t *testing.T) {
	d := sitAlone(t)
	d.apply(d.service("", "", sleeper), d.service("kept", "ensure: running\n", sleeper))
	d.converged()
	seen := func() time.Time {
		var reply struct{ Nodes []struct{ Seen time.Time } }
		require.NoError(t, json.Unmarshal([]byte(d.stead("", "get", "nodes", "-o", "json").Stdout), &reply))
		require.Len(t, reply.Nodes, 1)
		return reply.Nodes[0].Seen
	}
	d.run("systemctl", "stop", "stead-host.service", "stead-runtime.service")
	back := func() { d.run("systemctl", "start", "stead-host.service", "stead-runtime.service") }
	t.Cleanup(func() {
		_, _ = d.node.Exec(context.Background(), "systemctl", "start", "stead-host.service", "stead-runtime.service")
	})
	d.run("systemctl", "stop", "f094-kept.service")
	d.run("systemctl", "start", "f094.service")
	out := d.stead("", "status", "f094", "-n", hostname)
	require.Equal(t, 4, out.Code)
	require.Contains(t, out.Stderr, "nobody serves it: ws1")
	away := seen()
	require.Contains(t, d.stead("", "get", "nodes").Stdout, "SEEN")
	require.Equal(t, away, seen(), "it was not seen since")

	back()
	d.until("it is seen again", func() bool { return seen().After(away) })
	d.converged()
	require.Equal(t, "active", d.prop("f094-kept.service", "ActiveState"))
	last := ""
	d.until("the mesh has the news", func() bool {
		last = d.stead("", "get", "reports", "-o", "json").Stdout
		return strings.Count(last, `"active": "active"`) >= 2
	}, &last)
}

// F098: the folder of unit files is read-only, or its file system full.
// stead: says so for each path, leaves what stands there whole, starts and restarts
// nothing, and goes on by itself when there is room.
func TestF098ADiskThatCannotBeWrittenIsSaidPathByPath(t *testing.T) {
	d := sitAlone(t)
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	old := d.read(etc + "/f098.service")
	run := d.prop("f098.service", "InvocationID")
	// A file system of its own, for it to be read-only in the host's namespace too.
	d.sh("mkdir -p /run/f098; mount -t tmpfs -o size=2m none /run/f098; cp -a " + etc + "/. /run/f098; mount --bind /run/f098 " + etc + "; mount -o remount,ro " + etc)
	t.Cleanup(func() {
		_, _ = d.node.Exec(context.Background(), "sh", "-c", "umount "+etc+"; umount /run/f098; rm -f "+etc+"/f098*; systemctl daemon-reload")
	})
	d.apply(d.service("", "ensure: running\n", sleeper+"Environment=A=1\n"), d.service("new", "ensure: running\n", sleeper))
	for _, name := range []string{"f098", "f098-new"} {
		r := d.says(name, report.Failed, report.DiskError, etc+"/"+name+".service", "read-only file system")
		require.NotZero(t, r.Retry)
	}
	require.Equal(t, old, d.read(etc+"/f098.service"))
	require.Equal(t, run, d.prop("f098.service", "InvocationID"))
	d.run("mount", "-o", "remount,rw", etc)
	d.converged()
	require.Equal(t, "A=1", d.prop("f098.service", "Environment"))

	d.sh("head -c 2m /dev/zero > " + etc + "/fill || true")
	d.apply(d.service("", "ensure: running\n", sleeper+"Environment=A=2\n"))
	d.says("f098", report.Failed, report.DiskError, "no space left")
	require.Contains(t, d.read(etc+"/f098.service"), "A=1", "the old file stays whole")
	d.run("rm", etc+"/fill")
	d.converged()
	require.Empty(t, d.run("find", etc, "-name", ".stead*"))
	d.withdraw()
}

// F109: the manager is reloaded while a forking service starts, and loses the PID
// file that it waits for.
// stead: holds its own reload back while such a start of its own is in flight.
func TestF109AReloadDoesNotTakeAForkingUnitsPIDFile(t *testing.T) {
	d := sitAlone(t)
	d.until("nothing is left of others", func() bool { return len(d.reports()) == 0 })
	for n := 1; ; n++ { // until the second is written while the first starts, which is for the machine to say
		fork, second := fmt.Sprintf("fork-%d", n), fmt.Sprintf("second-%d", n)
		unit, pid := d.name(fork)+".service", "/run/"+d.name(fork)+".pid"
		d.apply(d.service(fork, "ensure: running\n", "[Service]\nType=forking\nPIDFile="+pid+"\nExecStart=/bin/sh -c 'sleep 100000 & (sleep 4; echo $! > "+pid+") &'\n"))
		d.apply(d.service(second, "ensure: running\n", sleeper))
		d.converged(d.name(fork), d.name(second))
		require.Equal(t, "active", d.prop(unit, "ActiveState"))
		require.Equal(t, strings.TrimSpace(d.read(pid)), d.prop(unit, "MainPID"))
		require.Equal(t, "0", d.prop(unit, "NRestarts"))
		up, err := time.Parse("Mon 2006-01-02 15:04:05 MST", d.prop(unit, "ActiveEnterTimestamp"))
		require.NoError(t, err)
		if wrote := steps(d.report(d.name(second)), "write", ".service"); wrote[0].At.Before(up) {
			return
		}
		require.Less(t, n, 9, "the second declaration came after the start of the first had ended")
	}
}
