package system

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/seats"
)

const (
	// knockEnv makes the test binary a stranger who knocks at the socket that it names.
	knockEnv = "STEAD_SYSTEM_KNOCK"
	// stranger is where that lies: not in a folder that services have of their own.
	stranger   = "/opt/stranger"
	helperAt   = "/run/stead/escalate.sock"
	bystander  = "a.service"
	notTheMain = "it is not the main process of " + runtimeService
)

// knock connects to the helper, asks for a stop whatever it hears, and returns what
// it heard.
func knock(socket string) string {
	nc, err := net.Dial("unix", socket)
	if err != nil {
		return err.Error()
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	heard, err := bufio.NewReader(nc).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	_, err = fmt.Fprintf(nc, `{"id":"stranger0123456789","act":"stop","unit":%q}`+"\n", bystander)
	return fmt.Sprintf("%s (%v)", strings.TrimSpace(heard), err)
}

// rights is what is tried on the machine that the test is on.
type rights struct {
	*testing.T
	carol person
	run   func(args ...string) string
	main  string // process of the runtime
}

func newRights(t *testing.T, carol person) rights {
	t.Helper()
	r := rights{t, carol, here(t), shown(t, runtimeService, "MainPID")}
	require.NotEqual(t, "0", r.main)
	put(t, etc+"/"+bystander, sleeper(1))
	r.run("systemctl", "daemon-reload")
	r.run("systemctl", "start", bystander)
	return r
}

// as runs a command as the runtime's account, with its groups and without
// capabilities, among the files that the runtime sees or among all of them.
func (r rights) as(sandboxed bool, args ...string) (string, error) {
	account := []string{"setpriv", "--reuid=stead", "--regid=stead", "--groups=systemd-journal", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"}
	if sandboxed {
		account = append([]string{"nsenter", "--target", r.main, "--mount", "--"}, account...)
	}
	c := exec.CommandContext(r.Context(), account[0], append(account[1:], args...)...)
	c.Env = append(os.Environ(), knockEnv+"="+helperAt)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// tried holds what the account can do without the helper to: read systemd and the
// journal, and its own files.
func (r rights) tried() {
	before := shown(r.T, bystander, "InvocationID")
	for _, sandboxed := range []bool{true, false} {
		for _, args := range [][]string{
			{"systemctl", "show", bystander}, {"systemctl", "list-units", "--all"}, {"systemctl", "list-unit-files"}, {"journalctl", "-u", helperService, "-n", "5"},
			{"ls", "/var/lib/private/stead-runtime"}, {"cat", "/run/credentials/stead-runtime.service/tool.json"},
		} {
			out, err := r.as(sandboxed, args...)
			if args[0] != "systemctl" && args[0] != "journalctl" && !sandboxed {
				continue // what of it lies where nobody passes is another thing
			}
			require.NoError(r, err, "%v: %s", args, out)
			require.NotEmpty(r, out, args)
		}
		for _, args := range r.forbidden() {
			out, err := r.as(sandboxed, args...)
			require.Error(r, err, "%q, among its own files: %t: %s", args, sandboxed, out)
			require.Regexp(r, `(?i)denied|read-only|authentication|not permitted|no such|not connected|must be superuser`, out, "%q", args)
		}
	}
	require.Equal(r, before, shown(r.T, bystander, "InvocationID"))
	require.Equal(r, "active", shown(r.T, bystander, "ActiveState"))
	r.writes()
	r.secrets()
}

// forbidden are commands that the account must not be able to do.
func (r rights) forbidden() [][]string {
	manager := func(method string, args ...string) []string {
		return append([]string{"busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", method}, args...)
	}
	all := [][]string{
		manager("StartUnit", "ss", bystander, "replace"), manager("StopUnit", "ss", bystander, "replace"), manager("RestartUnit", "ss", bystander, "replace"),
		manager("KillUnit", "ssi", bystander, "all", "9"), manager("Reload"), manager("Reexecute"), manager("ResetFailed"), manager("PowerOff"), manager("Reboot"),
		manager("EnableUnitFiles", "asbb", "1", bystander, "false", "false"), manager("DisableUnitFiles", "asb", "1", bystander, "false"),
		manager("MaskUnitFiles", "asbb", "1", bystander, "true", "false"), manager("LinkUnitFiles", "asbb", "1", "/tmp/x.service", "true", "false"),
		manager("SetUnitProperties", "sba(sv)", bystander, "true", "1", "TasksMax", "t", "1"), manager("SetEnvironment", "as", "1", "A=b"),
		manager("StartTransientUnit", "ssa(sv)a(sa(sv))", "x.scope", "fail", "1", "PIDs", "au", "1", "1", "0"),
		{"systemctl", "--no-ask-password", "isolate", "rescue.target"}, {"systemctl", "--no-ask-password", "set-default", "rescue.target"},
		{"busctl", "--address=unix:path=/run/systemd/private", "list"},
		{"ls", "/etc/stead"}, {"ls", "/etc/stead/credentials"}, {"ls", "/var/lib/stead/host"}, {"ls", "/var/lib/private/stead-controller/"}, {"ls", "/run/stead-escalate"},
		{"cat", "/etc/shadow"}, {"cat", "/etc/stead/credentials/host.json"}, {"cat", "/root/carol.json"}, {"cat", "/var/lib/stead/host/ledger.db"},
		{"cat", "/proc/" + shown(r.T, service, "MainPID") + "/environ"}, {"dd", "if=/dev/kmsg", "count=1"}, {"mount", "-t", "tmpfs", "x", "/tmp"},
		{"sh", "-c", "echo 1 > /sys/fs/cgroup/system.slice/a.service/cgroup.kill"}, {"sh", "-c", "echo $$ > /sys/fs/cgroup/init.scope/cgroup.procs"},
	}
	for _, file := range []string{"/etc/x", etc + "/x.service", "/run/systemd/system/x.service", "/usr/local/bin/stead", shown(r.T, runtimeService, "FragmentPath"),
		"/etc/stead/x", "/run/stead/x", "/root/x", "/var/lib/stead/x", "/etc/cron.d/x", "/etc/ld.so.preload"} {
		all = append(all, []string{"sh", "-c", "echo x >> " + file})
	}
	for _, unit := range []string{bystander, service, helperService, "systemd-journald.service"} {
		all = append(all, []string{"sh", "-c", "kill -9 " + shown(r.T, unit, "MainPID")})
	}
	return all
}

// writes looks for everything that the runtime could write to, in all folders that
// a system has.
func (r rights) writes() {
	out, _ := r.as(true, "sh", "-c", `find / -maxdepth 1 -writable ! -type l
		find /boot /etc /home /lib* /opt /root /run /srv /usr /var -path /var/lib/private/stead-runtime -prune -o -writable ! -type l ! -type s -print`)
	for line := range strings.Lines(out) {
		file := strings.TrimSpace(line)
		ok := strings.HasPrefix(file, "find: ") || slices.Contains([]string{"/tmp", "/var/tmp", "/run/lock"}, file)
		require.True(r, ok, "the runtime may write to %s", file)
	}
	require.Contains(r, out, "/tmp\n")
}

// secrets looks for every key of the mesh that the runtime could read.
func (r rights) secrets() {
	out, _ := r.as(true, "sh", "-c", `find /etc /run /var /root /home /opt /srv /boot -type f -size -64k -readable -print0 2> /dev/null | xargs -0r grep -lE '"S[A-Z][A-Z0-9]{56}"' 2> /dev/null`)
	require.Equal(r, []string{"runtime.json", "tool.json"}, bases(out), out)
	for line := range strings.Lines(out) {
		require.True(r, strings.HasPrefix(line, "/run/credentials/"+runtimeService+"/"), line)
	}
	root, err := exec.Command("sh", "-c", `grep -rlE '"S[A-Z][A-Z0-9]{56}"' /etc/stead /root/.config`).Output()
	require.NoError(r, err)
	require.Subset(r, bases(string(root)), []string{"host.json", "runtime.json", "ws1.json"}, "so they are found where they are readable")
}

func bases(lines string) (all []string) {
	for line := range strings.Lines(lines) {
		all = append(all, filepath.Base(strings.TrimSpace(line)))
	}
	slices.Sort(all)
	return all
}

// knocked has everybody but the runtime ask the helper.
func (r rights) knocked() {
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(r, err)
	require.NoError(r, os.WriteFile(stranger, self, 0o755))
	before := shown(r.T, bystander, "InvocationID")
	_, err = r.carol.ask("ws1", seats.Restart, seats.ActArguments{Unit: bystander})
	require.NoError(r, err, "the runtime is served")
	after := shown(r.T, bystander, "InvocationID")
	require.NotEqual(r, before, after)
	require.Regexp(r, `act done.* act=restart unit=a\.service for="operator carol"`, r.helperLog())

	require.Contains(r, knock(helperAt), notTheMain, "a shell of root's")
	for who, ask := range map[string]func() string{
		"a process of the account":           func() string { return r.knocks(r.as(false, stranger)) },
		"one among the files of the runtime": func() string { return r.knocks(r.as(true, stranger)) },
		"one in the runtime's cgroup": func() string {
			return r.knocks(r.member("setpriv", "--reuid=stead", "--regid=stead", "--groups=systemd-journal", stranger))
		},
		"root in the runtime's cgroup": func() string { return r.knocks(r.member(stranger)) },
		"another account of the group": func() string {
			return r.knocks(r.command("setpriv", "--reuid=nobody", "--regid=nogroup", "--groups=systemd-journal", stranger))
		},
		"a child of the runtime": r.child,
		"another unit of the account": func() string {
			return r.knocks(r.command("systemd-run", "-q", "--pipe", "--wait", "-p", "User=stead", "-p", "SupplementaryGroups=systemd-journal", "-E", knockEnv+"="+helperAt, stranger))
		},
		"a unit whose name only begins as the runtime's": func() string {
			return r.knocks(r.command("systemd-run", "-q", "--pipe", "--wait", "--unit=stead-runtime-x", "-p", "User=stead", "-p", "SupplementaryGroups=systemd-journal", "-E", knockEnv+"="+helperAt, stranger))
		},
	} {
		require.Contains(r, ask(), notTheMain, who)
	}
	require.Contains(r, r.knocks(r.command("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", stranger)), "permission denied", "another account")
	require.Contains(r, r.knocks(r.command("setpriv", "--reuid=stead", "--regid=stead", "--clear-groups", stranger)), "permission denied", "the account without the group")

	require.Equal(r, after, shown(r.T, bystander, "InvocationID"), "each asked for a stop")
	require.Equal(r, "active", shown(r.T, bystander, "ActiveState"))
	log := r.helperLog()
	require.NotContains(r, log, "act=stop")
	for _, n := range []string{"refused=1\n", "refused=2\n", "refused=4\n", "refused=8\n"} { // so that nobody fills the log
		require.Regexp(r, `connection refused.* pid=\d+ uid=\d+ reason="`+notTheMain+`" `+n, log)
	}
	_, err = r.carol.ask("ws1", seats.Restart, seats.ActArguments{Unit: bystander})
	require.NoError(r, err, "the runtime is served as before")
}

func (r rights) helperLog() string {
	r.Helper()
	return r.run("journalctl", "-u", helperService, "-o", "cat", "--no-pager")
}

// knocks is what a stranger printed.
func (r rights) knocks(out string, err error) string {
	r.Helper()
	require.NoError(r, err, out)
	return out
}

func (r rights) command(args ...string) (string, error) {
	c := exec.CommandContext(r.Context(), args[0], args[1:]...)
	c.Env = append(os.Environ(), knockEnv+"="+helperAt)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// member runs a command in the runtime's cgroup.
func (r rights) member(args ...string) (string, error) {
	group := "/sys/fs/cgroup" + shown(r.T, runtimeService, "ControlGroup")
	fd, err := os.Open(group)
	require.NoError(r, err)
	defer fd.Close()
	c := exec.CommandContext(r.Context(), args[0], args[1:]...)
	c.Env = append(os.Environ(), knockEnv+"="+helperAt)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// child has the runtime itself start a stranger, in the place of the program that
// it starts to read the journal.
func (r rights) child() string {
	r.Helper()
	const place, told = "/usr/local/bin/journalctl", "/var/lib/private/stead-runtime/told"
	require.NoError(r, os.WriteFile(place, []byte("#!/bin/sh\n"+knockEnv+"="+helperAt+" "+stranger+" > /var/lib/stead-runtime/told 2>&1\nexec /usr/bin/journalctl \"$@\"\n"), 0o755))
	_, err := r.carol.ask("ws1", seats.Journal, seats.JournalArguments{Unit: bystander})
	require.NoError(r, err)
	require.NoError(r, os.Remove(place))
	text, err := os.ReadFile(told)
	require.NoError(r, err)
	require.NoError(r, os.Remove(told))
	return string(text)
}
