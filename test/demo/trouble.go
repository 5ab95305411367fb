package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stead/host/report"
	"stead/test/lab"
)

const (
	right = "ExecStart=/bin/sh "
	wrong = "ExecStart=/bin/shh "
)

func (d *demo) break_(ctx context.Context) error {
	d.step("A declaration is broken: it names a program that there is not.")
	if err := d.show(ctx, 0, fmt.Sprintf("sed -i 's,%s,%s,' %s/hello.yaml", right, wrong, folder)); err != nil {
		return err
	}
	r, err := d.reported(ctx, "hello", "is failed, with its last lines", func(r *report.Report) bool {
		return r.Outcome == report.Failed && slices.ContainsFunc(r.Lines, func(l string) bool { return strings.Contains(l, "/bin/shh") })
	})
	if err != nil {
		return err
	}
	if err := d.show(ctx, 3, "stead host status"); err != nil {
		return err
	}
	d.line("systemd's own words, from its journal:")
	for _, l := range r.Lines {
		if strings.Contains(l, "/bin/shh") {
			d.line("  %s", l)
		}
	}
	d.result("named, and the other four are as they were")
	return nil
}

func (d *demo) mend(ctx context.Context) error {
	d.step("It is mended.")
	begun := time.Now()
	if err := d.show(ctx, 0, fmt.Sprintf("sed -i 's,%s,%s,' %s/hello.yaml", wrong, right, folder)); err != nil {
		return err
	}
	if err := d.converged(ctx); err != nil {
		return err
	}
	d.result("all five are converged again after %s", span(time.Since(begun)))
	return nil
}

func (d *demo) empty(ctx context.Context) error {
	d.step("The folder is emptied, which withdraws nothing: it might be a mount that is late.")
	if err := d.show(ctx, 0, "rm "+folder+"/*.yaml"); err != nil {
		return err
	}
	err := until(ctx, "the empty folder is noticed", func() (bool, error) {
		st, err := d.status(ctx)
		return st.Source.Trouble != "", err
	})
	if err != nil {
		return err
	}
	return d.show(ctx, 0, "stead host status | head -n 2")
}

func (d *demo) withdraw(ctx context.Context) error {
	d.step("A file that holds only a comment says that nothing is declared on purpose.")
	begun := time.Now()
	if err := d.show(ctx, 0, "echo '# nothing is declared here any more' > "+folder+"/none.yaml"); err != nil {
		return err
	}
	err := until(ctx, "all is withdrawn", func() (bool, error) {
		st, err := d.status(ctx)
		return len(st.Reports) == 0 && st.Source.Trouble == "", err
	})
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if err := d.show(ctx, 0, "stead host status"); err != nil {
		return err
	}
	if err := d.show(ctx, 0, "systemctl cat worker; systemctl is-active worker"); err != nil {
		return err
	}
	d.result("all five are given back after %s; worker.service is what it was, and runs", span(took))
	return nil
}

func (d *demo) compare(ctx context.Context) error {
	d.step("The host is stopped, its folder goes, and the machine is compared with before.")
	for _, line := range []string{"systemctl stop stead-host", "rm -r /etc/stead"} {
		if err := d.show(ctx, 0, line); err != nil {
			return err
		}
	}
	after, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	if diff := d.before.Diff(after); diff != nil {
		return fmt.Errorf("the machine is not as before:\n%s", strings.Join(diff, "\n"))
	}
	d.line("the disk     %s entries in the overlay's upper folder, the same", thousands(len(after.Disk)))
	d.line("unit files   %s in systemctl list-unit-files, the same", thousands(len(after.Files)))
	d.line("units        %s in systemctl list-units --all, the same", thousands(len(after.Units)))
	for _, e := range lab.Exclusions() {
		d.line("left out     %s: %s", e.Path, e.Reason)
	}
	d.result("nothing else differs")
	return nil
}
