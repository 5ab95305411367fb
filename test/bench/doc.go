// Package bench measures the host, and the seat of a node as people ask it, against
// floors: bare programs that make the same calls and know nothing of declarations or
// of a mesh. Floor and ours take turns on the same machine in one run, and what is
// printed is their ratio; no absolute time passes or fails. A row over its limit says
// so, and a benchmark fails only when something did not work.
//
// It owns the lab nodes that it boots, each with a real systemd, and leaves
// nothing behind. The test binary runs itself inside a node for all that must be
// done there: TestMain tells the two apart. How often floor and ours take turns
// is for the row to say, except with -benchtime Nx, which means N times.
//
// A node's disk is in memory, so what syncs cost on a real disk is in no row;
// the host makes one of the ledger for each pass that acts, and two of the unit
// folders for each that writes.
package bench
