package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// declaredFile looks at one declared file, or at one that is given back. Nobody's answer is
// kept: it hangs on folders and logins that no listing of units tells of.
func (l *look) declaredFile(q plan.Query) plan.Disk {
	k := plan.Disk{At: make(map[string]plan.Entry, len(q.Memory.Found)+1)}
	if q.Service != nil && q.Service.File != nil {
		l.declare(q.Service, &k)
	}
	for _, w := range k.Wants {
		l.stands(&k, w.Path)
	}
	for p := range q.Memory.Found {
		l.stands(&k, p)
	}
	for p := range q.Memory.Wrote {
		l.stands(&k, p)
	}
	for _, w := range k.Wants {
		k.Denied = occupied(w.Path, k.At[w.Path].Kind)
	}
	return k
}

// declare puts down where the file of s is to stand and what is to stand there, or
// why nothing is.
func (l *look) declare(s *shape.Declaration, k *plan.Disk) {
	p, err := l.where(s.File.Path)
	if err != nil {
		k.Errs = append(k.Errs, err)
		return
	}
	folder, err := l.tree.walk(path.Dir(p), l.o.UID == 0)
	var link stranger
	var other notFolder
	switch {
	case errors.As(err, &link):
		k.Denied = plan.Denial{Reason: plan.DeniedTarget, Text: link.Error() + ": it is not followed", Hint: "declare the path behind it"}
		return
	case errors.As(err, &other):
		k.Denied = plan.Denial{Reason: plan.DeniedTarget, Text: other.Error(), Hint: "mv " + other.at + " " + other.at + ".old"}
		return
	case errors.Is(err, unix.ELOOP):
		k.Denied = plan.Denial{Reason: plan.DeniedTarget, Text: "the links on the way to " + p + " lead nowhere: there are too many of them", Hint: "namei -l " + p}
		return
	case err != nil:
		k.Errs = append(k.Errs, failure("read", path.Dir(p), err))
		return
	}
	k.Real = path.Join(folder, path.Base(p))
	if why, yes := l.protected(s.Scope, k.Real); yes {
		k.Denied = plan.Denial{Reason: plan.DeniedProtected, Text: fmt.Sprintf("%s leads to %s, which is protected: %s", s.File.Path, k.Real, why), Hint: "declare another path"}
		return
	}
	e, none, err := l.owned(s)
	switch {
	case err != nil:
		k.Errs = append(k.Errs, failure("look up", s.File.Owner, err))
	case none != "":
		k.Denied = plan.Denial{Reason: plan.DeniedLogin, Text: "this node has no " + none, Hint: "make it, or declare another one"}
	default:
		k.Wants = []plan.Want{fileWant(s, k.Real, e)}
	}
}

// fileWant is what the file of s is, at p, with the owner of e.
func fileWant(s *shape.Declaration, p string, e plan.Entry) plan.Want {
	sum := sha256.Sum256([]byte(*s.Content))
	e.Kind, e.Digest, e.Mode = plan.File, hex.EncodeToString(sum[:]), s.File.Mode
	return plan.Want{Path: p, Entry: e, Content: []byte(*s.Content), Why: whyFile}
}

// whyFile is what a declared file is called among the reasons of steps.
const whyFile = "the file"

// DeclaredFile is what the file of s is, at p, and of uid and gid.
func DeclaredFile(s *shape.Declaration, p string, uid, gid int) plan.Want {
	return fileWant(s, p, plan.Entry{UID: uid, GID: gid})
}

// where is the path at which a file is declared, with the home in the place of ~.
func (d *Disk) where(p string) (string, error) {
	rest, below := strings.CutPrefix(p, "~/")
	switch {
	case !below:
		return p, nil
	case d.o.Home == "":
		return "", fault.New(fault.Internal, "read", p, errors.New("no home is known"))
	}
	return path.Join(d.o.Home, rest), nil
}

// protected judges where a file really is to stand.
func (d *Disk) protected(scope unit.Scope, real string) (string, bool) {
	if scope != unit.User {
		return shape.ProtectedPath(scope, real)
	}
	home, err := d.tree.walk(d.o.Home, false)
	if err != nil {
		home = d.o.Home
	}
	rest, below := strings.CutPrefix(real, home+"/")
	if !below {
		return "it is not below the account's home", true
	}
	return shape.ProtectedPath(scope, "~/"+rest)
}

// ownership is who a file of the system's belongs to; none names the login or group that
// this machine lacks.
type ownership struct {
	uid, gid int
	none     string
	err      error
}

// owned is an entry with the owner of the file of s, or why there is none. Who a name
// stands for is asked once in a look.
func (l *look) owned(s *shape.Declaration) (e plan.Entry, none string, err error) {
	if s.Scope == unit.User {
		return plan.Entry{UID: l.o.UID, GID: l.o.GID}, "", nil
	}
	names := [2]string{s.File.Owner, s.File.Group}
	o, known := l.owners[names]
	if !known {
		if l.owners == nil {
			l.owners = make(map[[2]string]ownership)
		}
		o = l.ownerOf(s.File)
		l.owners[names] = o
	}
	return plan.Entry{UID: o.uid, GID: o.gid}, o.none, o.err
}

// ownerOf looks up whose a file is. That root is 0 needs no file that says it.
func (l *look) ownerOf(f *shape.File) (o ownership) {
	if f.Owner != "root" {
		if o.uid, o.gid, o.err = l.o.Logins.Owner(f.Owner); o.err != nil {
			return unowned("login "+f.Owner, o.err)
		}
	}
	switch f.Group {
	case "": // the owner's first one
	case "root":
		o.gid = 0
	default:
		if o.gid, o.err = l.o.Logins.Group(f.Group); o.err != nil {
			return unowned("group "+f.Group, o.err)
		}
	}
	return o
}

// unowned is the answer where what was looked up was not found, or not at all.
func unowned(what string, err error) ownership {
	if fault.Is(err, fault.NotFound) {
		return ownership{none: what}
	}
	return ownership{err: err}
}

// nobody are the logins of a Disk that was told of none.
type nobody struct{}

func (nobody) Owner(login string) (uid, gid int, err error) {
	return 0, 0, fault.New(fault.Internal, "look up", login, errors.New("no logins are known"))
}

func (nobody) Group(name string) (gid int, err error) {
	return 0, fault.New(fault.Internal, "look up", name, errors.New("no groups are known"))
}

// occupied says what stands in the way of a file at p.
func occupied(p string, kind plan.Kind) plan.Denial {
	switch kind {
	case plan.Dir:
		return plan.Denial{Reason: plan.DeniedTarget, Text: p + " is a folder, which no file replaces", Hint: "rmdir " + p}
	case plan.Other:
		return plan.Denial{Reason: plan.DeniedTarget, Text: p + " is a device, FIFO or socket, which no file replaces", Hint: "rm " + p}
	}
	return plan.Denial{}
}

// stands puts down what stands at p. Of the folder no more than that is read: it may
// be a large one.
func (l *look) stands(k *plan.Disk, p string) {
	if _, done := k.At[p]; done {
		return
	}
	in, name := split(p)
	t := l.now.drawn[in][name]
	if t == nil {
		var err error
		if t, _, err = l.entryAt(p); err != nil {
			k.Errs = append(k.Errs, failure("read", p, err))
		}
	}
	k.At[p] = t.entry
	l.seen[p] = sight{t.entry, t.stamp}
	if t.err != nil {
		k.Errs = append(k.Errs, failure("read", p, t.err))
	}
}

// ours reports whether p lies in a folder of the manager's or of stead's, on the way
// to which links are followed as the manager follows them. On the way to all others
// root follows none.
func (d *Disk) ours(p string) bool {
	if d.o.UID != 0 {
		return true
	}
	for _, dir := range append([]string{d.o.ConfigDir, d.o.RuntimeDir, d.o.Kept}, d.o.UnitPath...) {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// parent opens the folder of p.
func (d *Disk) parent(p string, flags int) (int, error) {
	if d.ours(p) {
		return d.tree.open(path.Dir(p), flags)
	}
	return d.tree.plainly(path.Dir(p), flags)
}

// entryAt reads what stands at p, and its bytes.
func (d *Disk) entryAt(p string) (*thing, []byte, error) {
	at, err := d.parent(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t := &thing{}
		t.gone(err)
		if errors.Is(err, unix.ENOTDIR) {
			t.entry, t.err = plan.Entry{Kind: plan.Absent}, nil
		}
		return t, nil, t.err
	}
	defer unix.Close(at)
	t, data := d.snapshot(at, path.Base(p))
	return t, data, nil
}
