package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/subject"
)

// serving is the operation of errors that a service answers with in place of its
// tool.
const serving = "call"

// noAnswer is why a node is silent that was asked.
const noAnswer = "no answer in time"

// together is how many nodes are called at one time.
const together = 64

// verbCaller is a connection to the mesh, as calling verbs takes it.
type verbCaller interface {
	Insist(ctx context.Context, subject string, payload []byte) ([]byte, error)
	CallAll(ctx context.Context, subject string, payload []byte, take func(mesh.Reply) bool) error
	Follow(ctx context.Context, subject string, o mesh.FollowOptions) error
}

// Verbs calls the verbs of seats. It may be used by any number of goroutines. A
// call of one node is asked again, under its name, until it is answered; the node
// does it once. What nobody answers is not called anew: who does not know whether
// an act was done looks.
type Verbs struct {
	conn verbCaller
}

// NewVerbs returns a caller on a connection, which stays the caller's to close.
func NewVerbs(conn verbCaller) *Verbs { return &Verbs{conn} }

// Verb is one callable of a seat. Class must be that of the seat's verb.
type Verb struct {
	Class subject.Class
	Seat  subject.Seat
	Name  subject.Verb
}

// On is the subject of the verb on node.
func (v Verb) On(node subject.Node) string { return subject.ForVerb(v.Class, node, v.Seat, v.Name) }

// Answer is what became of a call on one node.
type Answer struct {
	Node   subject.Node
	Reply  json.RawMessage
	Silent string // why there is no answer; "" when there is one
	Err    error  // that the node answered with, or why it was not asked
}

// Call calls v on one node, with arguments that encode to an object. A node that
// does not answer by ctx's deadline, or that nobody comes to serve it on, is
// Silent: "it may have been done" says so, and nothing was done where that is
// missing.
func (s *Verbs) Call(ctx context.Context, v Verb, node subject.Node, arguments any) Answer {
	payload, err := encode(arguments)
	if err != nil {
		return Answer{Node: node, Err: fault.New(fault.Internal, string(v.Name), "", err)}
	}
	return s.call(ctx, v, node, payload)
}

func (s *Verbs) call(ctx context.Context, v Verb, node subject.Node, payload []byte) Answer {
	to := v.On(node)
	reply, err := s.conn.Insist(ctx, to, payload)
	if err == nil {
		return answered(v, node, reply, nil)
	}
	if why := unreached(v, to, err); why != "" {
		return Answer{Node: node, Silent: why}
	}
	return answered(v, node, nil, err)
}

// unreached says why nobody answered at to; "" when somebody did, or when nobody
// was asked. Who was not reached is told apart from who answers so by the
// object, which is the subject: no tool knows it. A service that says in place of
// its tool that the time is up has no answer either; which of the two comes is
// chance.
func unreached(v Verb, to string, err error) string {
	var f *fault.Error
	switch {
	case !errors.As(err, &f):
		return ""
	case f.Class == fault.Unavailable && f.Object == to:
		return f.Unwrap().Error()
	case f.Class != fault.Timeout || f.Object != to && f.Op != serving:
		return ""
	case v.Class == subject.Write:
		return noAnswer + "; it may have been done"
	}
	return noAnswer
}

// answered is the answer of a node. One that is no JSON is an error.
func answered(v Verb, node subject.Node, reply []byte, err error) Answer {
	if why := unreached(v, "", err); why != "" {
		return Answer{Node: node, Silent: why}
	}
	if err == nil && !json.Valid(reply) {
		err = fault.New(fault.Internal, "call", string(node), errors.New("the answer is no JSON"))
	}
	if err != nil {
		return Answer{Node: node, Err: err}
	}
	return Answer{Node: node, Reply: reply}
}

// CallEach calls v on each of nodes, many at a time, and hands the answers to
// take as they come, one after the other. It returns when each was handed over.
// Nobody but nodes is asked.
func (s *Verbs) CallEach(ctx context.Context, v Verb, nodes []subject.Node, arguments any, take func(Answer)) {
	payload, err := encode(arguments)
	if err != nil {
		err = fault.New(fault.Internal, string(v.Name), "", err)
	}
	var all sync.WaitGroup
	answers := make(chan Answer)
	places := make(chan struct{}, together)
	for _, node := range nodes {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err != nil {
				answers <- Answer{Node: node, Err: err}
				return
			}
			answers <- s.call(ctx, v, node, payload)
		})
	}
	for range nodes {
		take(<-answers)
	}
	all.Wait()
}

// Gather asks everybody for v, in one message, and hands the answers of nodes to
// take as they come; those of others are passed over. It returns when each of
// nodes was handed over: those that did not answer by ctx's deadline as silent,
// in their order. The error is that of the connection: nobody was asked, or
// answers were lost, and the nodes that are missing were not handed over.
func (s *Verbs) Gather(ctx context.Context, v Verb, nodes []subject.Node, arguments any, take func(Answer)) error {
	payload, err := encode(arguments)
	if err != nil {
		return fault.New(fault.Internal, string(v.Name), "", err)
	}
	open := make(map[subject.Node]bool, len(nodes))
	for _, node := range nodes {
		open[node] = true
	}
	if len(open) == 0 {
		return nil
	}
	err = s.conn.CallAll(ctx, v.On(subject.All), payload, func(r mesh.Reply) bool {
		if node := subject.Node(r.From); open[node] {
			delete(open, node)
			take(answered(v, node, r.Payload, r.Err))
		}
		return len(open) > 0
	})
	why := unreached(v, v.On(subject.All), err)
	if err != nil && why == "" {
		return err
	}
	if err == nil {
		why = noAnswer
	}
	for _, node := range nodes {
		if open[node] {
			take(Answer{Node: node, Silent: why})
		}
	}
	return nil
}

// Stream is what is followed on a node.
type Stream struct {
	Node subject.Node
	// Arguments are those of the call for the stream behind cursor; "" is its
	// beginning.
	Arguments func(cursor string) any
	// Take is given each chunk, one after the other. An error of it ends the stream.
	Take func(reply json.RawMessage) error
	// Lost is told why the stream was lost, each time that it is asked for again.
	Lost func(error)
}

// Follow follows v on one node until the stream or ctx ends, or Take returns an
// error. A stream that is lost is asked for again, for ever, behind the last
// chunk that was taken. The answer has no reply: it is silent when the node was
// not reached in the first place, and Err is why the stream ended otherwise; nil
// at its end, and when ctx was canceled.
func (s *Verbs) Follow(ctx context.Context, v Verb, of Stream) Answer {
	if _, err := encode(of.Arguments("")); err != nil {
		return Answer{Node: of.Node, Err: fault.New(fault.Internal, string(v.Name), "", err)}
	}
	to := v.On(of.Node)
	err := s.conn.Follow(ctx, to, mesh.FollowOptions{
		Patience: -1,
		Lost:     of.Lost,
		Request: func(cursor string) []byte {
			// It is of the same kind as the first one, which was encoded.
			payload, _ := encode(of.Arguments(cursor))
			return payload
		},
		Take: func(c mesh.Chunk) error { return of.Take(c.Payload) },
	})
	switch why := unreached(v, to, err); {
	case fault.Is(err, fault.Canceled) && ctx.Err() != nil:
		return Answer{Node: of.Node}
	case why != "":
		return Answer{Node: of.Node, Silent: why}
	}
	return Answer{Node: of.Node, Err: err}
}
