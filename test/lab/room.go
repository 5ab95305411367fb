package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// spare is how many inotify instances must be free before a node is booted for a test: it takes eight, and others may boot at the same moment.
	spare = 24
	// roomTimeout bounds what Start waits until other nodes have gone.
	roomTimeout = 5 * time.Minute
)

// room waits until a node of a test can boot: the kernel lets all of root's processes together have 128 inotify instances, unless it is told
// otherwise (fs.inotify.max_user_instances), and a systemd that gets none does not come up.
func room(ctx context.Context, look func() (used, limit int, err error)) error {
	for {
		used, limit, err := look()
		if err != nil || limit-used >= spare {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for room for a node: %d of %d inotify instances are in use (sysctl fs.inotify.max_user_instances): %w", used, limit, err)
		}
	}
}

// instances are the inotify instances of the processes that are seen here, and how many there may be.
func instances() (used, limit int, err error) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0, 0, err
	}
	if limit, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return 0, 0, err
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			used++
		}
	}
	return used, limit, err
}
