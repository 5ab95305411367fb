// Package server assembles the two processes of a node that serve what people
// ask of it: the runtime, which has no rights, and its root helper.
//
// The runtime has two connections to the mesh. By the one it asks controllers
// what it is to serve, files claims, and tells the audit what was called; on the
// other it is called, as the NATS service stead-node with an endpoint for each
// verb that it holds: one for the node itself, and one for all nodes. What it
// served last it serves again when it starts, without mesh, controllers or host.
//
// Credentials are read at the start, and again for every attempt to connect, so
// renewed ones are taken up. Those of another node or mesh end the runtime, which
// its unit then starts anew.
//
// New checks and starts nothing; Run blocks until its context ends. It then takes
// no more calls, lets those that run be answered for five seconds, and ends the
// connections and the audit behind them. Errors of Run are those after which a
// runtime cannot go on. Help is the root helper as its socket starts it.
package server
