package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"stead/host/plan"
	"stead/host/shape"
)

// maxEntries is how many entries a folder has at most whose files' bytes count.
const maxEntries = 4096

// triggers is what stands at the triggers of q's declaration; each path is read once
// in a look.
func (l *look) triggers(q plan.Query) map[string]plan.Cited {
	if len(q.Service.Triggers) == 0 {
		return nil
	}
	all := make(map[string]plan.Cited, len(q.Service.Triggers))
	for _, t := range q.Service.Triggers {
		if _, is := shape.Cited(t); is {
			all[t] = l.citeFile(q.Files[t])
			continue
		}
		all[t] = l.citeOnce(t)
	}
	return all
}

// citeFile reads what stands where a declared file is cited; declared is its path.
func (l *look) citeFile(declared string) plan.Cited {
	p, err := l.where(declared)
	if declared == "" || err != nil {
		return plan.Cited{Trouble: "no file of that name is declared on this node"}
	}
	c := l.citeOnce(p)
	c.Path = p
	return c
}

func (l *look) citeOnce(p string) plan.Cited {
	c, known := l.cited[p]
	if !known {
		if l.cited == nil {
			l.cited = make(map[string]plan.Cited)
		}
		c = l.cite(p)
		l.cited[p] = c
	}
	return c
}

// cite reads what stands at p. Only files and folders are opened; on others a
// reader may wait for ever.
func (l *look) cite(p string) plan.Cited {
	in, name := split(p)
	if t := l.now.drawn[in][name]; t != nil && t.entry.Kind != plan.Link && t.entry.Kind != plan.Dir {
		return plan.Cited{Digest: digestOf(t.entry)}
	}
	fd, err := l.tree.open(p, unix.O_PATH)
	if err != nil {
		return lost(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return lost(err)
	}
	var c plan.Cited
	switch kind := modeOf(st.Mode); {
	case kind.IsDir():
		c = l.folder(p, fd)
	case kind.IsRegular():
		c = l.file(fd, &st)
	default:
		c = plan.Cited{Digest: "other", Trouble: "it is a device, FIFO or socket, which is never opened"}
	}
	if real, err := l.tree.real(fd); err == nil && real != p {
		c.Real = real
	}
	return c
}

// digestOf is what a file that is taken to stand somewhere counts as.
func digestOf(e plan.Entry) string {
	if e.Kind == plan.File {
		return e.Digest
	}
	return plan.Missing
}

// lost is a trigger that could not be read.
func lost(err error) plan.Cited {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return plan.Cited{Digest: plan.Missing}
	}
	return plan.Cited{Trouble: "it cannot be read: " + err.Error()}
}

// file reads the file that path stands for.
func (l *look) file(path int, st *unix.Stat_t) plan.Cited {
	if st.Size > MaxFile {
		return plan.Cited{Digest: fmt.Sprintf("of %d bytes", st.Size),
			Trouble: fmt.Sprintf("it has %d bytes; of a file of more than %d the size alone counts", st.Size, MaxFile)}
	}
	fd, err := again(func() (int, error) {
		return unix.Open(procPath(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return lost(err)
	}
	defer unix.Close(fd)
	data, _, err := l.reader.bytes(fd)
	if err != nil {
		return lost(err)
	}
	sum := sha256.Sum256(data)
	return plan.Cited{Digest: hex.EncodeToString(sum[:])}
}

// folder reads a folder: the names and bytes of the files in it, and of those that
// links in it lead to.
func (l *look) folder(p string, fd int) plan.Cited {
	c := plan.Cited{Folder: true}
	dir, err := again(func() (int, error) { return unix.Open(procPath(fd), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return plan.Cited{Folder: true, Trouble: lost(err).Trouble}
	}
	defer unix.Close(dir)
	all, err := kinds(dir, make([]byte, 32<<10))
	if err != nil {
		return plan.Cited{Folder: true, Trouble: lost(err).Trouble}
	}
	h := sha256.New()
	var read int64
	for i, name := range slices.Sorted(maps.Keys(all)) {
		kind := all[name]
		if temporary(name) || !kind.IsRegular() && kind&fs.ModeSymlink == 0 {
			continue
		}
		fmt.Fprintf(h, "%s\x00", name)
		if i >= maxEntries || read > MaxFile {
			c.Trouble = fmt.Sprintf("it holds more than %d files, or %d bytes; of the others the names alone count", maxEntries, MaxFile)
			continue
		}
		entry, size, trouble := l.entry(p + "/" + name)
		if read += size; trouble != "" {
			c.Trouble = name + ": " + trouble
		}
		fmt.Fprintf(h, "%s\x00", entry)
	}
	c.Digest = hex.EncodeToString(h.Sum(nil))
	return c
}

// entry is what a file in a folder, or what a link in it leads to, counts as.
func (l *look) entry(p string) (digest string, size int64, trouble string) {
	fd, err := l.tree.open(p, unix.O_PATH)
	if err != nil {
		c := lost(err)
		return c.Digest, 0, c.Trouble
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", 0, "" // a link to something that is no file
	}
	c := l.file(fd, &st)
	return c.Digest, min(st.Size, MaxFile), c.Trouble
}
