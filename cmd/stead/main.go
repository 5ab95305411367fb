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

	"golang.org/x/sys/unix"

	"stead/cmd/stead/cli"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, cli.Options{Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Width: width(os.Stdout), Version: version, Env: os.Getenv})
	stop()
	os.Exit(code)
}

// width is how many columns the terminal f has; 0 when it is none.
func width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
