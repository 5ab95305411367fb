package escalate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// AccountPath is the file in which the host notes whose user scope this node has. It
// is there while the host is down.
const AccountPath = "/var/lib/stead/host/account.json"

// mostAccount bounds what is read of it.
const mostAccount = 4 << 10

// setAccount is what gives a node an account.
const setAccount = "stead node account NODE LOGIN"

// Account is the operator account of this node.
type Account struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	// Trouble says why its units can be neither read nor acted on at this moment; ""
	// when nothing is known of.
	Trouble string `json:"trouble,omitempty"`
}

// accounts knows the operator account. It is asked anew each time, and nobody but
// the host and passwd(5) has a say in it.
type accounts struct {
	path  string
	login func(name string) (uid uint32, err error)
}

// now is the account of this moment. The error, of class refused, says why there is
// none; it has neither operation nor object.
func (a accounts) now() (Account, error) {
	refused := func(hint, format string, args ...any) (Account, error) {
		return Account{}, fault.New(fault.Refused, "", "", fmt.Errorf(format, args...)).WithHint(hint)
	}
	noted, err := a.noted()
	switch {
	case errors.Is(err, fs.ErrNotExist): // no host has ever had one to note
		return refused(setAccount, "this node has no operator account")
	case err != nil:
		return refused("", "the operator account of this node is not known: %s: %w", a.path, err)
	case noted.Name == "":
		return refused(setAccount, "this node has no operator account")
	case noted.Name == "root":
		return refused(setAccount, "the operator account of this node is root, whose manager is the system's")
	}
	uid, err := a.login(noted.Name)
	switch {
	case fault.Is(err, fault.NotFound):
		return refused("make the login, or name another one: "+setAccount, "the operator account of this node is %q, and there is no such login", noted.Name)
	case err != nil:
		return refused("", "the operator account of this node is %q: %w", noted.Name, err)
	case uid == 0:
		return refused(setAccount, "the operator account of this node is %q, which is root under another name", noted.Name)
	case uid != noted.UID:
		return refused("", "the operator account of this node is %q with uid %d, and that login has uid %d now: the host has not taken it in", noted.Name, noted.UID, uid)
	}
	return noted, nil
}

// noted reads the file. Nobody but root may have written it.
func (a accounts) noted() (Account, error) {
	f, err := os.OpenFile(a.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Account{}, reason(err)
	}
	defer f.Close()
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.Fd()), &st); {
	case err != nil:
		return Account{}, err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return Account{}, errors.New("it is no file")
	case int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0:
		return Account{}, errors.New("others than root may write it")
	}
	text, err := io.ReadAll(io.LimitReader(f, mostAccount))
	if err != nil {
		return Account{}, reason(err)
	}
	var noted Account
	if err := json.Unmarshal(text, &noted); err != nil {
		return Account{}, err
	}
	return Account{Name: noted.Name, UID: noted.UID}, nil
}

// reason is an error of a file without the path.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// during says of what call an error is that has neither operation nor object.
func during(op, object string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return fault.New(fault.Unavailable, op, object, err)
	}
	return fault.New(f.Class, op, object, f.Cause).WithHint(f.Hint)
}
