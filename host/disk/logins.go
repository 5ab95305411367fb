package disk

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostLogins is how much of passwd and group is read, in bytes.
const mostLogins = 16 << 20

// login finds a login in passwd(5): its numbers, and whether there is one. What only
// a name service knows is not found.
func (t tree) login(name string) (uid, gid int, known bool, err error) {
	f, err := t.line("/etc/passwd", name)
	if err != nil || len(f) < 4 {
		return 0, 0, false, err
	}
	uid, err1 := strconv.Atoi(f[2])
	gid, err2 := strconv.Atoi(f[3])
	return uid, gid, err1 == nil && err2 == nil && uid >= 0 && gid >= 0, nil
}

// group finds a group in group(5).
func (t tree) group(name string) (gid int, known bool, err error) {
	f, err := t.line("/etc/group", name)
	if err != nil || len(f) < 3 {
		return 0, false, err
	}
	gid, bad := strconv.Atoi(f[2])
	return gid, bad == nil && gid >= 0, nil
}

// line returns the fields of the line of a file that begins with the name; nil when
// there is none.
func (t tree) line(p, name string) ([]string, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	s := bufio.NewScanner(io.LimitReader(f, mostLogins))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		fields := bytes.Split(s.Bytes(), []byte(":"))
		if string(fields[0]) != name {
			continue
		}
		all := make([]string, len(fields))
		for i, b := range fields {
			all[i] = string(b)
		}
		return all, nil
	}
	return nil, s.Err()
}
