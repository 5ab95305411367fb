package lab

import "fmt"

// Upper is the overlay's upper folder as seen from outside: all that differs between the node's disk and Root, deletions as character devices
// 0:0. It outlives reboots and is there while the node is off. For reading only.
func (n *Node) Upper() string {
	return fmt.Sprintf("/proc/%d/root%s", n.snapshot().Keeper.PID, n.dir.file("disk/upper"))
}

// Disk is the path, from outside, of a file on the node's disk. Unlike Path it is there while the node is off, and shows what lies below the
// node's mounts of /run, /tmp, /dev, /proc and /sys.
func (n *Node) Disk(inside string) string {
	return fmt.Sprintf("/proc/%d/root%s%s", n.snapshot().Keeper.PID, n.dir.file("root"), inside)
}
