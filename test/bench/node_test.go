package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"stead/test/lab"
)

// jobEnv names what the test binary is to do inside a node instead of testing.
const jobEnv = "STEAD_BENCH_JOB"

// jobs are what is done inside a node. Each gets its order and returns what is
// to be told, both as JSON.
var jobs = map[string]func(ctx context.Context, o order) (any, error){
	"apply":          apply,
	"raise":          raise,
	"seat":           seat,
	"floor-command":  floorCommand,
	"memory-runtime": memoryOfRuntime,
	"floor-status":   floorStatus,
	"floor-restart":  floorRestart,
	"floor-apply":    floorApply,
	"look":           look,
	"floor-look":     floorLooks,
	"restore":        restore,
	"probe":          probe,
	"memory":         memory,
}

// order is what a job is told.
type order struct {
	Units int
	Turns int
	How   string // floor, host, systemctl
}

// patience bounds one job.
const patience = 3 * time.Minute

// serve does a job inside a node, prints what it found and returns the exit status.
func serve(job string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var o order
	found, err := any(nil), json.Unmarshal([]byte(os.Getenv(jobEnv+"_ORDER")), &o)
	if err == nil {
		found, err = jobs[job](ctx, o)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, job+":", err)
		return 1
	}
	return 0
}

// self is this binary as another process inside the node, with a job to do.
func self(ctx context.Context, job string, o order) (*exec.Cmd, error) {
	text, err := json.Marshal(o)
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), jobEnv+"="+job, jobEnv+"_ORDER="+string(text))
	cmd.Stderr = os.Stderr
	return cmd, err
}

const (
	steadPath = "/usr/local/bin/stead"
	benchPath = "/usr/local/bin/stead-bench"
)

// boot returns a node with stead and this binary in it.
func boot(b *testing.B) *lab.Node {
	b.Helper()
	n := lab.Start(b, lab.Options{Name: "bench"})
	n.InstallStead(b)
	if err := n.CopyIn(lab.BuildTest(b, "stead/test/bench"), benchPath); err != nil {
		b.Fatal(err)
	}
	return n
}

// inside has a job done in a node and decodes what it tells.
func inside[T any](b *testing.B, n *lab.Node, job string, o order) T {
	b.Helper()
	var told T
	text, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience+10*time.Second)
	defer cancel()
	cmd := n.Command(ctx, benchPath)
	cmd.Env = append(cmd.Env, jobEnv+"="+job, jobEnv+"_ORDER="+string(text))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s inside: %v\n%s", job, err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), &told); err != nil {
		b.Fatalf("%s inside: %v\n%s%s", job, err, stdout.Bytes(), stderr.Bytes())
	}
	return told
}

// down takes a node away before its benchmark ends: a thousand units each.
func down(b *testing.B, n *lab.Node) {
	b.Helper()
	if err := n.Down(b.Context()); err != nil {
		b.Fatal(err)
	}
}
