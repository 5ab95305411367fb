package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"stead/test/lab"
)

const (
	// applied is the folder from which the operator applies, on the controller's node.
	applied = "/root/mesh"
	// issued is where credentials of nodes are made there.
	issued = "/root/credentials"
)

// mesh is the demonstration of a mesh while it goes on.
type mesh struct {
	*screen
	tree   string
	net    *lab.Network
	ctl    machine
	nodes  []machine // web1, web2
	before []lab.Snapshot
}

// runMesh shows everything, in order, and takes nodes and network down whatever happens.
func runMesh(ctx context.Context, s *screen) (err error) {
	m := &mesh{screen: s}
	if m.tree, err = tree(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.down(context.WithoutCancel(ctx))) }()
	fmt.Fprintln(s.out, "stead keeps what is declared once on every machine of a mesh")
	for _, act := range []func(context.Context) error{
		m.boot, m.begin, m.join, m.apply, m.drift, m.ask, m.act, m.move, m.cut, m.withdraw, m.compare,
	} {
		if err := act(ctx); err != nil {
			return m.explain(ctx, err)
		}
	}
	s.step("All of it held.")
	return nil
}

// down takes away what there is.
func (m *mesh) down(ctx context.Context) error {
	var all []error
	for _, n := range append([]machine{m.ctl}, m.nodes...) {
		if n.Node != nil {
			all = append(all, n.Down(ctx))
		}
	}
	if m.net != nil {
		all = append(all, m.net.Down(ctx))
	}
	return errors.Join(all...)
}

// explain adds the last words of each part of stead to an error.
func (m *mesh) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.New("interrupted; the lab nodes are gone")
	}
	for _, n := range append([]machine{m.ctl}, m.nodes...) {
		if n.Node == nil {
			continue
		}
		words, jerr := n.Journal(context.WithoutCancel(ctx), "--unit=stead-*", "--lines=8")
		if jerr == nil && words != "" {
			err = fmt.Errorf("%w\nthe last lines of %s:\n%s", err, n.Name(), words)
		}
	}
	return err
}

// on shows a command that is given on a node, what it printed, and wants its exit code.
func (m *mesh) on(ctx context.Context, n machine, code int, line string) (string, error) {
	where := ""
	if n.Node != m.ctl.Node {
		where = m.paint(faint, n.Hostname()+" ")
	}
	m.text(where + m.paint(faint, "$ ") + line)
	out, err := n.Exec(ctx, "sh", "-c", "cd /root; "+line)
	if err != nil {
		return "", err
	}
	m.text(out.Stdout + out.Stderr)
	if out.Code != code {
		return "", fmt.Errorf("%s: exit status %d, want %d", line, out.Code, code)
	}
	return out.Stdout + out.Stderr, nil
}

// says shows a command of the operator, and wants these words in what it prints.
func (m *mesh) says(ctx context.Context, line string, words ...string) error {
	out, err := m.on(ctx, m.ctl, 0, line)
	for _, w := range words {
		if err == nil && !strings.Contains(out, w) {
			err = fmt.Errorf("%s: it does not say %q", line, w)
		}
	}
	return err
}

func (m *mesh) boot(ctx context.Context) (err error) {
	m.step("Three lab nodes boot on a network of their own, each with a real systemd as PID 1.")
	id := os.Getpid()
	if m.net, err = lab.MakeNetwork(ctx, lab.NetworkOptions{Name: fmt.Sprintf("demo-%d", id)}); err != nil {
		return err
	}
	for i, name := range []string{"ctl", "web1", "web2"} {
		n, err := lab.Boot(ctx, lab.Options{Name: fmt.Sprintf("demo-%d-%s", id, name), Hostname: name, Networks: []*lab.Network{m.net}})
		if err != nil {
			return err
		}
		if i == 0 {
			m.ctl = machine{n}
		} else {
			m.nodes = append(m.nodes, machine{n})
		}
	}
	return install(ctx, m.tree, append([]machine{m.ctl}, m.nodes...)...)
}

func (m *mesh) begin(ctx context.Context) error {
	m.step("One of them becomes the controller; an operator gets credentials.")
	if err := m.ctl.CopyIn(filepath.Join(m.tree, "docs/examples/mesh"), applied); err != nil {
		return err
	}
	for _, line := range []string{"systemctl start stead-controller", "stead credentials operator alice", "stead context add alice.json"} {
		if _, err := m.on(ctx, m.ctl, 0, line); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) join(ctx context.Context) error {
	m.step("The two others join: credentials are brought to them, host and runtime are started.")
	for _, n := range m.nodes {
		if _, err := m.on(ctx, m.ctl, 0, fmt.Sprintf("stead credentials node %s --out %s/%s", n.Hostname(), issued, n.Hostname())); err != nil {
			return err
		}
		if err := m.bring(ctx, n); err != nil {
			return err
		}
		if _, err := n.must(ctx, "systemctl", "start", "stead-escalate.socket", "stead-host", "stead-runtime"); err != nil {
			return err
		}
	}
	err := until(ctx, "the seat is held on both nodes", func() (bool, error) {
		out, err := m.ctl.must(ctx, "stead", "get", "holders")
		return strings.Count(out, "systemd") == len(m.nodes), err
	})
	if err != nil {
		return err
	}
	if err := m.says(ctx, "stead node label web1 role=web"); err != nil {
		return err
	}
	for _, n := range m.nodes {
		s, err := n.Snapshot(ctx)
		if err != nil {
			return err
		}
		m.before = append(m.before, s)
	}
	m.result("what both nodes are like is noted down from outside")
	return m.says(ctx, "stead get nodes", "web1", "web2")
}

// bring copies the credentials of a node to it.
func (m *mesh) bring(ctx context.Context, n machine) error {
	dir := path.Join(issued, n.Hostname())
	files, err := m.ctl.must(ctx, "ls", dir)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(files) {
		text, err := m.ctl.ReadFile(path.Join(dir, name))
		if err == nil {
			err = n.WriteFile(path.Join("/etc/stead/credentials", name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
