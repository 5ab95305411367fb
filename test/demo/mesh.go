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
	// lacking is this program there, as a runtime that lacks a verb.
	lacking = "/root/lacks-journal"
)

// meshDemo is the demonstration of a mesh while it goes on.
type meshDemo struct {
	*screen
	tree   string
	net    *lab.Network
	ctl    machine
	nodes  []machine // web1, web2
	before []lab.Snapshot
}

// runMesh shows everything, in order, and takes nodes and network down whatever happens.
func runMesh(ctx context.Context, s *screen) (err error) {
	m := &meshDemo{screen: s}
	if m.tree, err = tree(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.down(context.WithoutCancel(ctx))) }()
	fmt.Fprintln(s.out, "stead keeps what is declared once on every machine of a mesh")
	for _, act := range []func(context.Context) error{
		m.boot, m.begin, m.join, m.refuse, m.apply, m.drift, m.ask, m.act, m.move, m.cut, m.withdraw, m.compare,
	} {
		if err := act(ctx); err != nil {
			return m.explain(ctx, err)
		}
	}
	s.step("All of it held.")
	return nil
}

// down takes away what there is.
func (m *meshDemo) down(ctx context.Context) error {
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
func (m *meshDemo) explain(ctx context.Context, err error) error {
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
func (m *meshDemo) on(ctx context.Context, n machine, code int, line string) (string, error) {
	m.given(n, line)
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

// given shows that a command is given on a node, by its name where that is not the operator's.
func (m *meshDemo) given(n machine, line string) {
	where := ""
	if n.Node != m.ctl.Node {
		where = n.Hostname() + " "
	}
	m.text(m.paint(faint, where+"$ ") + line)
}

// done shows that a command is given which must be done, and nothing of what it prints.
func (m *meshDemo) done(ctx context.Context, n machine, line string) error {
	m.given(n, line)
	_, err := n.must(ctx, "sh", "-c", "cd /root; "+line)
	return err
}

// says shows a command of the operator, and wants these words in what it prints.
func (m *meshDemo) says(ctx context.Context, code int, line string, words ...string) error {
	out, err := m.on(ctx, m.ctl, code, line)
	for _, w := range words {
		if err == nil && !strings.Contains(out, w) {
			err = fmt.Errorf("%s: it does not say %q", line, w)
		}
	}
	return err
}

func (m *meshDemo) boot(ctx context.Context) (err error) {
	m.step("Three lab nodes boot on their own network, each with a real systemd.")
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

func (m *meshDemo) begin(ctx context.Context) error {
	m.step("One becomes the controller, and alice its operator.")
	if err := m.ctl.CopyIn(filepath.Join(m.tree, "docs/examples/mesh"), applied); err != nil {
		return err
	}
	for _, line := range []string{"systemctl start stead-controller", "stead credentials operator alice", "stead context add alice.json"} {
		if err := m.done(ctx, m.ctl, line); err != nil {
			return err
		}
	}
	return nil
}

func (m *meshDemo) join(ctx context.Context) error {
	m.step("The others join: they get credentials, and start host and runtime.")
	for _, n := range m.nodes {
		if err := m.done(ctx, m.ctl, fmt.Sprintf("stead credentials node %s --out credentials/%s", n.Hostname(), n.Hostname())); err != nil {
			return err
		}
		if err := m.bring(ctx, n); err != nil {
			return err
		}
		if err := m.done(ctx, n, "systemctl start stead-host stead-runtime"); err != nil {
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
	if err := m.says(ctx, 0, "stead node label web1 role=web"); err != nil {
		return err
	}
	if err := m.says(ctx, 0, "stead get nodes", "web1", "web2"); err != nil {
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
	return nil
}

// refuse has this program claim a seat in the place of web2's runtime, with its credentials.
func (m *meshDemo) refuse(ctx context.Context) error {
	m.step("The seat of each node is held. Who claims it serves all of its verbs.")
	if err := m.says(ctx, 0, "stead get holders", "web1", "web2"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err == nil {
		err = m.ctl.CopyIn(self, lacking)
	}
	if err != nil {
		return err
	}
	return m.says(ctx, 0, "./lacks-journal claim credentials/web2",
		`claim of seat node-service-manager by module "systemd" on node "web2" refused: verb "journal" is not served`)
}

// bring copies the credentials of a node to it.
func (m *meshDemo) bring(ctx context.Context, n machine) error {
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
