package host

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// Hints come on a connection of their own. What it did not bring while it was
// broken is asked for when it is back, also where the other one lived on.
func TestAHintThatWasLostIsMadeUpForWhenTheListenerIsBack(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	hints := w.mesh.Way()
	require.NoError(t, identity.WriteCredentials(filepath.Join(w.path("credentials"), listenerFile),
		w.mesh.Credentials(identity.Listener, "web1", hints)))
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	dialed := w.way.Dialed()

	hints.Kill()
	hints.Swallow(true)
	w.eventually(func() bool { return len(w.host.Status().Source.Warnings) == 1 }, "that hints do not come is not said")
	require.Contains(t, w.host.Status().Source.Warnings[0], "half a minute late")
	require.Empty(t, w.host.Status().Source.Trouble)
	w.declare(sleeper(t, "web", 2))
	hints.Kill()
	hints.Swallow(false)
	w.converged("web", 2)
	require.Equal(t, dialed, w.way.Dialed(), "the other connection was made anew")
}

// A machine that is cut off and shuts down does not wait for its mesh.
func TestAHostThatIsCutOffEndsSoon(t *testing.T) {
	w := newWorld(t)
	w.credentials("web1")
	w.start()
	w.declare(sleeper(t, "web", 1))
	w.converged("web", 1)
	w.way.Swallow(true)
	begun := time.Now()
	w.stop()
	require.Less(t, time.Since(begun), 6*time.Second)
	t.Logf("it ended after %s", time.Since(begun).Round(time.Millisecond))
	w.way.Swallow(false)
}
