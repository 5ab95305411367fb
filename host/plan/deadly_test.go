package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// What the manager would die of is neither written nor loaded.
func TestADefinitionThatKillsTheManagerIsRefused(t *testing.T) {
	deadly := func(in *Input) {
		in.Disk.Text.Deadly = "Type=dbus without BusName="
		in.Disk.At[path] = Entry{Kind: Absent}
	}
	d := Decide(scene(deadly))
	require.Equal(t, report.Refused, d.Outcome)
	require.Equal(t, report.BadUnit, d.Reason)
	require.Contains(t, d.Text, "Type=dbus without BusName=")
	require.Contains(t, d.Hint, "BusName=")
	require.Empty(t, d.Steps)

	d = Decide(scene(deadly, func(in *Input) { in.Service.Content = nil }))
	require.NotEqual(t, report.Refused, d.Outcome, "what others wrote was loaded long ago")
}
