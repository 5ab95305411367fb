// Command demo shows stead at work on lab nodes, works against it behind its back, and proves at the end that the machines are as they were before.
//
// Without an argument it shows a mesh: a controller and two nodes on a network of their own. With the argument host it shows one machine that keeps a
// folder of declarations. With claim and a folder of credentials it is a part of the first, in a node: a runtime that lacks a verb. It needs root and what package lab needs, and leaves nothing behind on this machine. Every line that stands below a "$" is
// what that command printed in the node, and every time was measured: those that a service was down for are systemd's own stamps, those that a
// file was another are seen from outside. The exit code is 0 when all of it held, and 1 when something did not; then the error says what.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// bound is the time after which the demonstration gives up.
const bound = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, bound)
	err := show(ctx, newScreen(os.Stdout), os.Args[1:])
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// show shows the demonstration that is asked for.
func show(ctx context.Context, s *screen, args []string) error {
	switch {
	case len(args) == 0:
		return runMesh(ctx, s)
	case len(args) == 1 && args[0] == "host":
		return run(ctx, s)
	case len(args) == 2 && args[0] == "claim":
		return claim(ctx, s, args[1])
	}
	return fmt.Errorf("no argument is wanted, or host, or claim and a folder; %q are given", args)
}
