package lab

import (
	"context"
	"testing"
)

// Share boots a node as Start does, for all the tests of a package: it outlives the test and goes when the process ends, or by Down, which TestMain
// calls. Each test that uses it says so by Count.
func Share(t testing.TB, o Options) *Node {
	t.Helper()
	if o.Hostname == "" {
		o.Hostname = o.Name
	}
	if o.Hostname == "" {
		o.Hostname = "node"
	}
	if o.Root == "" {
		o.Root = root(t)
	}
	o.Name = uniqueName(t, o.Name)
	wait, cancelWait := context.WithTimeout(t.Context(), roomTimeout)
	defer cancelWait()
	if err := room(wait, instances); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	n, err := Boot(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Count records a test that ran on a node which was booted for others too, as Start does for one of its own.
func Count(t testing.TB) {
	t.Helper()
	record(t, thisPackage()+"."+t.Name())
}
