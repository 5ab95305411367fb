package disk

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// burst is changes that come close together.
type burst struct {
	paths map[string]bool
	all   bool
	from  time.Time // of the first
}

// maxPaths is how many paths are told one by one.
const maxPaths = 4096

func (b *burst) add(p string) {
	if len(b.paths) >= maxPaths {
		b.all = true
		return
	}
	if b.paths == nil {
		b.paths = make(map[string]bool)
	}
	b.paths[p] = true
}

func (b *burst) empty() bool { return len(b.paths) == 0 && !b.all }

// coalescer tells of changes when it has been quiet for a while, or when the
// first of them has waited long enough.
type coalescer struct {
	quiet, most time.Duration
	tell        func(burst)
	concerns    func(path string) bool
	// arm makes the watches anew, when the set has changed and before each burst
	// is told, so that a folder that has come is watched before somebody is sent
	// to look into it.
	arm func(*burst)
}

// run ends with ctx, or when a channel is closed.
func (c *coalescer) run(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, changed <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var b burst
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			if !c.concerns(e.Name) {
				continue
			}
			b.add(e.Name)
		case _, ok := <-errs: // an overflow, or trouble with the kernel
			if !ok {
				return
			}
			b.all = true
		case <-changed:
			c.arm(&b)
			if b.empty() {
				continue
			}
		case <-timer.C:
			c.arm(&b)
			c.tell(b)
			b = burst{}
			continue
		}
		if b.from.IsZero() {
			b.from = time.Now()
		}
		timer.Reset(max(0, min(c.quiet, c.most-time.Since(b.from))))
	}
}
