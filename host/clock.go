package host

import (
	"bytes"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

// bootID tells one boot of this machine from another. In a container the
// kernel's boot id is that of the machine around it and outlives the container,
// so the start time of PID 1 goes with it.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.New(fault.Failed, "read the boot id", "", err)
	}
	stat, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return "", fault.New(fault.Failed, "read the start of PID 1", "", err)
	}
	// The command in parentheses may hold anything; starttime is field 22 of
	// proc_pid_stat(5), the twentieth behind it.
	rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(rest) < 20 {
		return "", fault.New(fault.Internal, "read the start of PID 1", "/proc/1/stat", nil)
	}
	return strings.TrimSpace(string(id)) + "." + rest[19], nil
}

// clock reads both clocks of the given boot.
func clock(boot string) func() plan.Clock {
	return func() plan.Clock {
		var ts unix.Timespec
		// CLOCK_MONOTONIC cannot fail on Linux (clock_gettime(2)).
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		return plan.Clock{Wall: time.Now(), Monotonic: time.Duration(ts.Nano()), Boot: boot}
	}
}
