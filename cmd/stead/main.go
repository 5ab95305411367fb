// Command stead keeps the systemd units of machines as they are declared.
//
// All of it is in package cli; this file names the version, takes the signals
// that end a command, and leaves with its exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"stead/cmd/stead/cli"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, cli.Options{Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Version: version})
	stop()
	os.Exit(code)
}
