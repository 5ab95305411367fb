package account

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stead/host/fault"
)

// Identity is a login as passwd(5) and group(5) have it.
type Identity struct {
	Name   string
	UID    int
	GID    int
	Groups []int // further ones
	Home   string
	Shell  string
}

// mostLogins is how much of passwd or group is read, in bytes.
const mostLogins = 16 << 20

// Logins are the logins of a machine: those in its files. Others, that only a name
// service knows, are not found.
type Logins struct {
	Folder string // of passwd and group; "" is /etc
}

func (l Logins) folder() string {
	if l.Folder == "" {
		return "/etc"
	}
	return l.Folder
}

// Lookup finds a login by its name; NotFound when there is none.
func (l Logins) Lookup(name string) (Identity, error) {
	found, err := l.login(name)
	if err != nil {
		return Identity{}, err
	}
	err = l.each("group", 4, func(f []string) bool {
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err == nil && int(gid) != found.GID && slices.Contains(strings.Split(f[3], ","), name) {
			found.Groups = append(found.Groups, int(gid))
		}
		return false
	})
	if err != nil {
		return Identity{}, fault.New(fault.Failed, lookUp, name, err)
	}
	return found, nil
}

const lookUp = "look up account"

// login finds a login without the further groups.
func (l Logins) login(name string) (Identity, error) {
	var found *Identity
	err := l.each("passwd", 7, func(f []string) bool {
		if f[0] == name {
			found = identityOf(f)
		}
		return found != nil
	})
	switch {
	case err != nil:
		return Identity{}, fault.New(fault.Failed, lookUp, name, err)
	case found == nil:
		return Identity{}, fault.New(fault.NotFound, lookUp, name, errors.New("there is no such login"))
	}
	return *found, nil
}

// Owner is the uid of a login, and the gid of its first group; NotFound when there is
// no such login.
func (l Logins) Owner(name string) (uid, gid int, err error) {
	id, err := l.login(name)
	return id.UID, id.GID, err
}

// Group is the gid of a group; NotFound when there is none.
func (l Logins) Group(name string) (gid int, err error) {
	gid = -1
	err = l.each("group", 4, func(f []string) bool {
		if n, bad := strconv.ParseUint(f[2], 10, 32); f[0] == name && bad == nil {
			gid = int(n)
		}
		return gid >= 0
	})
	switch {
	case err != nil:
		return 0, fault.New(fault.Failed, "look up group", name, err)
	case gid < 0:
		return 0, fault.New(fault.NotFound, "look up group", name, errors.New("there is no such group"))
	}
	return gid, nil
}

// Of returns the name of the login with that uid, "" when there is none.
func (l Logins) Of(uid uint32) (name string, err error) {
	text := strconv.FormatUint(uint64(uid), 10)
	err = l.each("passwd", 7, func(f []string) bool {
		if f[2] == text {
			name = f[0]
		}
		return name != ""
	})
	if err != nil {
		return "", fault.New(fault.Failed, "look up uid", text, err)
	}
	return name, nil
}

// identityOf reads the fields of a line, nil when they are none.
func identityOf(f []string) *Identity {
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	if errors.Join(err1, err2) != nil {
		return nil
	}
	return &Identity{Name: f[0], UID: int(uid), GID: int(gid), Home: f[5], Shell: f[6]}
}

// each hands the fields of every line to take, until that returns true.
func (l Logins) each(file string, fields int, take func([]string) bool) error {
	f, err := os.Open(filepath.Join(l.folder(), file))
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostLogins))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, mostLogins)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) == fields && take(f) {
			return nil
		}
	}
	return lines.Err()
}
