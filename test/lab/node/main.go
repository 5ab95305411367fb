// Command node boots lab nodes for people: throw-away machines with a real systemd (package lab says what they are).
//
//	go run ./test/lab/node ws1 up
//	go run ./test/lab/node ws1 exec systemctl status
//	go run ./test/lab/node ws1 reboot
//	go run ./test/lab/node ws1 down
//	go run ./test/lab/node list
//	go run ./test/lab/node net lan up|cut|join|down
//
// A node, or a network, stays until it is taken down or this machine restarts. exec ends with the command's own exit status; otherwise 0 is done, 1 is failed,
// 2 is usage. Standard output is the answer, the rest goes to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	root := newCommand()
	root.SetArgs(nameLast(root, args))
	err := root.ExecuteContext(ctx)
	var status exitStatus
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "error: %v\nhint: go run ./test/lab/node --help\n", err)
		return 2
	}
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}

// exitStatus is that of a command inside a node.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a command line that makes no sense.
type usageError struct{ error }
