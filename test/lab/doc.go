// Package lab boots lab nodes: throw-away machines with a real systemd as PID 1, for tests and for people.
//
// A node lives in namespaces of its own (mount, pid, uts, ipc, cgroup, net) over an overlay of this machine's "/", or of another root file
// system (Options.Root). It has a disk that outlives reboots and power cuts, a network of its own with nothing but the loopback, its own
// machine-id, hostname and journal, and none of this machine's services, timers, lingering users or generators. It boots in about half a second. It
// is no security boundary: root inside can load modules and set the clock of the machine outside.
//
// # Use
//
// A test calls Start; the node goes when the test ends, and the tail of its journal is printed when the test failed:
//
//	func TestUnitStarts(t *testing.T) {
//		n := lab.Start(t, lab.Options{})
//		n.WriteFile("/etc/systemd/system/x.service", []byte(unit), 0o644)
//		n.Run(t, "systemctl", "daemon-reload")
//		n.Run(t, "systemctl", "start", "x.service")
//	}
//
// A test that wants to be inside, next to a real manager, says so in its first lines: if !lab.Inside(t, lab.Options{}) { return }. The tests of
// any package are compiled and run inside by RunTest(t, BuildTest(t, "stead/host/systemd"), "-test.run", "Contract"). InstallStead brings stead.
// A whole run of tests goes to another version of systemd by the environment: STEAD_LAB_SYSTEMD=247 go test ./host/systemd.
// People use the command: go run ./test/lab/node NAME up|exec|reboot|down, and list; net NAME up|cut|join|down.
//
// # Networks
//
// A Network joins nodes: each has an address on it and knows the others by their hostnames. Its cables can be pulled, and its nodes can lose
// their power without a farewell to anybody:
//
//	w := lab.StartNetwork(t, lab.NetworkOptions{})
//	a := lab.Start(t, lab.Options{Hostname: "a", Networks: []*lab.Network{w}})
//	b := lab.Start(t, lab.Options{Hostname: "b", Networks: []*lab.Network{w}})
//	require.NoError(t, w.Cut(t.Context(), b))
//
// It is a bridge in a network namespace of its own, which nothing leads out of, held by a keeper as a node is. A node can be on several, and
// passes nothing on from one to another. Networks in one folder have different addresses, 10.N.0.0/24, so that those of tests that run side by
// side do not meet. The test takes part by Network.DialContext and Network.Command.
//
// # How it is made
//
// Two processes make a node. The keeper is its hardware: a sleeping shell whose mount namespace holds the disk. PID 1 is its run: it is started
// in a copy of that, and every boot starts another, in a network namespace of its own, so that no connection of the boot before is left. The
// disk is a tmpfs under an overlay and not a folder: an overlay takes no overlay as its upper, so a folder would not do in a container or in
// another node; a folder below Root would be seen inside; and a tmpfs is gone with the keeper, whoever dies. The price: a sync costs nothing
// there, so what a disk's sync costs cannot be measured in a node. What is mounted below Root is not seen inside.
// The scripts keeper.sh, hold.sh and boot.sh say the rest.
//
// # What it owns, and leaves behind
//
// A node owns the folder Dir/NAME, the cgroup stead-lab/NAME-xxxxxxxx and its processes, all of which Down removes, and a network the same under
// net.NAME; no mount is ever made in this machine's own mount namespace, and no interface in its network. A node, or a network, dies with the
// process that made it, even one killed with SIGKILL (the keeper sees a pipe close), unless Options.Keep says otherwise. What nevertheless
// stays, after a crash of the machine for one, goes with the next Boot of the same name or with Sweep.
//
// # Where it runs
//
// As root, on Linux with cgroup2 (unified, or hybrid) and overlayfs, systemd, dbus, util-linux and iproute2. Where something lacks, Check and
// Boot name it and the package that brings it, and Start fails: a lab test is never skipped. The environment variable STEAD_LAB_LEDGER names a file to
// which each node started by a test and each test run inside one appends a line (see Start), so that CI can tell when fewer ran than before.
//
// Methods of a Node may be called from several goroutines and, by Open, from several processes; those that switch its power exclude each other.
// So may those of a Network.
package lab
