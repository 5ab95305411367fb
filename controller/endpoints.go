package controller

import (
	"time"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// queue is shared by all controllers: each call goes to one of them.
const queue = "controllers"

// largeFor is how long a large request may take, from its last part on.
const largeFor = 2 * time.Minute

// drainFor is how long a controller that ends waits for what it took.
const drainFor = 10 * time.Second

// What runs at one time and what waits. All nodes ask at once when a server comes
// back or an apply goes to all: each of them is answered in a millisecond or
// after one write to the disk, so a place in the queue costs little. More at one
// time would not make it faster, and keep from its turn who reads what comes in.
const (
	nodesTogether = 24
	nodesWaiting  = 8192
	// syncsTogether wait for a commit: another controller's, at most two seconds, or
	// the one that makes records for all nodes that are new.
	syncsTogether = 1024
	readsTogether = 8
	peopleWaiting = 256
	// followTogether are the events that are waited for, each for up to 20 s.
	followTogether = 512
)

// ofNodes are what nodes ask. They have a connection of their own: whatever a
// thousand nodes send at once, mesh state and people are not cut off by it.
func (d *desk) ofNodes() []mesh.Endpoint {
	sync := d.ofNode(subject.Sync, answer(func(r *wire.SyncRequest) int { return r.Wire }, d.sync))
	profile := d.ofNode(subject.Profile, answer(func(r *wire.Profile) int { return r.Wire }, d.profiled))
	tools := d.ofNode(subject.Tools, answer(func(r *wire.ToolsRequest) int { return r.Wire }, d.tools))
	sync.Together, profile.Together, tools.Together = syncsTogether, syncsTogether, syncsTogether
	return []mesh.Endpoint{
		sync, profile, tools,
		d.ofNode(subject.Claim, answer(func(r *wire.ClaimRequest) int { return r.Wire }, d.claim)),
		d.ofNode(subject.Body, answer(func(r *wire.BodyRequest) int { return r.Wire }, d.body)),
		d.ofNode(subject.Report, answer(func(r *wire.ReportBatch) int { return r.Wire }, d.report)),
		d.ofNode(subject.Event, answer(func(r *wire.EventBatch) int { return r.Wire }, d.event)),
	}
}

// ofPeople are what people ask.
func (d *desk) ofPeople() []mesh.Endpoint {
	events := ofPeople(subject.Read, wire.Events, answer(func(r *wire.EventsRequest) int { return r.Wire }, d.events))
	events.Together, events.Timeout = followTogether, followFor+10*time.Second
	parts := ofPeople(subject.Write, d.uploads.operation, answer(nil, d.part))
	parts.Queue, parts.Timeout = "", largeFor // of this controller alone
	all := []mesh.Endpoint{
		ofPeople(subject.Read, wire.Get, answer(func(r *wire.GetRequest) int { return r.Wire }, d.get)),
		ofPeople(subject.Read, wire.Progress, answer(func(r *wire.ProgressRequest) int { return r.Wire }, d.progress)),
		events,
		ofPeople(subject.Write, wire.Upload, answer(nil, d.upload)),
		parts,
	}
	for operation, handle := range d.changing() {
		all = append(all, ofPeople(subject.Write, operation, handle))
	}
	return all
}

// changing are the operations that change mesh state, and that may come in parts.
func (d *desk) changing() map[subject.Operation]mesh.Handler {
	return map[subject.Operation]mesh.Handler{
		wire.Apply:    answer(func(r *wire.ApplyRequest) int { return r.Wire }, d.apply),
		wire.Withdraw: answer(func(r *wire.WithdrawRequest) int { return r.Wire }, d.withdraw),
		wire.Settings: answer(func(r *wire.SettingsRequest) int { return r.Wire }, d.settings),
		wire.PauseOne: answer(func(r *wire.PauseRequest) int { return r.Wire }, d.pause),
	}
}

// ofNode is a topic that nodes ask.
func (d *desk) ofNode(t subject.Topic, h mesh.Handler) mesh.Endpoint {
	return mesh.Endpoint{
		Name: string(t), Subject: subject.TopicPattern(subject.Any, t), Queue: queue, Accounts: []identity.Account{identity.HOST},
		Handler: d.fromNode(t, h), Timeout: 20 * time.Second, Together: nodesTogether, Waiting: nodesWaiting,
	}
}

// ofPeople is an operation that people ask.
func ofPeople(c subject.Class, o subject.Operation, h mesh.Handler) mesh.Endpoint {
	e := mesh.Endpoint{
		Name: string(o), Subject: subject.ForOperation(c, o), Queue: queue, Accounts: []identity.Account{identity.OPS},
		Handler: fromPeople(c, h), Timeout: 60 * time.Second, Together: 2 * readsTogether, Waiting: peopleWaiting,
	}
	e.Signed = c == subject.Write // what changes the mesh rests on no word of the NATS servers
	if c == subject.Read {
		e.Accounts = append(e.Accounts, identity.VIEW)
		e.Timeout, e.Together = 20*time.Second, readsTogether
	}
	return e
}
