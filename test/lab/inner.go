package lab

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// insideEnv tells a test that it runs in a lab node, and in which.
const insideEnv = "STEAD_LAB_NODE"

// Inner is what became of the tests, subtests among them, that ran inside a node.
type Inner struct{ Passed, Failed, Skipped []string }

// Count is how many ran to their end.
func (i Inner) Count() int { return len(i.Passed) + len(i.Failed) }

// AmInside is whether this process runs in a lab node, as a test of RunTest.
func AmInside() bool { return os.Getenv(insideEnv) != "" }

// Inside lets a test run itself in a node. Inside one it is true, at once. Outside it boots a node, runs the calling test there and reports
// what became of it; then it is false and the test has to return:
//
//	func TestRealManager(t *testing.T) {
//		if !lab.Inside(t, lab.Options{}) {
//			return
//		}
//		…
//	}
//
// It takes the binary that Self names, or, for a root file system in the options, one that is compiled for it.
func Inside(t testing.TB, o Options) bool {
	t.Helper()
	if AmInside() {
		return true
	}
	self := "/proc/self/exe"
	switch {
	case o.Root == "":
		self = Self(t)
	case o.Root != "/" && !static():
		self = BuildTest(t, ".")
	}
	var only []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		only = append(only, "^"+regexp.QuoteMeta(part)+"$")
	}
	args := []string{"-test.run", strings.Join(only, "/")}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	Start(t, o).RunTest(t, self, args...)
	return false
}

// RunTest runs a test binary (of BuildTest, or any other) inside, with the arguments added to -test.v, and passes on what it prints. The outer
// test fails when one of the inner fails or is skipped, when the binary ends badly, and when no test ran at all; it goes on after that. The
// tests that passed are added to the ledger (see Start). Files of the package, its testdata too, are not there inside.
func (n *Node) RunTest(t testing.TB, binary string, args ...string) Inner {
	t.Helper()
	place := "/tmp/lab-" + random(4) + ".test"
	if err := n.CopyIn(binary, place); err != nil {
		t.Fatal(err)
	}
	defer n.Remove(place)
	// The form for test2json marks what comes from the testing package itself, so that nothing that a test prints is taken for a result.
	all := []string{place, "-test.v=test2json"}
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, set := d.Deadline(); set {
			all = append(all, fmt.Sprintf("-test.timeout=%s", max(time.Second, time.Until(end)-10*time.Second)))
		}
	}
	all = append(all, args...)
	cmd := n.Command(t.Context(), all...)
	cmd.Env = append(cmd.Env, insideEnv+"="+n.Hostname())
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	done := make(chan Inner)
	go func() { done <- follow(r, t.Output()) }()
	err := cmd.Run()
	w.Close()
	in := <-done
	for _, name := range in.Passed {
		record(t, packageOf(binary)+"."+name)
	}
	switch {
	case len(in.Failed)+len(in.Skipped) > 0:
		t.Errorf("inside lab node %q: failed: %q, skipped: %q", n.Name(), in.Failed, in.Skipped)
	case err != nil:
		t.Errorf("inside lab node %q: the test binary of %s: %v", n.Name(), packageOf(binary), err)
	case in.Count() == 0:
		t.Errorf("inside lab node %q: no test ran: %q", n.Name(), args)
	}
	return in
}

var result = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

// follow copies lines as they come, without their marks, and keeps the results.
func follow(from io.Reader, to io.Writer) Inner {
	const mark = 0x16 // cmd/internal/test2json: stands before each line of the testing package's own, which may begin in mid-line
	var in Inner
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if i := bytes.LastIndexByte(line, mark); i >= 0 {
			if m := result.FindSubmatch(line[i+1:]); m != nil {
				name := string(m[2])
				switch string(m[1]) {
				case "PASS":
					in.Passed = append(in.Passed, name)
				case "FAIL":
					in.Failed = append(in.Failed, name)
				case "SKIP":
					in.Skipped = append(in.Skipped, name)
				}
			}
		}
		to.Write(bytes.ReplaceAll(line, []byte{mark}, nil))
		if err != nil {
			return in
		}
	}
}
