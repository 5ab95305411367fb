package system

import (
	"slices"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// bus hears what the node's manager says on the system bus: a witness that has
// nothing to do with the host.
type bus struct {
	conn *dbus.Conn
	done chan struct{}
	// heard, if set, is called for every signal that is kept, after it was kept.
	heard func(what, unit string)

	mu      sync.Mutex
	reloads int
	queued  []string // units, one entry for each job that was queued
}

const managerIface = "org.freedesktop.systemd1.Manager"

// listen connects to the node's bus. heard may be nil.
func (m *machine) listen(t *testing.T, heard func(what, unit string)) *bus {
	t.Helper()
	conn, err := dbus.Dial("unix:path=" + m.Path("/run/dbus/system_bus_socket"))
	require.NoError(t, err)
	require.NoError(t, conn.Auth([]dbus.Auth{dbus.AuthExternal("0")}))
	require.NoError(t, conn.Hello())
	b := &bus{conn: conn, done: make(chan struct{}), heard: heard}
	signals := make(chan *dbus.Signal, 4096)
	conn.Signal(signals)
	require.NoError(t, conn.AddMatchSignal(dbus.WithMatchInterface(managerIface)))
	require.NoError(t, conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").Call(managerIface+".Subscribe", 0).Err)
	go func() {
		defer close(b.done)
		for s := range signals {
			b.take(s)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close() // closes the channel
		<-b.done
	})
	return b
}

func (b *bus) take(s *dbus.Signal) {
	what, unit := "", ""
	switch {
	case s.Name == managerIface+".Reloading" && s.Body[0] == true:
		what = "reload"
	case s.Name == managerIface+".JobNew":
		what, unit = "queued", s.Body[2].(string)
	case s.Name == managerIface+".JobRemoved":
		what, unit = "ended", s.Body[2].(string)
	default:
		return
	}
	b.mu.Lock()
	switch what {
	case "reload":
		b.reloads++
	case "queued":
		b.queued = append(b.queued, unit)
	}
	b.mu.Unlock()
	if b.heard != nil {
		b.heard(what, unit)
	}
}

// count returns how many reloads began, and how many jobs each unit got, since
// the last reset.
func (b *bus) count() (reloads int, jobs map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs = make(map[string]int)
	for _, u := range b.queued {
		jobs[u]++
	}
	return b.reloads, jobs
}

// reset forgets what was heard.
func (b *bus) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reloads, b.queued = 0, nil
}

// jobsOf returns how many jobs the units got in all.
func (b *bus) jobsOf(units ...string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, u := range b.queued {
		if slices.Contains(units, u) {
			n++
		}
	}
	return n
}
