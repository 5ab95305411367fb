// Command mutants disables the mechanisms that stead stands on, one after the other, and wants a test to fail for each. What list.go holds is changed
// in a copy that the compiler is told to take (go build's -overlay); no file of the tree is touched. A mechanism that can be disabled with every test
// passing is one that nobody would miss. Arguments are words that the names of the mutants must hold; without any all of them are made. The exit code
// is 1 when one survives.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mutant is one mechanism that is disabled.
type mutant struct {
	name     string // the mechanism
	file     string // from the root of the tree
	from, to string // from stands in the file once
	dir      string // of the package with the test
	test     string // fails without the mechanism
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, names []string) int {
	root, err := filepath.Abs(".")
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	var all, bad int
	for _, m := range mutants {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(m.name, n) }) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		all++
		begun := time.Now()
		verdict := "killed by"
		out, err := m.run(ctx, root)
		if err != nil {
			bad++
			verdict = "NOT killed by"
		}
		fmt.Printf("%-44s %s %s (%s)\n", m.name, verdict, m.test, time.Since(begun).Round(100*time.Millisecond))
		if err != nil {
			fmt.Fprintf(os.Stderr, "error: %s: %v\n%s\n", m.name, err, out)
		}
	}
	if all == 0 {
		fmt.Fprintf(os.Stderr, "error: no mutant is named so: %q\n", names)
		return 1
	}
	fmt.Printf("%d of %d mutants killed\n", all-bad, all)
	if bad > 0 || ctx.Err() != nil {
		return 1
	}
	return 0
}

// run makes the mutant and runs its test; the error says why it is not killed.
func (m mutant) run(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-timeout", "5m", "-run", "^"+m.test+"$", "./"+m.dir)
	cmd.Dir = root
	// In the environment, so that a test that builds the program builds the mutant.
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay, "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	text := out.String()
	top, _, _ := strings.Cut(m.test, "/")
	switch {
	case err == nil && strings.Contains(text, "no tests to run"):
		return text, errors.New("there is no such test")
	case err == nil:
		return "", errors.New("the test passes without the mechanism")
	case strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"):
		return text, errors.New("it cannot be built")
	case !strings.Contains(text, "--- FAIL: "+strings.Trim(top, "^$")) && !strings.Contains(text, "panic: "):
		return text, fmt.Errorf("not the test failed: %w", err)
	}
	return "", nil
}

// overlay writes the changed file and what tells the compiler of it.
func (m mutant) overlay(root, dir string) (string, error) {
	path := filepath.Join(root, m.file)
	text, err := m.changed(root)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// changed is the file with the mechanism disabled.
func (m mutant) changed(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		return "", fmt.Errorf("%s holds %q %d times, and it must be once", m.file, m.from, n)
	}
	return strings.Replace(string(text), m.from, m.to, 1), nil
}
