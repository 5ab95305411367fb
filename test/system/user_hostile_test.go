package system

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// attack is something that a hostile owner of the account does, in shell of its own.
// Where it is on a unit, $u is the name of that, $file its unit file, $drop its
// drop-in folder, $wants the folder of its link, $trigger its trigger. $home, $dir
// (of units) and $private (the manager's socket) are the account's, and the secrets
// in $vault are not.
type attack struct {
	name        string
	root        bool   // by root, for what this machine does not let the account do
	comes, goes string // goes is "" where the host puts everything right
	outcome     report.Outcome
	reason      report.Reason
	words       string // of the report, or of one of its warnings
}

const (
	denied  = "permission denied"
	special = "a device, FIFO or socket stands there"
)

// onUnits are attacks on what belongs to one unit; all come at a time.
var onUnits = []attack{
	{"the unit file is a link to a secret", false, `ln -sf $vault/secret $file`, `rm -f $file`, report.Failed, report.DiskError, denied},
	{"the unit file is a link to what can be read without end", false, `ln -sf /dev/zero $file`, `rm $file`, report.Refused, report.IsMasked, ""},
	{"the unit file is another name of a file of root's", true, `ln -f $vault/readable $file`, ``, report.Converged, "", ""},
	{"the unit file is another name of a secret", true, `ln -f $vault/secret $file`, `rm $file`, report.Failed, report.DiskError, denied},
	{"the unit file is a FIFO", false, `rm $file; mkfifo $file`, `rm $file`, report.Failed, report.DiskError, special},
	{"the unit file is a folder", false, `rm $file; mkdir $file`, `rmdir $file`, report.Failed, report.DiskError, "a folder stands there"},
	{"the unit file is not to be read", false, `chmod 0 $file`, `chmod 644 $file`, report.Failed, report.DiskError, denied},
	{"the drop-in folder is a link to secrets", false, `mv $drop $drop.away; ln -s $vault/wants $drop`, `rm $drop; mv $drop.away $drop`, report.Failed, report.DiskError, denied},
	{"the drop-in folder is a link to a folder of root's", false, `mv $drop $drop.away; ln -s /etc $drop`, `rm $drop; mv $drop.away $drop`, report.Failed, report.DiskError, denied},
	{"the drop-in folder is a FIFO", false, `mv $drop $drop.away; mkfifo $drop`, `rm $drop; mv $drop.away $drop`, report.Failed, report.DiskError, "not a directory"},
	{"the drop-in folder may not be written", false, `rm $drop/10-a.conf; chmod 555 $drop`, `chmod 755 $drop`, report.Failed, report.DiskError, denied},
	{"a drop-in is a link to a secret", false, `ln -sf $vault/secret $drop/10-a.conf`, `rm $drop/10-a.conf`, report.Failed, report.DiskError, denied},
	{"the folder of links is a link to secrets", false, `mv $wants $wants.away; ln -s $vault/wants $wants`, `rm $wants; mv $wants.away $wants`, report.Failed, report.DiskError, denied},
	{"the folder of links is that of the system", false, `mv $wants $wants.away; ln -s /etc/systemd/system/multi-user.target.wants $wants`, `rm $wants; mv $wants.away $wants`, report.Failed, report.DiskError, denied},
	{"the link of the unit is a FIFO", false, `rm $wants/$u.service; mkfifo $wants/$u.service`, `rm $wants/$u.service`, report.Failed, report.DiskError, special},
	{"a trigger is a FIFO", false, `rm $trigger; mkfifo $trigger`, `rm $trigger`, report.Converged, "", "FIFO"},
	{"a trigger is a link to a secret", false, `ln -sf $vault/secret $trigger`, `rm $trigger`, report.Converged, "", denied},
	{"a trigger can be read without end", false, `ln -sf /dev/zero $trigger`, `rm $trigger`, report.Converged, "", "device"},
	{"a trigger has a terabyte", false, `truncate -s 1T $trigger`, `rm $trigger`, report.Converged, "", "1099511627776 bytes"},
}

// onFolders are attacks on what all units lie in; they come one after another.
var onFolders = []attack{
	{"a folder above is a link to /etc", false, `mv $home/.config $home/away; ln -s /etc $home/.config`, `rm $home/.config; mv $home/away $home/.config`, report.Failed, report.DiskError, denied},
	{"the folder of units is a link to /root", false, `mv $dir $dir.away; ln -s /root $dir`, `rm $dir; mv $dir.away $dir`, report.Failed, report.DiskError, denied},
	{"the folder of units is a FIFO", false, `mv $dir $dir.away; mkfifo $dir`, `rm $dir; mv $dir.away $dir`, report.Failed, report.DiskError, ""},
	{"the folder of copies is a link to secrets", false, `mv $kept $kept.away; ln -s $vault/wants $kept; echo x > $file`, `rm $kept; mv $kept.away $kept`, report.Failed, report.DiskError, "keep a copy"},
}

// onProcesses are attacks on the process that writes as the account.
var onProcesses = []attack{
	{"the writing process is killed again and again", false, `timeout 1 sh -c 'while :; do pkill -KILL -u $(id -u) -f "[h]ost delegate"; sleep 0.05; done' || true`, ``, report.Converged, "", ""},
	{"the writing process is robbed of its limits", false, `prlimit --nofile=0:0 --pid $(pgrep -u $(id -u) -f "[h]ost delegate"); echo z > $file`, ``, report.Converged, "", ""},
}

// onSocket are attacks on the way to the manager. Each takes the place of the one
// before, and the host is started anew at the first.
var onSocket = []attack{
	{"the socket is a link to that of the system", false, `mv $private $private.real; ln -s /run/systemd/private $private`, ``, report.Failed, report.Impostor, "a link stands on the way"},
	{"the socket is a FIFO", false, `rm $private; mkfifo $private`, ``, report.Failed, report.Impostor, "it is no socket"},
	{"a process below the manager listens", false, `rm $private; mv $at/usurper $private`, ``, report.Failed, report.Impostor, "listens, and the manager is process"},
	{"the manager listens for a program that gives a huge answer", false, `mv $at/huge $private`, ``, report.Failed, report.ManagerRefused, "more than is taken in"},
	{"the manager listens for a program that tells without end", false, `mv $at/flood $private`, ``, report.Failed, report.ManagerHung, ""},
}

func name(i int) string { return fmt.Sprintf("a%02d", i) }

// script has all that shell needs to know about the attack of that number.
func (f *fort) script(i int, text string) string {
	return fmt.Sprintf("(\nu=%s; home=%s; dir=%s; vault=%s; file=$dir/$u.service; drop=$dir/$u.service.d; wants=$dir/$u.target.wants; trigger=$home/triggers/$u\n"+
		"kept=$home/.local/state/stead/kept; at=/run/user/%d/systemd; private=$at/private; rogue=%s\n%s\n)\n", name(i), f.home(), f.unit(), vault, f.uid, rogue, text)
}

// act runs shell of many attacks, each as who it is for.
func (f *fort) act(attacks []attack, text func(attack) string) {
	f.t.Helper()
	shell := map[bool]string{}
	for i, a := range attacks {
		shell[a.root] += f.script(i, text(a))
	}
	f.as("sh", "-ec", shell[false])
	f.Run(f.t, "sh", "-ec", shell[true])
}

// said waits until the host says what it saw.
func (f *fort) said(i int, a attack, came time.Time) {
	whole := f.t
	defer func() { f.t = whole }()
	whole.Run(a.name, func(t *testing.T) {
		f.t = t
		var r *report.Report
		last := ""
		f.until("it is said", func() bool {
			if r = f.report(name(i)); r == nil {
				return false
			}
			said := append(slices.Clone(r.Warnings), r.Text)
			last = fmt.Sprintf("it is %s (%s): %q", r.Outcome, r.Reason, said)
			return r.Outcome == a.outcome && r.Reason == a.reason && strings.Contains(strings.Join(said, "\n"), a.words)
		}, &last)
		t.Logf("after %s: %s", time.Since(came).Round(time.Millisecond), last)
	})
}

// wave has attacks come together, each on a unit of its own, and go.
func (f *fort) wave(attacks ...attack) {
	f.t.Helper()
	f.calm = append(f.calm, f.guard())
	before, came := f.outside(), time.Now()
	f.act(attacks, func(a attack) string { return a.comes })
	f.under = append(f.under, f.guard())
	for i, a := range attacks {
		f.said(i, a, came)
	}
	f.under = append(f.under, f.guard())
	f.measure()
	f.heals(before, func() { f.act(attacks, func(a attack) string { return a.goes }) })
}

// heals takes attacks away, and waits until all is right again. Nothing outside of
// the home changed since before.
func (f *fort) heals(before map[string]string, goes func()) {
	f.t.Helper()
	require.Empty(f.t, differences(before, f.outside()), "outside of the home")
	gone := time.Now()
	goes()
	f.converged(gone)
	f.until("files are as declared", func() bool {
		for i := range onUnits {
			if f.content(i) != f.read(f.unit(name(i)+".service")) {
				return false
			}
		}
		return true
	})
	f.converged(gone)
	f.t.Logf("healed after %s", time.Since(gone).Round(time.Millisecond))
	require.Empty(f.t, differences(before, f.outside()), "outside of the home")
}

// sockets has a new host find each attack on the way to the manager.
func (f *fort) sockets() {
	f.t.Helper()
	f.as("sh", "-ec", f.script(0, `systemd-run --user --quiet --unit=usurper systemd-socket-activate --listen=$at/usurper sleep infinity
		for how in huge flood; do systemd-run --user --quiet --unit=$how --socket-property=ListenStream=$at/$how $rogue speak $how; done
		until test -S $at/usurper; do sleep 0.02; done`))
	before := f.outside()
	f.again(func() { f.as("sh", "-ec", f.script(0, onSocket[0].comes)) })
	for i, a := range onSocket {
		came := time.Now()
		if i > 0 {
			f.as("sh", "-ec", f.script(0, a.comes))
		}
		f.said(0, a, came)
		f.under = append(f.under, f.guard())
		f.measure()
	}
	f.heals(before, func() {
		f.as("sh", "-ec", f.script(0, `mv $private.real $private; systemctl --user stop usurper.service huge.socket flood.socket huge.service flood.service`))
	})
}

// silence has a new host find a manager that never answers.
func (f *fort) silence() {
	f.t.Helper()
	before, pid := f.outside(), f.pidOf(f.manager())
	f.again(func() { require.NoError(f.t, stop(pid)) })
	f.said(0, attack{name: "the manager never answers", outcome: report.Failed, reason: report.ManagerHung, words: "does not answer"}, time.Now())
	f.under = append(f.under, f.guard())
	f.heals(before, func() { require.NoError(f.t, wake(pid)) })
}

// swaps has links put in the place of the folder and of a file all the time, while a
// new version of everything is being written.
func (f *fort) swaps() {
	f.t.Helper()
	f.again(func() {})
	f.version++
	f.declareOwn()
	before := f.outside()
	f.as("sh", "-ec", f.script(0, `timeout 4 sh -c 'while :; do mv $0 $0.away; ln -s /etc/systemd/system $0; rm $0; mv $0.away $0; ln -s $1/secret $2.x; mv $2.x $2; done' \
		$dir $vault $file 2> /dev/null || true`))
	f.under = append(f.under, f.guard())
	f.heals(before, func() {
		f.again(func() {
			f.as("sh", "-ec", f.script(0, `if [ -h $dir ]; then rm $dir; fi; mkdir -p $dir; if [ -d $dir.away ]; then cp -a $dir.away/. $dir; rm -rf $dir.away; fi
				rm -rf $dir/user.away $file $file.x`))
		})
	})
}

// TestAHostileAccountLeadsRootNowhere goes through all attacks on one node.
func TestAHostileAccountLeadsRootNowhere(t *testing.T) {
	f := newFort(t)
	f.wave(onUnits...)
	// A fight is one host's: a new one takes each change of all units for the first.
	for _, a := range slices.Concat(onFolders, onProcesses) {
		f.again(func() {})
		f.wave(a)
	}
	f.swaps()
	f.sockets()
	f.silence()
	f.ends()
	f.compared()
}

// compared holds how long the system scope took under attack against how long it
// takes in peace.
func (f *fort) compared() {
	f.t.Helper()
	f.t.Logf("undone after %s, under attack after %s; the host had %d KiB at most", f.calm, f.under, f.peak)
	require.Less(f.t, slices.Max(f.under), 5*slices.Max(f.calm)+2*time.Second)
}
