package system

import (
	"bufio"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// The runtime is a hardened service: in a container its /proc states another boot
// than the journal has.
func TestTheJournalIsFollowedThroughTheRuntime(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	n.InstallStead(t)
	say := func(text string) {
		require.NoError(t, n.WriteFile("/etc/systemd/system/talks.service",
			[]byte("[Service]\nType=oneshot\nExecStart=/bin/echo "+text+"\n"), 0o644))
		n.Run(t, "systemctl", "daemon-reload")
		n.Run(t, "systemctl", "start", "talks.service")
		n.Run(t, "journalctl", "--sync")
	}
	n.Run(t, "stead", "up")
	say("first")
	var first string
	t.Run("as it comes", func(t *testing.T) { // its end ends the follower, for which a shutdown would wait
		follow := followed(t, n, "-u", "talks")
		first = follow("first")
		say("second")
		follow("second")
	})

	// Who goes on behind what was said before a reboot misses nothing of either boot.
	require.NoError(t, n.Reboot(t.Context()))
	say("third")
	n.Run(t, "stead", "up")
	follow := followed(t, n, "-u", "talks", "--cursor="+first)
	follow("second")
	follow("third")
	say("fourth")
	follow("fourth")
	follow = followed(t, n, "-u", "talks", "-b")
	follow("third")
	follow("fourth")
}

// followed runs stead journal -f on n. What it returns waits for the next message
// of a program, which must be text, and returns its cursor.
func followed(t *testing.T, n *lab.Node, args ...string) func(text string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := n.Command(ctx, append([]string{"stead", "journal", "-f", "-o", "json"}, args...)...)
	c.WaitDelay, c.Stderr = time.Second, t.Output()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	type entry struct {
		Message string `json:"MESSAGE"`
		By      string `json:"SYSLOG_IDENTIFIER"`
		Cursor  string `json:"__CURSOR"`
	}
	came, read := make(chan entry, 100), make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e entry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.By == "echo" {
				came <- e
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		_ = c.Wait() // it was killed
	})
	return func(text string) string {
		t.Helper()
		select {
		case e := <-came:
			require.Equal(t, text, e.Message)
			return e.Cursor
		case <-time.After(20 * time.Second):
			require.FailNow(t, "nothing comes", "%q is waited for", text)
		}
		return ""
	}
}
