package server

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"stead/mesh"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/tool"
)

// How NATS service discovery shows a node, besides its name.
const (
	serviceName        = "stead-node"
	serviceDescription = "a node of a stead mesh: the verbs of the seats that it holds"
)

// released is a version as NATS services must have it: of three numbers, and
// perhaps more behind them. Clients pass over a service that has another one.
var released = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
})

// serving answers calls of what is held at the moment.
type serving struct {
	node    subject.Node
	version string
	built   built
	calls   *tool.Dispatcher
	log     *slog.Logger

	mu    sync.Mutex // guards what follows
	tools []tool.Tool
	units []wire.DeclaredUnit
	wake  chan struct{} // capacity one: tools are others
}

// Units are what is declared for this node.
func (s *serving) Units() []wire.DeclaredUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units
}

// serve takes over what is to be served from now on.
func (s *serving) serve(t *wire.Tools) {
	tools, troubles := s.built.held(t)
	for _, err := range troubles {
		s.log.Error("seat is not served", "error", err)
	}
	if err := s.calls.Serve(tools); err != nil {
		s.log.Error("what is served stays as it is", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = t.Units
	if !slices.EqualFunc(s.tools, tools, sameEndpoint) {
		s.log.Info("serving", "node", s.node, "verbs", len(tools))
		s.tools = tools
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// sameEndpoint is whether two tools of this program have the same endpoints.
func sameEndpoint(a, b tool.Tool) bool {
	return a.Seat == b.Seat && a.Is.Name == b.Is.Name && a.Module == b.Module
}

func (s *serving) now() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// run answers calls on conn until ctx ends. When other verbs are held than before
// the service ends, its calls answered, and another one begins: two at a time
// would both do what all nodes are asked.
func (s *serving) run(ctx context.Context, conn *mesh.Conn) error {
	for ctx.Err() == nil {
		tools := s.now()
		if len(tools) == 0 {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		if err := s.with(ctx, conn, tools); err != nil {
			return err
		}
	}
	return nil
}

func (s *serving) with(ctx context.Context, conn *mesh.Conn, tools []tool.Tool) error {
	service, err := mesh.NewService(conn, mesh.ServiceOptions{
		Name: serviceName, Description: serviceDescription, Node: string(s.node), Version: semantic(s.version),
		Endpoints: endpoints(s.node, tools, s.calls), Discover: callers(subject.Read), Logger: s.log,
	})
	if err != nil {
		return err
	}
	ctx, others := context.WithCancel(ctx)
	defer others()
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
			if !slices.EqualFunc(tools, s.now(), sameEndpoint) {
				others()
			}
		}
	})
	err = service.Run(ctx)
	ended := ctx.Err() != nil
	others()
	wait.Wait()
	if err != nil && ended {
		// Its calls were answered, with "may have been done".
		s.log.Warn("calls were cut short", "error", err)
		return nil
	}
	return err
}

// semantic is version as NATS services have it, 0.0.0 when it is not one.
func semantic(version string) string {
	if v := strings.TrimPrefix(version, "v"); released().MatchString(v) {
		return v
	}
	return "0.0.0"
}
