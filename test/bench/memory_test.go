package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"stead/runtime/escalate"
)

// benchMemory measures what the host holds when everything is right.
func benchMemory(b *testing.B, t *table, units int) (float64, string) {
	kib := inside[map[string]int](b, boot(b), "memory", order{Units: units})
	for _, what := range []string{"Rss", "Pss"} {
		t.most(fmt.Sprintf("memory of the host with %d declarations, %s", units, strings.ToUpper(what)), float64(kib[what])/1024, 30, "MiB")
	}
	return float64(kib["Rss"]) / 1024, "MiB"
}

// memory applies declarations and reads how much of it is the host's in KiB, a
// while after all of them have converged.
func memory(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	if err := declare(folder, units); err != nil {
		return nil, err
	}
	pid, stop, err := launchHost(ctx)
	if err != nil {
		return nil, err
	}
	if err := converged(ctx, len(units)); err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	kib, err := heldBy(pid)
	return kib, errors.Join(err, stop())
}

// memoryOfRuntime reads what the runtime of this node holds.
func memoryOfRuntime(ctx context.Context, _ order) (any, error) {
	out, err := command(ctx, "systemctl", "show", "--property=MainPID", "--value", string(escalate.Runtime)).Output()
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid == 0 {
		return nil, fmt.Errorf("the runtime does not run: %q", out)
	}
	return heldBy(pid)
}

// heldBy reads how much memory a process holds in KiB, by the names that the kernel
// has for it.
func heldBy(pid int) (map[string]int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kib := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var n int
		if name, rest, ok := strings.Cut(lines.Text(), ":"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &n); err == nil {
				kib[name] = n
			}
		}
	}
	return kib, lines.Err()
}
