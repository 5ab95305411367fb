package lab

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// process names one process for good: ids are used again, an id with its start time is not.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since the machine started, /proc/PID/stat field 22
}

// running is the process that has the id now; the zero process when there is none or only its zombie.
func running(pid int) process {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}
	}
	// PID (COMM) STATE …, and COMM may hold anything.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return process{}
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return process{}
	}
	return process{PID: pid, Start: start}
}

// alive is whether the very same process still runs.
func (p process) alive() bool { return p.PID > 0 && running(p.PID) == p }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
