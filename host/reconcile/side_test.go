package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestSideWorkWaitsForJobsButNotForEver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &side{}
	require.Zero(t, s.due(now, 0), "nothing is wanted")
	s.verify = map[unit.Name]string{"a.service": "/a.service"}
	require.Equal(t, now.Add(sideHold), s.due(now, 3), "jobs are in flight")
	later := now.Add(time.Second)
	require.Equal(t, now.Add(sideHold), s.due(later, 3), "it is held back once, whatever else comes to be wanted")
	require.Equal(t, later, s.due(later, 0), "they are over")
	s.busy = true
	require.Zero(t, s.due(later, 0), "one batch at a time")
}
