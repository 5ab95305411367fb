package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stead/host/report"
	"stead/test/lab"
)

func (m *meshDemo) apply(ctx context.Context) error {
	m.step("A folder is applied: greeter to all nodes, web to those with role=web.")
	return m.says(ctx, 0, "stead apply -f mesh --wait", "converged on 3 of 3")
}

// runs waits until a unit runs anew on n, and returns for how long it did not.
func (m *meshDemo) runs(ctx context.Context, n machine, unit string, act func() error) (time.Duration, error) {
	was, err := n.stamps(ctx, unit)
	if err == nil {
		err = act()
	}
	if err != nil {
		return 0, err
	}
	return n.downFor(ctx, unit, was.invocation)
}

func (m *meshDemo) drift(ctx context.Context) error {
	m.step("On one node the service is stopped behind its back.")
	begun := time.Now()
	took, err := m.runs(ctx, m.nodes[0], "web.service", func() error {
		_, err := m.on(ctx, m.nodes[0], 0, "systemctl stop web")
		return err
	})
	if err != nil {
		return err
	}
	m.result("it runs again; by systemd's own stamps it was down for %s", span(took))
	_, err = m.nodes[0].reported(ctx, "web", "has run for a second", func(r *report.Report) bool {
		last := r.Steps[len(r.Steps)-1].At
		return r.Outcome == report.Converged && last.After(begun) && time.Since(last) > time.Second
	})
	return err
}

func (m *meshDemo) ask(ctx context.Context) error {
	m.step("Any unit is asked about from anywhere. It names its declaration.")
	return m.says(ctx, 0, "stead status web -n web1 --system --lines 2", "declared  web, generation 1: running, enabled")
}

// act stops what is declared to run, while its journal is followed.
func (m *meshDemo) act(ctx context.Context) error {
	m.step("A stop through the seat says that the host will restore it. It does.")
	f, err := m.startFollow(ctx, m.ctl, "stead journal -f -u web -n web1 --lines 1")
	if err != nil {
		return err
	}
	defer f.stop()
	if err := f.has(ctx, 0, "Started web.service"); err != nil {
		return err
	}
	took, err := m.runs(ctx, m.nodes[0], "web.service", func() error {
		f.begin()
		if err := m.says(ctx, 0, "stead stop web -n web1", `declaration "web" ensures running: the host will start it again`); err != nil {
			return err
		}
		return f.has(ctx, 1, "Started web.service")
	})
	if err == nil {
		err = f.end()
	}
	if err != nil {
		return err
	}
	m.result("it runs again; it was down for %s", span(took))
	return m.told(ctx)
}

// told shows who did what, when both are known to the mesh.
func (m *meshDemo) told(ctx context.Context) error {
	const line = `stead events --unit web -n web1 | grep -w 'stop\|started' | sort | tail -n 2`
	var out string
	err := until(ctx, "the events tell of stop and start", func() (_ bool, err error) {
		out, err = m.ctl.must(ctx, "sh", "-c", line)
		return strings.Contains(out, "alice") && strings.Contains(out, "started"), err
	})
	if err != nil {
		return fmt.Errorf("%w; they are\n%s", err, out)
	}
	return m.says(ctx, 0, line, "alice", "stopped from outside; ensure: running")
}

func (m *meshDemo) move(ctx context.Context) error {
	m.step("The label moves to the other node, and the unit with it.")
	if err := m.says(ctx, 0, "stead node label web1 role-", "web   leaves"); err != nil {
		return err
	}
	if err := m.says(ctx, 0, "stead node label web2 role=web", "web   comes"); err != nil {
		return err
	}
	return m.says(ctx, 0, "stead apply -f mesh --wait | tail -n 1", "converged on 3 of 3")
}

func (m *meshDemo) cut(ctx context.Context) error {
	web2 := m.nodes[1]
	m.step("The cable of web2 is pulled. What it holds it goes on keeping.")
	if err := m.net.Cut(ctx, web2.Node); err != nil {
		return err
	}
	if err := m.says(ctx, 4, "stead status web -n web2 --timeout 1s", "no answer in time: web2"); err != nil {
		return err
	}
	took, err := m.runs(ctx, web2, "web.service", func() error {
		_, err := m.on(ctx, web2, 0, "systemctl stop web")
		return err
	})
	if err != nil {
		return err
	}
	m.result("it runs again after %s, without any mesh", span(took))
	if err := m.says(ctx, 0, "sed -i s/MemoryMax=1G/MemoryMax=2G/ mesh/web.yaml; stead apply -f mesh | tail -n 1", "applied as revision"); err != nil {
		return err
	}
	m.step("The cable is plugged in again: what was declared meanwhile lands.")
	if err := m.net.Join(ctx, web2.Node); err != nil {
		return err
	}
	return m.says(ctx, 0, "stead apply -f mesh --wait | tail -n 1", "converged on 3 of 3")
}

func (m *meshDemo) withdraw(ctx context.Context) error {
	m.step("Everything is withdrawn.")
	return m.says(ctx, 0, "stead withdraw web greeter --wait --yes", "given up everywhere")
}

func (m *meshDemo) compare(ctx context.Context) error {
	m.step("Both nodes are compared with before, from outside.")
	for i, n := range m.nodes {
		after, err := n.Snapshot(ctx)
		if err != nil {
			return err
		}
		if diff := m.before[i].Diff(after); diff != nil {
			return fmt.Errorf("%s is not as before:\n%s", n.Hostname(), strings.Join(diff, "\n"))
		}
		m.line("%s   %s entries on its disk, %s unit files, %s units: the same", n.Hostname(), thousands(len(after.Disk)), thousands(len(after.Files)), thousands(len(after.Units)))
	}
	for _, e := range lab.Exclusions() {
		m.line("left out   %s: %s", e.Path, e.Reason)
	}
	m.result("nothing else differs")
	return nil
}
