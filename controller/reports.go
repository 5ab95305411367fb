package controller

import (
	"context"
	"fmt"
	"strings"

	"stead/controller/assign"
	"stead/host/report"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

// getReports reads reports by node and name. What comes after NODE/NAME is the
// next page.
func (d *desk) getReports(ctx context.Context, p *assign.Placement, caller identity.Caller, r wire.GetRequest, reply *wire.GetReply) {
	afterNode, afterName, _ := strings.Cut(r.After, "/")
	defer func() { d.blame(ctx, reply.Reports) }()
	full := newPage()
	for _, node := range chosen(p, r) {
		if node < afterNode || d.store.Summary(node) == nil {
			continue
		}
		all, err := d.store.Reports(node, r.Names...)
		if err != nil { // one that cannot be read keeps nobody from the others
			reply.Trouble = joined(reply.Trouble, "reports of node "+node+" cannot be read: "+err.Error())
			continue
		}
		for _, one := range all {
			if node == afterNode && one.Name <= afterName {
				continue
			}
			w := wire.NodeReport{Node: node, Report: shown(one, caller)}
			if !full.takes(w) {
				last := reply.Reports[len(reply.Reports)-1]
				reply.Next = last.Node + "/" + last.Name
				return
			}
			reply.Reports = append(reply.Reports, w)
		}
	}
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// shown is a report as the caller may see it. Log lines hold what programs should
// not have written, and systemd's warnings quote the unit file: a viewer gets
// neither, and learns that there is something.
func shown(r *report.Report, caller identity.Caller) report.Report {
	w := *r
	if caller.Role != identity.Operator {
		w.Lines = nil
		if n := len(w.Warnings); n > 0 {
			w.Warnings = []string{fmt.Sprintf("warnings that may quote what is declared, and that operators read: %d", n)}
		}
	}
	return w
}
