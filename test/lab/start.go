package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// LedgerEnv names the environment variable with the file that counts lab tests.
const LedgerEnv = "STEAD_LAB_LEDGER"

// RootEnv names the environment variable with the root file system of nodes whose test does not say one. See SystemdEnv too.
const RootEnv = "STEAD_LAB_ROOT"

// bootTimeout bounds what Start waits for; a boot takes half a second, and a loaded machine some more.
const bootTimeout = time.Minute

var (
	started  atomic.Int64
	notLabel = regexp.MustCompile(`[^a-z0-9]+`)
)

// Start boots a node for a test and takes it down when the test ends; a test that failed gets the tail of the node's journal printed. Where no
// lab can run it fails the test, and never skips it.
//
// Options.Name is the node's hostname here, "node" when empty: the name by which other processes find it gets this process's id and a number
// added, so that tests of several packages can use the same names side by side.
//
// It waits, up to five minutes, while the machine has no room for another node: the kernel bounds how many inotify instances all of root's
// processes have together, and a node takes eight; with the usual 128 there are some thirteen nodes at once. Who needs several nodes at a time
// asks for few at a time.
//
// Options.Root is, when empty, what the environment variables STEAD_LAB_ROOT and STEAD_LAB_SYSTEMD say: the same tests run on other versions of
// systemd.
//
// When the environment variable STEAD_LAB_LEDGER names a file, one line is appended to it, with "PACKAGE.TEST" of the test that started the
// node. RunTest appends one for each test that ran inside. `sort -u` of it is the list of lab tests that ran.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	n := Share(t, o)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of the journal of lab node %q:\n%s", n.Hostname(), n.journalTail())
		}
		ctx, cancel := context.WithTimeout(context.Background(), bootTimeout)
		defer cancel()
		if err := n.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	Count(t)
	return n
}

// uniqueName is name, or what the test is called, with what no other process and no other call in this one adds.
func uniqueName(t testing.TB, name string) string {
	if name == "" {
		name = strings.Trim(notLabel.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	}
	suffix := fmt.Sprintf("-%d-%d", os.Getpid(), started.Add(1))
	return name[:min(len(name), 63-len(suffix))] + suffix
}

// StartNetwork makes a network for a test and takes it down when the test ends; nodes of it that are started later go before it. Its name gets
// this process's id and a number added, as a node's does.
func StartNetwork(t testing.TB, o NetworkOptions) *Network {
	t.Helper()
	o.Name = uniqueName(t, o.Name)
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	w, err := MakeNetwork(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bootTimeout)
		defer cancel()
		if err := w.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

// record appends a line to the ledger, if there is one.
func record(t testing.TB, line string) {
	t.Helper()
	file := os.Getenv(LedgerEnv)
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("count this lab test: %v", err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.Fatalf("count this lab test: %v", err)
	}
}

// thisPackage is the last element of the import path of the package under test: go test names its binary PACKAGE.test.
func thisPackage() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".test") }

// journalTail reads the journal from outside, so that it is there for a node that is off or does not answer.
func (n *Node) journalTail() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := n.Journal(ctx, "--lines=60")
	if err != nil {
		return err.Error() + "\n" + n.logTail()
	}
	return out
}
