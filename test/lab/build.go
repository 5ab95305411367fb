package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// binary is one that was built by this process. Its file has no name any more, so that nothing is left behind however the process ends.
type binary struct {
	once sync.Once
	file *os.File
	err  error
}

var (
	binariesMu sync.Mutex
	binaries   = map[string]*binary{} // by go's arguments, joined
	names      = map[string]string{}  // of packages, by the path that their binary was handed out as
)

// BuildTest compiles the tests of a package, named by import path or relative to the package under test, once in this process and without cgo,
// so that they run on any root file system. The path that it returns holds in this process, for RunTest, CopyIn and reading.
func BuildTest(t testing.TB, pkg string) string {
	t.Helper()
	return build(t, pkg, "test", "-c")
}

// BuildStead compiles the stead binary, as BuildTest does.
func BuildStead(t testing.TB) string {
	t.Helper()
	return build(t, "stead/cmd/stead", "build")
}

// InstallStead puts the stead binary of this tree into the node, as /usr/local/bin/stead.
func (n *Node) InstallStead(t testing.TB) {
	t.Helper()
	if err := n.CopyIn(BuildStead(t), "/usr/local/bin/stead"); err != nil {
		t.Fatal(err)
	}
}

func build(t testing.TB, pkg string, goArgs ...string) string {
	t.Helper()
	key := fmt.Sprint(goArgs, pkg)
	binariesMu.Lock()
	b := binaries[key]
	if b == nil {
		b = &binary{}
		binaries[key] = b
	}
	binariesMu.Unlock()
	b.once.Do(func() { b.file, b.err = compile(pkg, goArgs) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	p := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), b.file.Fd())
	binariesMu.Lock()
	names[p] = path.Base(pkg)
	binariesMu.Unlock()
	return p
}

func compile(pkg string, goArgs []string) (*os.File, error) {
	dir, err := os.MkdirTemp("", "stead-lab-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "binary")
	cmd := exec.Command("go", append(goArgs, "-o", out, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, said.Bytes())
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w: has it any test files?\n%s", pkg, err, said.Bytes())
	}
	return f, nil
}

// packageOf names the package whose tests the binary holds, as well as can be told.
func packageOf(binary string) string {
	binariesMu.Lock()
	defer binariesMu.Unlock()
	if name := names[binary]; name != "" && name != "." {
		return name
	}
	return thisPackage()
}
