package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stead/host/fault"
	"stead/host/systemd"
	"stead/host/unit"
)

// Manager is this machine's service manager, for as long as somebody sets up.
type Manager struct {
	m    *systemd.Manager
	stop context.CancelFunc
	done chan error
}

// Dial connects to the system manager. The caller closes it.
func Dial(ctx context.Context, log *slog.Logger) (*Manager, error) {
	m, err := systemd.New(systemd.Options{Scope: unit.System, Logger: log})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Manager{m: m, stop: stop, done: make(chan error, 1)}
	go func() { s.done <- m.Run(ctx) }()
	if _, err := m.Version(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the connection.
func (s *Manager) Close() {
	s.stop()
	<-s.done //nolint:errcheck // Run returns nil when it is ended
}

// Path is where the manager looks for unit files.
func (s *Manager) Path(ctx context.Context) ([]string, error) { return s.m.UnitPath(ctx) }

// Reload makes the manager read its unit files anew.
func (s *Manager) Reload(ctx context.Context) error {
	_, err := s.m.Reload(ctx)
	return err
}

// Start starts a unit, or restarts it, and waits until its job ended. The error
// says how, and what systemd says of the unit.
func (s *Manager) Start(ctx context.Context, name unit.Name, restart bool) error {
	kind := unit.StartJob
	if restart {
		kind = unit.RestartJob
	}
	s.m.Drain()
	queued := s.m.Enqueue(ctx, []unit.JobRequest{{Name: name, Type: kind}})[0]
	if queued.Err != nil {
		return queued.Err
	}
	result, err := s.wait(ctx, queued.ID)
	if err != nil || result == unit.JobDone {
		return err
	}
	why := fmt.Errorf("its job ended as %q", string(result))
	if st, err := s.m.Observe(ctx, []unit.Name{name}); err == nil {
		why = fmt.Errorf("its job ended as %q; it is %s (%s)", string(result), st[0].Active, st[0].Sub)
	}
	return fault.New(fault.Failed, "start", string(name), why).WithHint("journalctl -u " + string(name) + " -n 30")
}

// wait waits for the end of a job, which is told once.
func (s *Manager) wait(ctx context.Context, id uint32) (unit.JobResult, error) {
	ended := map[uint32]unit.JobResult{}
	for {
		for _, j := range s.m.Drain().Jobs {
			ended[j.ID] = j.Result
		}
		if r, ok := ended[id]; ok {
			return r, nil
		}
		select {
		case <-s.m.Wake():
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", fault.New(fault.Timeout, "wait for a job", "", errors.Join(errors.New("it has not ended"), ctx.Err()))
		}
	}
}
