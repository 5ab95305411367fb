package controller

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// clocked are uploads whose time a test makes.
func clocked() (*uploads, *time.Time) {
	now := time.Unix(1_800_000_000, 0)
	u := newUploads()
	u.now = func() time.Time { return now }
	return u, &now
}

func part(id string, n, of int, data string) wire.PartRequest {
	return wire.PartRequest{Upload: id, Operation: wire.Apply, Part: n, Of: of, Data: []byte(data)}
}

func TestPartsMakeTheWhole(t *testing.T) {
	u, _ := clocked()
	_, err := subject.ParseOperation(string(u.operation))
	require.NoError(t, err)
	id, err := u.begin("alice")
	require.NoError(t, err)
	for n, data := range []string{"a", "bc"} {
		whole, _, err := u.take("alice", part(id, n+1, 3, data))
		require.NoError(t, err)
		require.False(t, whole)
	}
	whole, data, err := u.take("alice", part(id, 3, 3, "d"))
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, "abcd", string(data))
	require.Equal(t, 4, u.held, "until it is judged")
	u.free(len(data))
	require.Zero(t, u.held)
	_, _, err = u.take("alice", part(id, 3, 3, "d"))
	require.True(t, fault.Is(err, fault.Unavailable), "the last part a second time: %v", err)
}

func TestPartsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		user string
		p    wire.PartRequest
		want fault.Class
	}{
		"another's":            {"bob", part("", 2, 3, "b"), fault.Unavailable},
		"the same part again":  {"alice", part("", 1, 3, "a"), fault.Invalid},
		"a part too early":     {"alice", part("", 3, 3, "c"), fault.Invalid},
		"of another number":    {"alice", part("", 2, 4, "b"), fault.Invalid},
		"of another operation": {"alice", wire.PartRequest{Operation: wire.Withdraw, Part: 2, Of: 3}, fault.Invalid},
	} {
		u, _ := clocked()
		id, err := u.begin("alice")
		require.NoError(t, err)
		_, _, err = u.take("alice", part(id, 1, 3, "a"))
		require.NoError(t, err)
		c.p.Upload = id
		whole, _, err := u.take(c.user, c.p)
		require.False(t, whole, name)
		require.Equal(t, c.want, fault.ClassOf(err), "%s: %v", name, err)
		if c.user == "alice" {
			require.Empty(t, u.open, "%s: the request is over", name)
			require.Zero(t, u.held, name)
		}
	}
	u, _ := clocked()
	id, err := u.begin("alice")
	require.NoError(t, err)
	for _, p := range []wire.PartRequest{part(id, 1, 0, ""), part(id, 0, 0, ""), part("x", 1, 1, "")} {
		_, _, err := u.take("alice", p)
		require.Error(t, err)
	}
}

func TestLargeRequestsAreBounded(t *testing.T) {
	u, now := clocked()
	for range ofOneCaller {
		_, err := u.begin("alice")
		require.NoError(t, err)
	}
	_, err := u.begin("alice")
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	for i := range maxUploads - ofOneCaller {
		_, err := u.begin(fmt.Sprint("o", i))
		require.NoError(t, err)
	}
	_, err = u.begin("late")
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)

	*now = now.Add(uploadIdle + time.Second)
	id, err := u.begin("late")
	require.NoError(t, err, "those that did not go on are forgotten")
	require.Len(t, u.open, 1)

	chunk := string(bytes.Repeat([]byte("x"), 8<<20))
	n := 1
	for ; n <= maxUpload>>23; n++ {
		_, _, err := u.take("late", part(id, n, 99, chunk))
		require.NoError(t, err)
	}
	_, _, err = u.take("late", part(id, n, 99, "x"))
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	require.Zero(t, u.held)

	var last error
	for i := range 3 {
		id, err := u.begin(fmt.Sprint("o", i))
		require.NoError(t, err)
		for n := 1; n <= 5 && last == nil; n++ {
			_, _, last = u.take(fmt.Sprint("o", i), part(id, n, 99, chunk))
		}
	}
	require.True(t, fault.Is(last, fault.Unavailable), "of all together: %v", last)
	require.LessOrEqual(t, u.held, maxHeld)
}
