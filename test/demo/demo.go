package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stead/host/report"
	"stead/test/lab"
)

// demo is the demonstration while it goes on.
type demo struct {
	*screen
	machine
	tree   string
	before lab.Snapshot
}

// run shows everything, in order, and takes the node down whatever happens.
func run(ctx context.Context, s *screen) (err error) {
	d := &demo{screen: s}
	if d.tree, err = tree(ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "stead keeps five declared services on one machine")
	s.step("A lab node boots: a throw-away machine with a real systemd as PID 1.")
	node, err := lab.Boot(ctx, lab.Options{Name: fmt.Sprintf("demo-%d", os.Getpid()), Hostname: "ws1"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Down(context.WithoutCancel(ctx))) }()
	d.machine = machine{node}
	for _, act := range []func(context.Context) error{
		d.prepare, d.declare, d.stop, d.edit, d.remove, d.break_, d.mend, d.empty, d.withdraw, d.compare,
	} {
		if err := act(ctx); err != nil {
			return d.explain(ctx, err)
		}
	}
	s.step("All of it held.")
	return nil
}

// explain adds the last words of the host to an error.
func (d *demo) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.New("interrupted; the lab node is gone")
	}
	words, jerr := d.Journal(context.WithoutCancel(ctx), "--unit=stead-host.service", "--lines=20")
	if jerr != nil || words == "" {
		return err
	}
	return fmt.Errorf("%w\nthe host's last lines:\n%s", err, words)
}

// show runs a command line in the node, shows what it printed, and wants its exit code.
func (d *demo) show(ctx context.Context, code int, line string) error {
	d.command(line)
	out, err := d.Exec(ctx, "sh", "-c", line)
	if err != nil {
		return err
	}
	d.text(out.Stdout + out.Stderr)
	if out.Code != code {
		return fmt.Errorf("%s: exit status %d, want %d", line, out.Code, code)
	}
	return nil
}

// byHand is a unit that the machine has before stead comes, and that a declaration takes over.
const byHand = `# written by hand, long ago
[Service]
ExecStart=/bin/sleep 1000000
`

func (d *demo) prepare(ctx context.Context) error {
	version, err := d.must(ctx, "systemctl", "--version")
	if err != nil {
		return err
	}
	d.result("%s is up", strings.Join(strings.Fields(version)[:2], " "))

	d.step("stead is built and installed. The machine has a worker.service of its own, which runs.")
	if err := install(ctx, d.tree, d.machine); err != nil {
		return err
	}
	if err := d.WriteFile(filepath.Join(config, "worker.service"), []byte(byHand), 0o640); err != nil {
		return err
	}
	for _, line := range [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "start", "worker.service"}} {
		if _, err := d.must(ctx, line...); err != nil {
			return err
		}
	}
	if d.before, err = d.Snapshot(ctx); err != nil {
		return err
	}
	d.result("what the machine is like is noted down from outside, before the host has ever run")
	return nil
}

func (d *demo) declare(ctx context.Context) error {
	d.step("Five declarations are put into the host's folder, and the host is started.")
	if err := d.CopyIn(filepath.Join(d.tree, "docs/examples/host"), folder); err != nil {
		return err
	}
	d.line("docs/examples/host/*.yaml → %s/", folder)
	begun := time.Now()
	if err := d.show(ctx, 0, "systemctl start stead-host"); err != nil {
		return err
	}
	if err := d.converged(ctx); err != nil {
		return err
	}
	took := time.Since(begun)
	if err := d.show(ctx, 0, "stead host status"); err != nil {
		return err
	}
	d.result("converged after %s; the last second of that is for seeing that it stays so", span(took))
	return nil
}

// converged waits until all five are so.
func (d *demo) converged(ctx context.Context) error {
	return until(ctx, "all five converged", func() (bool, error) {
		st, err := d.status(ctx)
		n := 0
		for _, r := range st.Reports {
			if r.Outcome == report.Converged {
				n++
			}
		}
		return n == 5 && len(st.Reports) == 5 && st.Source.Trouble == "", err
	})
}

// because shows what the host did about a declaration since a moment, and why.
func (d *demo) because(ctx context.Context, name string, since time.Time) error {
	r, err := d.reported(ctx, name, "has a step", func(r *report.Report) bool {
		return len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].At.After(since)
	})
	if err != nil {
		return err
	}
	for _, s := range r.Steps {
		if s.At.After(since) {
			d.line("host: %s %s: %s", s.Action, s.Object, s.Reason)
			break
		}
	}
	return nil
}

func (d *demo) stop(ctx context.Context) error {
	d.step("Behind the host's back, a service is stopped.")
	was, err := d.stamps(ctx, "hello.service")
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := d.show(ctx, 0, "systemctl stop hello"); err != nil {
		return err
	}
	took, err := d.downFor(ctx, "hello.service", was.invocation)
	if err != nil {
		return err
	}
	if err := d.because(ctx, "hello", begun); err != nil {
		return err
	}
	d.result("it runs again; by systemd's own stamps it was down for %s", span(took))
	return d.converged(ctx)
}

func (d *demo) edit(ctx context.Context) error {
	d.step("A unit file is edited.")
	return d.spoil(ctx, "hello", "sed -i 's/sleep 60/sleep 1/' /etc/systemd/system/hello.service")
}

func (d *demo) remove(ctx context.Context) error {
	d.step("The unit file of a running service is deleted.")
	return d.spoil(ctx, "worker", "rm /etc/systemd/system/worker.service")
}

// spoil runs a command that changes the unit file of a declaration, and measures how long that lasts.
func (d *demo) spoil(ctx context.Context, name, line string) error {
	begun := time.Now()
	w, err := startWatch(ctx, d.Path(filepath.Join(config, name+".service")))
	if err != nil {
		return err
	}
	if err := d.show(ctx, 0, line); err != nil {
		return err
	}
	took, err := w.wait()
	if err != nil {
		return fmt.Errorf("%s: the file did not come back: %w", line, err)
	}
	if err := d.because(ctx, name, begun); err != nil {
		return err
	}
	if took == 0 {
		d.result("it is as declared, sooner than could be seen from outside")
	} else {
		d.result("it is as declared again, after %s", span(took))
	}
	return d.converged(ctx)
}
