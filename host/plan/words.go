package plan

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stead/host/unit"
)

// exitNames are systemd's own exit statuses (systemd.exec(5), "Process Exit
// Codes") that a person meets when a unit is written wrong.
var exitNames = map[int32]string{
	200: "CHDIR: its working directory cannot be entered",
	203: "EXEC: its program cannot be run",
	208: "STDIN", 209: "STDOUT",
	214: "SETSCHEDULER",
	216: "GROUP: its group does not exist",
	217: "USER: its user does not exist",
	218: "CAPABILITIES",
	219: "CGROUP",
	226: "NAMESPACE: its sandbox cannot be set up",
	228: "SECCOMP",
	238: "STATE_DIRECTORY",
}

// results are those of systemd that say more than how the process ended.
var results = map[string]string{
	"timeout":         "it took longer than systemd gives it (TimeoutStartSec=, TimeoutStopSec=, RuntimeMaxSec=)",
	"watchdog":        "its watchdog was not served in time (WatchdogSec=)",
	"oom-kill":        "it was killed for want of memory",
	"protocol":        "it does not keep to the protocol of its Type=",
	"resources":       "systemd could not set it up (resources)",
	"start-limit-hit": "systemd refuses to start it: start limit hit (StartLimitBurst=)",
}

// ending says in one clause how a unit's last run ended.
func ending(st unit.Status) string {
	t := st.Trouble
	switch {
	case results[t.Result] != "":
		return results[t.Result]
	case t.ExitCode == 1 && t.ExitStatus != 0:
		if name, ok := exitNames[t.ExitStatus]; ok {
			return fmt.Sprintf("its process exited with status %d (%s)", t.ExitStatus, name)
		}
		return fmt.Sprintf("its process exited with status %d", t.ExitStatus)
	case t.ExitCode == 2 || t.ExitCode == 3:
		return fmt.Sprintf("its process was killed by %s", unix.SignalName(unix.Signal(t.ExitStatus)))
	case t.Result != "" && t.Result != "success":
		return "result " + t.Result
	case t.ExitCode == 1:
		return "its process ended with status 0 and is not running"
	}
	return fmt.Sprintf("it is %s (%s)", st.Active, st.Sub)
}

// jobWords says what a job result means.
func jobWords(r unit.JobResult) string {
	switch r {
	case unit.JobDependency:
		return "dependency: a unit that it requires did not start"
	case unit.JobCanceled:
		return "canceled: another job took its place"
	case unit.JobTimeout:
		return "timeout"
	case unit.JobAssert:
		return "assert: an Assert…= of the unit is not met"
	case unit.JobUnsupported:
		return "unsupported: this machine cannot run units of its type"
	case "":
		return "its result was lost"
	}
	return string(r)
}

// escapedHint names the unit that was meant, maybe, by a name of a path in which
// dashes stand for slashes (systemd.unit(5)); "" for others.
func escapedHint(n unit.Name) string {
	switch n.Type() {
	case "mount", "automount", "swap":
	default:
		return ""
	}
	stem := strings.TrimSuffix(string(n), "."+n.Type())
	i := strings.LastIndexByte(stem, '-')
	if i <= 0 {
		return ""
	}
	return fmt.Sprintf(`; a dash in a path is \x2d in the name, so /%s is %s\x2d%s.%s`,
		strings.ReplaceAll(stem[:i], "-", "/")+stem[i:], stem[:i], stem[i+1:], n.Type())
}
