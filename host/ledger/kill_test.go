package ledger

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/plan"
	"stead/host/unit"
)

const writerEnv = "LEDGER_WRITER"

// writeForEver commits numbered transactions and says each one's number once it
// is durable. Every number changes all of the units, so that a half would show.
func writeForEver(path string) {
	l, err := Open(Options{Path: path, Timeout: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	s, err := l.Load()
	if err != nil {
		panic(err)
	}
	for n := s.Declarations["n"].Generation + 1; ; n++ {
		if err := l.Commit(numbered(n)); err != nil {
			panic(err)
		}
		fmt.Println(n)
	}
}

func numbered(n uint64) Tx {
	content := fmt.Sprint("what stood there ", n)
	r := plan.Record{Scope: unit.System, Blobs: blobs(content), Manager: &plan.Manager{Boot: fmt.Sprint(n)}}
	for i := range 20 {
		m := memory(unit.Name(fmt.Sprintf("u%d.service", i)), content)
		m.Generation = n
		r.Put = append(r.Put, m)
	}
	return Tx{Put: []accept.Identity{{Name: "n", Generation: n}}, Held: &accept.Held{Index: fmt.Append(nil, n)}, Record: r}
}

func TestKilledHostLosesNoAcknowledgedCommit(t *testing.T) {
	path := newPath(t)
	total := uint64(0)
	for range 12 {
		said := killWriter(t, path)
		l := openAt(t, path)
		s, err := l.Load()
		require.NoError(t, err)
		n := s.Declarations["n"].Generation
		require.GreaterOrEqual(t, n, said, "an acknowledged commit is gone")
		require.LessOrEqual(t, n, said+1)
		if n > 0 {
			require.Equal(t, fmt.Sprint(n), s.Managers[unit.System].Boot)
			require.Equal(t, fmt.Sprint(n), string(s.Held.Index))
			require.Len(t, s.Units, 20)
		}
		for _, m := range s.Units {
			require.Equal(t, n, m.Generation, "a commit is there by half")
		}
		require.LessOrEqual(t, stored(t, l, blobsBucket), 1)
		require.NoError(t, l.Close())
		total = n
	}
	require.Greater(t, total, uint64(20), "commits")
}

// killWriter lets a process commit, kills it at some moment, and returns the
// last number that it said.
func killWriter(t *testing.T, path string) uint64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "it commits")
	said := lines.Text()
	time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	for lines.Scan() {
		said = lines.Text()
	}
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, cmd.Wait(), "it was killed")
	n, err := strconv.ParseUint(said, 10, 64)
	require.NoError(t, err)
	return n
}
