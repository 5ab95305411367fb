package delegate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"stead/host/disk"
	"stead/host/fault"
	"stead/host/plan"
)

// maxText bounds a text of the child's that ends in a report, in bytes.
const maxText = 1 << 10

// broken ends the child for what it said, and is the error of that.
func (d *Delegate) broken(format string, args ...any) error {
	err := fmt.Errorf("the process that acts as the account broke the rules: "+format, args...)
	d.mu.Lock()
	p := d.process
	d.mu.Unlock()
	if p != nil {
		p.end(err)
	}
	return fault.New(fault.Failed, "ask", d.o.Login.Name, err)
}

// judge takes over what a child says of one unit. What shall stand in files is
// what the declaration says; of the child are only the links that are wanted.
func (d *Delegate) judge(q plan.Query, l looked) (plan.Disk, error) {
	k := l.Disk
	k.Errs = nil
	for _, t := range l.Errs {
		if t != nil {
			k.Errs = append(k.Errs, d.told(t.Err()))
		}
	}
	if k.At == nil {
		k.At = make(map[string]plan.Entry)
	}
	if plan.OfFile(q.Unit) {
		return d.judgeFile(q, k)
	}
	files := d.files(q)
	dir := d.ConfigDir() + "/"
	for i, w := range k.Wants {
		own, declared := files[w.Path]
		switch {
		case w.Entry.Kind == plan.File && declared:
			k.Wants[i] = own
		case w.Entry.Kind == plan.Link && strings.HasPrefix(w.Path, dir) && filepath.Clean(w.Path) == w.Path:
			k.Wants[i] = plan.Want{Path: w.Path, Entry: plan.Entry{Kind: plan.Link, Target: w.Entry.Target}, Why: clean(w.Why, 40)}
		default:
			return k, d.broken("%q is declared by nobody", w.Path)
		}
	}
	return d.legible(k), nil
}

// judgeFile takes over what a child says of a declared file: where it is to stand,
// to which links of the account's may lead, and why it is not. What is to stand there
// is the declaration's.
func (d *Delegate) judgeFile(q plan.Query, k plan.Disk) (plan.Disk, error) {
	told := plan.Disk{At: k.At, Errs: k.Errs}
	if q.Service == nil || q.Service.File == nil {
		return d.legible(told), nil
	}
	if no := k.Denied; no.Reason != "" {
		if no.Reason != plan.DeniedTarget && no.Reason != plan.DeniedProtected {
			return k, d.broken("%q is no reason not to write a file", no.Reason)
		}
		told.Denied = plan.Denial{Reason: no.Reason, Text: clean(no.Text, maxText), Hint: clean(no.Hint, maxText)}
	}
	if told.Real = k.Real; k.Real != "" && (!filepath.IsAbs(k.Real) || filepath.Clean(k.Real) != k.Real) {
		return k, d.broken("%q is no path", k.Real)
	}
	for _, w := range k.Wants {
		if w.Path != k.Real || len(k.Wants) > 1 {
			return k, d.broken("%q is declared by nobody", w.Path)
		}
		told.Wants = []plan.Want{disk.DeclaredFile(q.Service, w.Path, d.o.Login.UID, d.o.Login.GID)}
	}
	return d.legible(told), nil
}

// legible notes in a look what of it cannot be shown to people.
func (d *Delegate) legible(k plan.Disk) plan.Disk {
	if bad := odd(k); bad != "" {
		k.Errs = append(k.Errs, fault.New(fault.Refused, "read", fmt.Sprintf("%.200q", bad), errors.New("the name holds bytes that are no text")).
			WithHint("rename it, or remove it"))
	}
	return k
}

// files are what the declaration of q asks for, by path.
func (d *Delegate) files(q plan.Query) map[string]plan.Want {
	if q.Service == nil {
		return nil
	}
	own := disk.Declared(q.Service, d.ConfigDir(), d.o.Login.UID, d.o.Login.GID)
	all := make(map[string]plan.Want, len(own))
	for _, w := range own {
		all[w.Path] = w
	}
	return all
}

// odd returns a text of k that cannot be shown to people; "" for none.
func odd(k plan.Disk) string {
	texts := []string{k.Fragment, k.Mask, k.Place, k.Real}
	texts = append(append(append(append(texts, k.DropIns...), k.OwnLinks...), k.Vendor...), k.Masks...)
	for p, c := range k.Triggers {
		texts = append(texts, p, c.Digest, c.Path, c.Real, c.Trouble)
	}
	for p, e := range k.At {
		texts = append(texts, p, e.Target)
	}
	for p, by := range k.Shadowed {
		texts = append(texts, p, by)
	}
	for _, w := range k.Wants {
		texts = append(texts, w.Path, w.Entry.Target)
	}
	t := k.Text
	texts = append(append(append(texts, t.Conditions...), t.Conflicts...), t.InstallErrors...)
	for _, s := range append(texts, t.Type, t.PIDFile, string(t.Kind)) {
		if clean(s, 64<<10) != s {
			return s
		}
	}
	return ""
}

// below drops paths that lie outside of what the account's units lie in.
func (d *Delegate) below(paths []string) []string {
	var all []string
	for _, p := range paths {
		if filepath.Clean(p) == p && strings.HasPrefix(p, d.o.Login.Home+"/") && clean(p, maxText) == p {
			all = append(all, p)
		}
	}
	return all
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keptAs is where a disk whose copies lie in kept tells that one is.
func keptAs(kept, p string, e plan.Entry) string { return disk.KeptIn(kept, p, e) }
