// Package cases holds a test for each of the cases that tools which manage units
// are known to get wrong, as an operator meets it: declared in a mesh, kept by the
// host of a real systemd, asked for by stead's own commands. The id of the case is
// in the test's name, and the comment above says the case and what stead does:
//
//	// F013: the [Install] section of an enabled unit changes.
//	// stead: removes the links that the old one asked for before the new one comes.
//	func TestF013…
//
// docs/cases.md is made from these comments, here and in other packages, by
// go test ./test/cases -run TestDocument -update.
//
// All tests share one lab node, on which stead up was given, and run side by side.
// Each has names of its own for its units and declarations, which begin with the id
// of its case, and what it declares is withdrawn when it ends. What would be seen
// by the others, such as a daemon-reload by hand, a restart of dbus or a disk that
// is full, is done on a second node, which a test has for itself until it ends.
package cases

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

const (
	etc = "/etc/systemd/system"
	// hostname of both nodes, and so the name of the node in the mesh.
	hostname = "ws1"
	// account is the node's operator account. Nobody is logged in as it.
	account = "opal"
	// patience is when a wait is given up; a loaded machine is slow.
	patience = 3 * time.Minute
)

var update = flag.Bool("update", false, "write docs/cases.md")

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait far more than they compute.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, s := range []*site{&common, &second} {
		if err := s.down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// common is the node of all tests, second the one that a test has for itself.
var common, second site

// site is a lab node that tests share: a mesh of one machine, with an operator
// account.
type site struct {
	once sync.Once
	node *lab.Node
	free sync.Mutex // held by the test that has the node for itself
}

// up boots the node once. It ends the test when it does not come up.
func (s *site) up(t *testing.T) *lab.Node {
	t.Helper()
	s.once.Do(func() {
		n := lab.Share(t, lab.Options{Hostname: hostname})
		t.Cleanup(func() {
			if s.node == nil { // it did not come so far: nobody else takes it down
				require.NoError(t, n.Down(context.Background()))
			}
		})
		n.InstallStead(t)
		n.Run(t, "useradd", "--create-home", "--home-dir=/srv/"+account, "--shell=/bin/sh", account)
		n.Run(t, "stead", "up")
		n.Run(t, "stead", "node", "account", hostname, account)
		s.node = n
	})
	if s.node == nil {
		t.Fatal("the lab node did not come up for the test before")
	}
	return s.node
}

func (s *site) down() error {
	if s.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.node.Down(ctx)
}

// desk is where one test works: a node, and names of its own.
type desk struct {
	*testing.T
	node *lab.Node
	id   string // of the case, in lower case: what the test's names begin with

	mu       sync.Mutex
	declared map[string]given // by name
}

// given is what the mesh knows a declaration by.
type given struct {
	uid        string
	generation uint64
}

// sit has the test work on the node of all, side by side with the others.
func sit(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	return newDesk(t, &common)
}

// sitAlone has the test work on the second node, with nobody else on it.
func sitAlone(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	second.free.Lock()
	t.Cleanup(second.free.Unlock)
	return newDesk(t, &second)
}

func newDesk(t *testing.T, s *site) *desk {
	t.Helper()
	id := caseID.FindString(t.Name())
	require.NotEmpty(t, id, "the name of the test holds the id of its case")
	d := &desk{T: t, node: s.up(t), id: strings.ToLower(id), declared: map[string]given{}}
	lab.Count(t)
	t.Cleanup(d.leave)
	return d
}

// leave withdraws what is declared, and shows what the node said when the test failed.
func (d *desk) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if d.Failed() {
		log, err := d.node.Journal(ctx, "--output=cat", "--lines=60", "--unit=stead-*")
		d.Logf("stead logged (%v):\n%s", err, log)
		log, err = d.node.Journal(ctx, "--output=cat", "--lines=30", "--unit="+d.id+"*")
		d.Logf("of and about the units of this test (%v):\n%s", err, log)
	}
	if args := d.names(); len(args) > 0 {
		out, err := d.node.Exec(ctx, append([]string{"stead", "withdraw", "--force", "--yes"}, args...)...)
		if err != nil || out.Code != 0 {
			d.Errorf("withdraw what was declared: %v %s", err, out.Stderr)
		}
	}
}
