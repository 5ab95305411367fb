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
