package account

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"syscall"

	"stead/host/unit"
)

// home is what there is of a home folder.
type home struct {
	missing bool
	folder  bool // it is one
	owner   int
	silent  bool // its file system does not answer
	err     error
}

// prober looks at home folders. A file system that is away, or of the account's
// own making, may never answer: then the look is given up, and not tried again
// before it has returned.
type prober struct {
	stat func(string) (fs.FileInfo, error)
	busy atomic.Bool
}

func (p *prober) look(ctx context.Context, dir string) home {
	if !p.busy.CompareAndSwap(false, true) {
		return home{silent: true}
	}
	done := make(chan home, 1)
	go func() {
		h := homeOf(p.stat(dir))
		p.busy.Store(false)
		done <- h
	}()
	select {
	case h := <-done:
		return h
	case <-ctx.Done():
		return home{silent: true}
	}
}

func homeOf(info fs.FileInfo, err error) home {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return home{missing: true}
	case err != nil:
		return home{err: err}
	}
	h := home{folder: info.IsDir(), owner: -1}
	if st, is := info.Sys().(*syscall.Stat_t); is {
		h.owner = int(st.Uid)
	}
	return h
}

// mountsOf are the mount units that would bring dir, the folders above it first,
// and the automount units beside them.
func mountsOf(dir string) (mounts, automounts []unit.Name) {
	dir = path.Clean(dir)
	for i := 1; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if stem := escapePath(dir[:i]); stem != "-" {
			mounts = append(mounts, unit.Name(stem+".mount"))
			automounts = append(automounts, unit.Name(stem+".automount"))
		}
	}
	return mounts, automounts
}

// escapePath makes the part of a unit's name that stands for a path
// (systemd-escape(1), --path).
func escapePath(dir string) string {
	dir = strings.Trim(path.Clean(dir), "/")
	if dir == "" {
		return "-"
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(dir) {
		c := dir[i]
		switch {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			b.WriteString(`\x` + string([]byte{hex[c>>4], hex[c&15]}))
		}
	}
	return b.String()
}

// unmounted returns the mount unit that is to bring the home and has not, "" when
// there is none. One that an automount unit mounts when somebody comes is as good
// as there.
func unmounted(seen map[unit.Name]unit.Status, mounts, automounts []unit.Name) unit.Name {
	for i, m := range mounts {
		s := seen[m]
		if s.Load == unit.Loaded && s.Active != unit.Active && seen[automounts[i]].Active != unit.Active {
			return m
		}
	}
	return ""
}
