// Command demo shows the host at work: it boots a lab node, declares five services there, works against them behind the host's back, and proves
// at the end that the machine is as it was before.
//
// It needs root and what package lab needs, takes no arguments, and leaves nothing behind on this machine. Every line that stands below a "$" is
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
const bound = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, bound)
	err := run(ctx, newScreen(os.Stdout))
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
