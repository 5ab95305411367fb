package reconcile

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// The log says what was done and why, of a few units one by one.
func TestTheLogSaysWhatWasDoneAndWhy(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		log := &lines{}
		r.log = slog.New(slog.NewTextHandler(log, nil))
		r.start()
		var set []*shape.Service
		for i := range crowd + 1 {
			set = append(set, service(fmt.Sprintf("u%02d", i), "/bin/sleep infinity"))
		}
		r.declare(set...)
		r.after(5*time.Second).outcome("u00.service", report.Converged, "")
		require.NotContains(t, log.take(), "msg=step")
		r.outside("u00.service", unit.StopJob)
		r.after(5*time.Second).outcome("u00.service", report.Converged, "")
		said := log.take()
		require.Contains(t, said, `msg=step scope=system unit=u00.service action=start object=u00.service reason="stopped from outside; ensure: running"`)
		require.Equal(t, 1, strings.Count(said, "msg=step"), said)
	})
}
