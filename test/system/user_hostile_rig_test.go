package system

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

const (
	vault  = "/srv/vault" // where the secrets of others lie
	sealed = "the seal of root, which no account may see"
	// mostHost is the most memory that a host may ever have had under any attack, in
	// KiB: a quiet one with so few declarations has some 40 MiB under a trace.
	mostHost = 192 << 10
	// rogue is the test binary, where everybody may run it.
	rogue = "/opt/" + rogueName
)

// fort is a node whose host runs as its own hardened service, traced from its start
// on, for an account whose owner is hostile.
type fort struct {
	*login
	trace *tracing
	calm  []time.Duration // how long the system scope took to undo a stop while nobody attacked
	under []time.Duration // and under each attack
	spent int             // of the system's units that are stopped
	peak  int             // KiB of memory that a host had at most

	version int // of the units of the account
}

// guards are the system's units, each of which is stopped once: more often, and
// the host would call it a fight.
const guards = 40

func newFort(t *testing.T) *fort {
	t.Helper()
	m := install(t)
	f := &fort{login: m.login("opal")}
	m.account("opal")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, m.CopyIn(self, rogue))
	m.Run(t, "sh", "-ec", `mkdir -p $1 $1/wants; printf %s "$2" > $1/secret; cp $1/secret $1/wants/; cp $1/secret $1/readable; cp $1/secret /root/secret
		chmod 600 $1/secret $1/wants/secret /root/secret; chmod 644 $1/readable; chmod 711 $1; chmod 700 $1/wants; mkdir -p /root/.config`, "sh", vault, sealed)
	f.as("sh", "-ec", `mkdir triggers; for i in $(seq -w 0 99); do echo 1 > triggers/a$i; done`)
	from := f.declareOwn()
	f.start()
	m.converged(from)
	return f
}

// declareOwn declares the guards, and the present version of the account's units.
func (f *fort) declareOwn() time.Time {
	f.t.Helper()
	var docs []string
	for i := range guards {
		docs = append(docs, up(fmt.Sprintf("guard%02d", i), sleeper(i)))
	}
	for i := range onUnits {
		fields := "scope: user\nensure: running\nenabled: true\ntriggers: [" + f.home("triggers", name(i)) + "]\ndropins: {10-a.conf: \"[Unit]\\nDescription=one\\n\"}\n"
		docs = append(docs, text{name(i), fields, f.content(i)}.String())
	}
	return f.declare(map[string]string{"all": documents(docs...)})
}

// content is the unit file of the account's unit of that number.
func (f *fort) content(i int) string {
	return strings.Replace(daemon(100*f.version+i), "default.target", name(i)+".target", 1)
}

// start starts the host. It is held until the trace has it, which is before it has
// done anything for an account.
func (f *fort) start() {
	f.t.Helper()
	procs := f.Path("/sys/fs/cgroup/system.slice/" + service + "/cgroup.procs")
	f.Run(f.t, "systemctl", "start", "--no-block", service)
	pid := 0
	f.until("the host's process is there", func() bool {
		data, _ := os.ReadFile(procs)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid != 0
	})
	require.NoError(f.t, stop(pid))
	f.trace = f.traceOf(f.line(pid, "NSpid:", -1))
	require.NoError(f.t, wake(pid))
	f.until("the host serves", func() bool { return f.prop(service, "ActiveState") == "active" })
}

// line is a word of a line of what the kernel says of a process; -1 is the last.
func (f *fort) line(pid int, name string, word int) string {
	f.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(f.t, err)
	for line := range strings.Lines(string(status)) {
		if w := strings.Fields(line); w[0] == name {
			if word < 0 {
				word += len(w)
			}
			return w[word]
		}
	}
	return ""
}

// again starts the host anew, with something done in between.
func (f *fort) again(between func()) {
	f.t.Helper()
	f.ends()
	between()
	f.start()
}

// ends stops the host, and judges its trace.
func (f *fort) ends() {
	f.t.Helper()
	f.measure()
	f.Run(f.t, "systemctl", "stop", service)
	f.watched()
}

// measure takes in how much memory the host has had.
func (f *fort) measure() {
	f.t.Helper()
	kib, err := strconv.Atoi(f.line(f.hostPID(), "VmHWM:", 1))
	require.NoError(f.t, err)
	f.peak = max(f.peak, kib)
	require.LessOrEqual(f.t, f.peak, mostHost, "KiB of memory of the host")
}

// guard stops a unit of the system scope, and says how long it was so.
func (f *fort) guard() time.Duration {
	f.t.Helper()
	name := fmt.Sprintf("guard%02d.service", f.spent)
	f.spent++
	require.Less(f.t, f.spent, guards)
	before := f.prop(name, "InvocationID")
	from := time.Now()
	f.Run(f.t, "systemctl", "stop", name)
	took := time.Duration(0)
	f.until("the system scope is kept", func() bool {
		took = time.Since(from)
		id := f.prop(name, "InvocationID")
		return id != "" && id != before && f.prop(name, "ActiveState") == "active"
	})
	return took
}

// outside are all files that are not the account's, with all that tells a change.
func (f *fort) outside() map[string]string {
	f.t.Helper()
	all, root := make(map[string]string), strings.TrimSuffix(f.Path("/"), "/")
	for _, top := range []string{"/etc", "/root", "/srv"} {
		require.NoError(f.t, filepath.WalkDir(root+top, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel := strings.TrimPrefix(p, root)
			if rel == f.home() || strings.HasPrefix(path.Dir(rel), "/root") && d.IsDir() {
				return fs.SkipDir
			}
			st, err := d.Info()
			if err == nil {
				s := st.Sys().(*syscall.Stat_t)
				all[rel] = fmt.Sprintf("%v %d:%d, %d bytes, written %d.%09d", st.Mode(), s.Uid, s.Gid, st.Size(), s.Mtim.Sec, s.Mtim.Nsec)
			}
			return err
		}))
	}
	return all
}

// watched ends with the trace of a host that was stopped, and judges it.
func (f *fort) watched() {
	f.t.Helper()
	select {
	case <-f.trace.done:
	case <-time.After(patience):
		f.t.Fatal("strace does not end")
	}
	bad, knocks, own := f.led(f.trace.acts(f.uid))
	require.Empty(f.t, bad, "root had to do with what is the account's")
	require.NotZero(f.t, knocks, "the trace does not see the way to the manager")
	require.NotZero(f.t, own, "the trace does not see what the account's process does")
	f.t.Logf("root asked %d times for the way to the manager; the account's process named its own files %d times", knocks, own)
}

// differences says what is another in the second.
func differences(before, after map[string]string) (all []string) {
	for p, was := range before {
		if after[p] != was {
			all = append(all, fmt.Sprintf("%s was %s, and is %q", p, was, after[p]))
		}
	}
	for p, is := range after {
		if _, was := before[p]; !was {
			all = append(all, fmt.Sprintf("%s is %s, and was not there", p, is))
		}
	}
	return all
}

// rogueName is what the test binary is called where it is a program of a hostile
// owner.
const rogueName = "rogue"

// beRogue is that program.
func beRogue(args []string) error {
	switch args[0] {
	case "speak": // HOW: is a manager on the socket that is handed to it
		l, err := net.FileListener(os.NewFile(3, "socket"))
		if err != nil {
			return err
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go speak(c, args[1])
		}
	}
	return fmt.Errorf("no such attack: %q", args)
}

// speak greets as a manager does, and says too much from there on.
func speak(c net.Conn, how string) {
	defer c.Close()
	for in := bufio.NewScanner(c); in.Scan() && in.Text() != "BEGIN"; {
		answer := "ERROR"
		switch words := strings.Fields(strings.Trim(in.Text(), "\x00")); {
		case len(words) > 1 && words[0] == "AUTH":
			answer = "OK 00000000000000000000000000000000"
		case len(words) == 1 && words[0] == "AUTH":
			answer = "REJECTED EXTERNAL"
		}
		fmt.Fprintf(c, "%s\r\n", answer)
	}
	var b bytes.Buffer
	if how == "huge" {
		head := make([]byte, 1<<20)
		copy(head, []byte{'l', 2, 0, 1, 0xff, 0xff, 0xff, 0x7f}) // an answer of 2 GiB
		b.Write(head)
	} else {
		m := dbus.Message{Type: dbus.TypeSignal, Body: []any{uint32(1), dbus.ObjectPath("/org/freedesktop/systemd1/job/1"), "a00.service", "done"},
			Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")), dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.systemd1.Manager"),
				dbus.FieldMember: dbus.MakeVariant("JobRemoved"), dbus.FieldSignature: dbus.MakeVariant(dbus.ParseSignatureMust("uoss"))}}
		for range 1000 {
			if m.EncodeTo(&b, binary.LittleEndian) != nil {
				return
			}
		}
	}
	for {
		if _, err := c.Write(b.Bytes()); err != nil {
			return
		}
	}
}
