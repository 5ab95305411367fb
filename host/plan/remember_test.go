package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A look is several calls: it can show the invocation of a new run with the
// start of the old one.
func TestATornLookIsPutRightByTheNextOne(t *testing.T) {
	in := scene()
	in.Disk.Loaded, in.Memory.Loaded = "L2", Loaded{Digest: "L2", Boot: "b", At: time.Hour}
	in.Status.Invocation, in.Status.Started = "i2", time.Minute
	in.Memory, _ = Remember(in)
	require.Equal(t, Taken{Digest: "L1", Invocation: "i2"}, in.Memory.Taken)

	in.Status.Started = time.Hour + time.Second
	m, changed := Remember(in)
	require.True(t, changed)
	require.Equal(t, Taken{Digest: "L2", Invocation: "i2"}, m.Taken, "it began after its definition was loaded")
}

// Somebody's bytes may have been loaded, and run, while nobody looked: what was
// loaded when is not known again until the reload that puts them right.
func TestARunThatBeganAmongOtherBytesHasNotTakenOursIn(t *testing.T) {
	in := scene()
	in.Memory.Loaded = Loaded{Digest: "L1", Boot: "b", At: time.Minute}
	in.Memory.Taken = Taken{Digest: "L1", Invocation: "i1"}
	in.Disk.Loaded, in.Status.Invocation, in.Status.Started = "theirs", "i2", time.Hour
	in.Memory, _ = Remember(in)

	in.Disk.Loaded = "L1"
	in.Track.ReloadedFor = Definition(in.Disk)
	in.Memory, _ = Remember(in)
	require.True(t, pending(in), "it runs what they wrote")
	require.Equal(t, in.Clock.Monotonic, in.Memory.Loaded.At)

	in.Status.Invocation, in.Status.Started = "i3", in.Clock.Monotonic+time.Second
	in.Memory, _ = Remember(in)
	require.False(t, pending(in))
}

// Nobody's run is stale because stead itself changed its files.
func TestARunKeepsWhatItHasTakenInWhileFilesChange(t *testing.T) {
	in := scene()
	in.Memory.Loaded = Loaded{Digest: "L1", Boot: "b", At: time.Minute}
	in.Memory.Taken = Taken{Digest: "L1", Invocation: "i1"}
	in.Disk.Loaded, in.Status.Invocation, in.Status.Started = "theirs", "i1", time.Hour
	in.Memory, _ = Remember(in)
	in.Disk.Loaded = "L1"
	in.Track.ReloadedFor = Definition(in.Disk)
	in.Memory, _ = Remember(in)
	require.False(t, pending(in), "it was started before they wrote")
}
