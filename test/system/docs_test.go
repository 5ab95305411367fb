package system_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/arch"
	"stead/test/lab"
)

const (
	// clone is where a document's reader has the tree, in a lab node.
	clone = "/root/stead"
	// commandBound is how long one command of a document may take.
	commandBound = time.Minute
)

// Every command of README.md and of docs is run in a lab node of the document's own, as root, in order, and prints what the document says.
func TestDocsCommandsRun(t *testing.T) {
	files, err := arch.Documents(os.DirFS(root))
	require.NoError(t, err)
	require.Contains(t, files, "README.md")
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		blocks, err := arch.Blocks(file, string(text))
		require.NoError(t, err)
		var commands []command
		for _, b := range blocks {
			some, err := b.Commands()
			require.NoError(t, err)
			for _, c := range some {
				commands = append(commands, command{c, b.Tag == arch.Script})
			}
		}
		if len(commands) == 0 {
			continue
		}
		t.Run(strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
			t.Parallel()
			r := reader{t: t, node: lab.Start(t, lab.Options{Hostname: "ws1"}), file: file}
			require.NoError(t, r.node.CopyIn(filepath.Join(root, "docs"), filepath.Join(clone, "docs")))
			r.node.InstallNATS(t)
			for _, c := range commands {
				r.run(c)
			}
		})
	}
}

// command is one of a document's; what a script prints does not matter.
type command struct {
	arch.Command
	script bool
}

// reader does what a document says.
type reader struct {
	t    *testing.T
	node *lab.Node
	file string
}

func (r reader) run(c command) {
	r.t.Helper()
	begun, run := time.Now(), r.exec
	if strings.HasPrefix(c.Text, "make ") {
		run = r.make
	}
	got, code := run(c.Text)
	r.t.Logf("%s:%d: %.1f s: %s", r.file, c.Line, time.Since(begun).Seconds(), strings.TrimSpace(c.Text))
	require.Equal(r.t, c.Exit, code, "%s:%d: %s: exit status; it printed\n%s", r.file, c.Line, c.Text, got)
	require.True(r.t, c.script || c.Matches(got), "%s:%d: %s\nthe document says\n%s\nand it printed\n%s", r.file, c.Line, c.Text, c.Output, got)
}

// exec runs a command in the folder of the tree, its standard output and error as one.
func (r reader) exec(text string) (string, int) {
	ctx, cancel := context.WithTimeout(r.t.Context(), commandBound)
	defer cancel()
	cmd := r.node.Command(ctx, "/bin/sh", "-ec", "cd "+clone+" && exec 2>&1\n"+text)
	out, err := cmd.Output()
	require.NotNil(r.t, cmd.ProcessState, "%s: %v", text, err)
	require.NoError(r.t, ctx.Err(), "%s: it does not end; it printed\n%s", text, out)
	return string(out), lab.ExitCode(cmd.ProcessState)
}

// making is held while make works in the tree itself.
var making sync.Mutex

// make runs make install where the compiler is: in this tree, with another root folder, whose content is then put into the node.
func (r reader) make(text string) (string, int) {
	making.Lock()
	defer making.Unlock()
	require.Equal(r.t, "make install", strings.TrimSpace(text), "no other target is for a document to run: the others have tests of their own")
	stage := r.t.TempDir()
	cmd := exec.CommandContext(r.t.Context(), "make", "install", "DESTDIR="+stage)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	entries, err := os.ReadDir(stage)
	require.NoError(r.t, err)
	for _, e := range entries {
		require.NoError(r.t, r.node.CopyIn(filepath.Join(stage, e.Name()), "/"+e.Name()))
	}
	return string(bytes.ReplaceAll(out, []byte(stage), nil)), 0
}

func TestDocsRunnerTellsOutputAndExitStatus(t *testing.T) {
	r := reader{t: t, node: lab.Start(t, lab.Options{})}
	r.node.Run(t, "mkdir", "-p", clone)
	for text, want := range map[string]struct {
		out  string
		code int
	}{
		"echo a; echo b >&2":   {"a\nb\n", 0},
		"pwd":                  {clone + "\n", 0},
		"echo a; exit 3":       {"a\n", 3},
		"false; echo not here": {"", 1},
		"cat <<'EOF'\n$x\nEOF": {"$x\n", 0},
	} {
		out, code := r.exec(text)
		require.Equal(t, want.out, out, text)
		require.Equal(t, want.code, code, text)
	}
}
