package disk

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

// Kept is a line of Kept/index.jsonl: something that was overwritten or removed
// and that nobody else has a copy of.
type Kept struct {
	Time   time.Time  `json:"time"`
	Path   string     `json:"path"`
	Entry  plan.Entry `json:"entry"`            // mode, owner, digest; of a link, its target
	As     string     `json:"as,omitempty"`     // the copy's name in the folder; none of a link
	Change plan.Kind  `json:"change,omitempty"` // what came in its place
}

const keptIndex = "index.jsonl"

// preserve sees to it that what the change takes away is not lost.
func (b *batch) preserve(a *act) error {
	name := path.Base(a.Path)
	var st unix.Stat_t
	err := unix.Fstatat(a.dir.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	kind := modeOf(st.Mode)
	if err := obstacle(a.Path, kind.IsDir(), !kind.IsDir() && !kind.IsRegular() && kind&fs.ModeSymlink == 0); err != nil {
		return err
	}
	if !a.Keep && a.seen.entry.Kind == plan.File && a.seen.stamp == stampOf(&st) {
		return nil
	}
	t, data := b.snapshot(a.dir.fd, name)
	if t.err != nil {
		return t.err
	}
	if t.entry.Kind == plan.Absent || !a.Keep && t.entry == a.seen.entry {
		return nil
	}
	key := copied{a.Path, t.entry}
	if as, ok := b.copies.known(key); ok {
		b.res.Kept[a.Path] = as // somebody does the same again and again
		return nil
	}
	if b.keep == nil {
		if b.keep, err = b.openKeeper(); err != nil {
			return fault.New(fault.Failed, "keep a copy", a.Path, err)
		}
	}
	as, err := b.keep.add(Kept{Time: time.Now().UTC(), Path: a.Path, Entry: t.entry, Change: a.Entry.Kind}, data)
	if err != nil {
		return fault.New(fault.Failed, "keep a copy", a.Path, err)
	}
	b.res.Kept[a.Path] = b.o.Kept + "/" + as
	b.keep.fresh = append(b.keep.fresh, key)
	return nil
}

// copied is a version of a path that a copy was made of.
type copied struct {
	path  string
	entry plan.Entry
}

// keeper writes into the folder of copies.
type keeper struct {
	dir   *place
	index int
	dirty bool
	fresh []copied // kept by this batch
	uid   int      // whose the copies are
	gid   int
}

func (b *batch) openKeeper() (*keeper, error) {
	made := b.res.Made
	dir, err := b.place(b.o.Kept, true, true)
	b.res.Made = made // it is ours, and stays
	if err != nil {
		return nil, err
	}
	if err := unix.Fchmod(dir.fd, 0o700); err != nil {
		return nil, err
	}
	// Not to wait: where a FIFO stands there, nobody may read of it.
	index, err := unix.Openat(dir.fd, keptIndex, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ENXIO) {
		return nil, obstacle(b.o.Kept+"/"+keptIndex, false, true)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(index, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(index)
		return nil, cmp.Or(err, obstacle(b.o.Kept+"/"+keptIndex, false, true))
	}
	return &keeper{dir: dir, index: index, uid: b.o.UID, gid: b.o.GID}, nil
}

// add writes the copy and its line, and returns what of the folder tells of it.
func (k *keeper) add(line Kept, data []byte) (string, error) {
	k.dirty = true
	if line.Entry.Kind == plan.File {
		line.As = keptAs(line.Path, line.Entry)
		if err := k.copy(line.As, data); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(line)
	if err != nil {
		return "", err
	}
	if err := writeAll(k.index, append(text, '\n')); err != nil {
		return "", err
	}
	if line.As == "" {
		return keptIndex, nil
	}
	return line.As, nil
}

// keptAs is the name of the copy of a file.
func keptAs(p string, e plan.Entry) string {
	as := e.Digest[:16] + "-" + path.Base(p)
	return as[:min(len(as), 255)]
}

// KeptAs is where Apply tells that it kept what stood at p, a file or a link.
func (d *Disk) KeptAs(p string, e plan.Entry) string { return KeptIn(d.o.Kept, p, e) }

// KeptIn is KeptAs of a Disk whose copies lie in the folder kept.
func KeptIn(kept, p string, e plan.Entry) string {
	if e.Kind != plan.File {
		return kept + "/" + keptIndex
	}
	return kept + "/" + keptAs(p, e)
}

// copy writes one copy. One of the same name holds the same bytes, but for what
// a crash may have left of it, so it is written anew.
func (k *keeper) copy(name string, data []byte) error {
	c := plan.Change{Content: data, Entry: plan.Entry{Mode: 0o600, UID: k.uid, GID: k.gid}}
	tmp := tmpPrefix + name[:16] + tmpSuffix
	if err := unix.Unlinkat(k.dir.fd, tmp, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	fd, err := write(k.dir.fd, tmp, c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil {
		return err
	}
	return unix.Renameat(k.dir.fd, tmp, k.dir.fd, name)
}

// sync makes the copies durable. There is nothing to do for a nil keeper.
func (k *keeper) sync() error {
	if k == nil || !k.dirty {
		return nil
	}
	for _, fd := range []int{k.index, k.dir.fd} {
		if err := unix.Fsync(fd); err != nil {
			return fault.New(fault.Failed, "keep copies", k.dir.path, fmt.Errorf("sync: %w", err))
		}
	}
	return nil
}

func (k *keeper) close() {
	if k != nil {
		unix.Close(k.index)
	}
}
