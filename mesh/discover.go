package mesh

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// Statistics are what an endpoint has done since the service was made.
type Statistics struct {
	Calls   int // answered, errors included
	Failed  int // of them, with an error
	Busy    int // of them, because the endpoint was full
	Dropped int // not answered, because the caller may not call
	Running int // handlers at this moment
	Waiting int // calls that wait for one
	Streams int // that run at this moment
	Last    string
	Spent   time.Duration // by handlers
}

// Statistics returns those of each endpoint by its name.
func (s *Service) Statistics() map[string]Statistics {
	all := map[string]Statistics{}
	for _, e := range s.ends {
		all[e.Name] = e.statistics()
	}
	return all
}

func (e *endpoint) statistics() Statistics {
	out := Statistics{Running: int(e.running.Load()), Waiting: int(e.waiting.Load()), Streams: len(e.flows)}
	e.count(func(c *counts) {
		out.Calls, out.Failed, out.Busy, out.Dropped, out.Last, out.Spent = c.calls, c.failed, c.busy, c.dropped, c.last, c.spent
	})
	return out
}

// discover answers the questions of NATS service discovery in the form of
// nats.go's package micro. That package is not used to serve: it runs the calls
// of an endpoint one after the other, cannot say when it is drained, and hangs
// itself into the connection's handlers.
func (s *Service) discover(nc *nats.Conn) ([]*nats.Subscription, error) {
	var subs []*nats.Subscription
	if len(s.o.Discover) == 0 {
		return nil, nil
	}
	for verb, tell := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: s.identity(), Type: micro.PingResponseType} },
		micro.InfoVerb:  s.info,
		micro.StatsVerb: s.stats,
	} {
		for _, to := range [][2]string{{"", ""}, {s.o.Name, ""}, {s.o.Name, s.id}} {
			subject, err := micro.ControlSubject(verb, to[0], to[1])
			if err != nil {
				return subs, err
			}
			sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
				if _, err := s.c.caller(m, s.o.Discover); err != nil {
					return
				}
				if text, err := json.Marshal(tell()); err == nil {
					_ = m.Respond(text)
				}
			})
			if err != nil {
				return subs, err
			}
			subs = append(subs, sub)
		}
	}
	return subs, nil
}

func (s *Service) identity() micro.ServiceIdentity {
	return micro.ServiceIdentity{Name: s.o.Name, ID: s.id, Version: s.o.Version, Metadata: map[string]string{"node": s.o.Node}}
}

func (s *Service) info() any {
	out := micro.Info{ServiceIdentity: s.identity(), Type: micro.InfoResponseType, Description: s.o.Description}
	for _, e := range s.ends {
		out.Endpoints = append(out.Endpoints, micro.EndpointInfo{Name: e.Name, Subject: e.Subject, QueueGroup: e.Queue, Metadata: e.Metadata})
	}
	return out
}

func (s *Service) stats() any {
	out := micro.Stats{ServiceIdentity: s.identity(), Type: micro.StatsResponseType, Started: s.started}
	for _, e := range s.ends {
		n := e.statistics()
		one := &micro.EndpointStats{
			Name: e.Name, Subject: e.Subject, QueueGroup: e.Queue,
			NumRequests: n.Calls, NumErrors: n.Failed, LastError: n.Last, ProcessingTime: n.Spent,
		}
		if n.Calls > 0 {
			one.AverageProcessingTime = n.Spent / time.Duration(n.Calls)
		}
		out.Endpoints = append(out.Endpoints, one)
	}
	return out
}
