package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/identity"
)

// DefaultCredentials is the folder of a node's credentials.
const DefaultCredentials = "/etc/stead/credentials"

// The files in it: a host asks as one user, and is told and asked as another.
const (
	hostFile     = "host.json"
	listenerFile = "listener.json"
)

// recheck is how often the files are looked at.
const recheck = 2 * time.Second

// pair is who a host is in the mesh.
type pair struct{ host, listener identity.Credentials }

// readPair reads both files and checks that they belong together.
func readPair(dir string) (pair, error) {
	var p pair
	var err error
	if p.host, err = readOne(dir, hostFile, identity.Host); err != nil {
		return p, err
	}
	if p.listener, err = readOne(dir, listenerFile, identity.Listener); err != nil {
		return p, err
	}
	h, l := p.host, p.listener
	if h.Mesh != l.Mesh || h.Name != l.Name || !bytes.Equal(h.DeclarationKey, l.DeclarationKey) {
		return p, fault.New(fault.Invalid, "read credentials", dir,
			fmt.Errorf("%s is of node %q in mesh %s, and %s of node %q in mesh %s", hostFile, h.Name, h.Mesh, listenerFile, l.Name, l.Mesh)).
			WithHint("put both files of one node there")
	}
	return p, nil
}

func readOne(dir, file string, role identity.Role) (identity.Credentials, error) {
	path := filepath.Join(dir, file)
	c, err := identity.ReadCredentials(path)
	switch {
	case fault.Is(err, fault.NotFound):
		return c, fault.New(fault.NotFound, "read credentials", path, errors.New("there is no such file")).
			WithHint("make both files where a controller runs, with: stead credentials node NAME")
	case err == nil && c.Role != role:
		return c, fault.New(fault.Invalid, "read credentials", path, fmt.Errorf("they are of role %q, and %q is wanted", c.Role, role)).
			WithHint("make both files where a controller runs, with: stead credentials node NAME")
	}
	return c, err
}

func (p pair) same(o pair) bool {
	return sameCredentials(p.host, o.host) && sameCredentials(p.listener, o.listener)
}

func sameCredentials(a, b identity.Credentials) bool {
	return a.Mesh == b.Mesh && a.Name == b.Name && a.JWT == b.JWT && a.Seed == b.Seed && a.CA == b.CA &&
		slices.Equal(a.URLs, b.URLs) && bytes.Equal(a.DeclarationKey, b.DeclarationKey)
}

// wallet follows the folder of credentials. What was read stays in use while the
// files cannot be read any more.
type wallet struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	held    *pair
	seen    [2]stamp
	trouble string // why the files as they are now cannot be used
}

// stamp tells one state of a file from another.
type stamp struct {
	size  int64
	mtime time.Time
	mode  os.FileMode
}

func stampOf(path string) stamp {
	st, err := os.Stat(path)
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{st.Size(), st.ModTime(), st.Mode()}
}

// look reads the files when they are others than before. It returns what is in
// use, nil when nothing is yet.
func (w *wallet) look() *pair {
	now := [2]stamp{stampOf(filepath.Join(w.dir, hostFile)), stampOf(filepath.Join(w.dir, listenerFile))}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == now && w.trouble == "" && w.held != nil {
		return w.held
	}
	p, err := readPair(w.dir)
	w.seen = now
	if err != nil {
		if text := withHint(err); text != w.trouble {
			w.trouble = text
			w.log.Error("credentials cannot be used, what is in force is kept", "folder", w.dir, "error", err)
		}
		return w.held
	}
	w.trouble = ""
	if w.held == nil || !p.same(*w.held) {
		w.held = &p
		w.log.Info("credentials read", "folder", w.dir, "node", p.host.Name, "mesh", p.host.Mesh)
	}
	return w.held
}

// withHint is an error with its cure, for where there is one line for both.
func withHint(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// now is what is in use, nil for nothing yet, and what is wrong with the files.
func (w *wallet) now() (*pair, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held, w.trouble
}

// next waits until what is in use is something, and another thing than old. It
// returns nil when ctx ended.
func (w *wallet) next(ctx context.Context, old *pair) *pair {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		if p := w.look(); p != nil && p != old {
			return p
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
