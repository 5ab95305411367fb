package client

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/wire"
)

// server is a controller that answers as a test tells it to.
type server struct {
	mu    sync.Mutex
	asked []string // subjects
	big   int      // the largest payload
	parts map[string][]byte
	// answer is asked first; a nil answer and a nil error go on to what follows.
	answer func(subject string, n int) ([]byte, error)
	took   [][]byte // what was put together of parts, and what came whole
}

func (s *server) Call(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, subject)
	s.big = max(s.big, len(payload))
	if s.answer != nil {
		if reply, err := s.answer(subject, len(s.asked)); reply != nil || err != nil {
			return reply, err
		}
	}
	switch {
	case subject == "mesh.v1.w.upload":
		s.parts = map[string][]byte{"u": nil}
		return json.Marshal(wire.UploadReply{Upload: "u", Operation: "part-1"})
	case subject == "mesh.v1.w.part-1":
		var p wire.PartRequest
		if err := json.Unmarshal(payload, &p); err != nil {
			return nil, err
		}
		s.parts[p.Upload] = append(s.parts[p.Upload], p.Data...)
		if p.Part < p.Of {
			return []byte("{}"), nil
		}
		payload = s.parts[p.Upload]
	}
	s.took = append(s.took, payload)
	return []byte(`{"revision":7}`), nil
}

func unavailable() error {
	return fault.New(fault.Unavailable, "call", "", errors.New("nobody serves it"))
}
func timeout() error { return fault.New(fault.Timeout, "call", "", errors.New("no answer")) }

func TestALargeRequestGoesInParts(t *testing.T) {
	s := &server{}
	text := strings.Repeat("<content> & \"more\"\n", 100_000)
	reply, err := New(s).Apply(t.Context(), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: text}}})
	require.NoError(t, err)
	require.EqualValues(t, 7, reply.Revision)
	require.Less(t, s.big, 1<<20-4096)
	require.Len(t, s.took, 1)
	var got wire.ApplyRequest
	require.NoError(t, json.Unmarshal(s.took[0], &got))
	require.Equal(t, text, got.Files[0].Text)
	require.Equal(t, wire.Version, got.Wire)
	require.Less(t, len(s.took[0]), 2*len(text), "characters of markup stay one byte")
}

func TestWhatWasNotAnsweredIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(_ string, n int) ([]byte, error) {
			return nil, map[int]error{1: unavailable(), 2: timeout(), 3: unavailable()}[n]
		}}
		_, err := New(s).Withdraw(t.Context(), wire.WithdrawRequest{Names: []string{"web"}})
		require.NoError(t, err)
		require.Len(t, s.asked, 4)
	})
}

func TestAPartThatIsLostSendsTheWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(subject string, n int) ([]byte, error) {
			if subject == "mesh.v1.w.part-1" && n == 3 {
				return nil, timeout()
			}
			return nil, nil
		}}
		text := strings.Repeat("x", 3*wire.MaxPart)
		_, err := New(s).Apply(t.Context(), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: text}}})
		require.NoError(t, err)
		require.Len(t, s.took, 1)
		require.Contains(t, string(s.took[0]), text)
	})
}

func TestOtherErrorsAreAnswers(t *testing.T) {
	for _, class := range []fault.Class{fault.Invalid, fault.Refused, fault.Denied, fault.Conflict, fault.Failed, fault.Unsupported} {
		s := &server{answer: func(string, int) ([]byte, error) { return nil, fault.New(class, "apply", "", errors.New("no")) }}
		_, err := New(s).Settings(t.Context(), wire.SettingsRequest{Node: "ws1"})
		require.Equal(t, class, fault.ClassOf(err))
		require.Len(t, s.asked, 1)
	}
}

func TestTheEndOfPatienceSaysWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(_ string, n int) ([]byte, error) {
			if n == 2 {
				return nil, timeout()
			}
			return nil, unavailable()
		}}
		start := time.Now()
		_, err := New(s).Withdraw(t.Context(), wire.WithdrawRequest{})
		require.True(t, fault.Is(err, fault.Timeout), "it may have been done: %v", err)
		require.LessOrEqual(t, time.Since(start), patience)
		require.Greater(t, time.Since(start), patience-2*lastPause)

		s.asked = nil
		_, err = New(s).Events(t.Context(), wire.EventsRequest{})
		require.True(t, fault.Is(err, fault.Unavailable), "a question changes nothing: %v", err)

		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		_, err = New(s).Withdraw(ctx, wire.WithdrawRequest{})
		require.True(t, fault.Is(err, fault.Canceled), "%v", err)
	})
}

func TestPagesAreTakenToTheLast(t *testing.T) {
	s := &server{}
	var after []string
	s.answer = func(string, int) ([]byte, error) { return nil, nil }
	pages := []string{"b", "d", ""}
	s.answer = func(string, int) ([]byte, error) {
		next := pages[0]
		pages = pages[1:]
		return json.Marshal(wire.GetReply{Next: next})
	}
	err := New(s).Get(t.Context(), wire.GetRequest{Kind: wire.Nodes}, func(r wire.GetReply) error {
		after = append(after, r.Next)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "d", ""}, after)

	s.answer = func(string, int) ([]byte, error) { return json.Marshal(wire.GetReply{Next: "b"}) }
	err = New(s).Get(t.Context(), wire.GetRequest{Kind: wire.Nodes}, func(wire.GetReply) error { return nil })
	require.True(t, fault.Is(err, fault.Internal), "%v", err)
	stop := errors.New("enough")
	require.ErrorIs(t, New(s).Get(t.Context(), wire.GetRequest{}, func(wire.GetReply) error { return stop }), stop)
}

func TestProgressOfManyNamesIsOneAnswer(t *testing.T) {
	var sizes []int
	s := &server{}
	s.answer = func(string, int) ([]byte, error) { return nil, nil }
	names := make([]string, 450)
	for i := range names {
		names[i] = strings.Repeat("n", 63)
	}
	ask := callerFunc(func(_ string, payload []byte) ([]byte, error) {
		var r wire.ProgressRequest
		require.NoError(t, json.Unmarshal(payload, &r))
		require.Less(t, len(payload), 64<<10)
		sizes = append(sizes, len(r.Names))
		return json.Marshal(wire.ProgressReply{Revision: uint64(10 - len(sizes)), Names: make([]wire.ProgressOfName, len(r.Names))})
	})
	reply, err := New(ask).Progress(t.Context(), wire.ProgressRequest{Names: names})
	require.NoError(t, err)
	require.Equal(t, []int{200, 200, 50}, sizes)
	require.Len(t, reply.Names, 450)
	require.EqualValues(t, 7, reply.Revision, "of the oldest part")
}

type callerFunc func(subject string, payload []byte) ([]byte, error)

func (f callerFunc) Call(_ context.Context, subject string, payload []byte) ([]byte, error) {
	return f(subject, payload)
}

func TestFollowGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after []uint64
		var troubles int
		n := 0
		ask := callerFunc(func(_ string, payload []byte) ([]byte, error) {
			var r wire.EventsRequest
			require.NoError(t, json.Unmarshal(payload, &r))
			if n++; n > 2 && n < 50 {
				return nil, unavailable()
			}
			after = append(after, r.After)
			return json.Marshal(wire.EventsReply{Next: r.After + 3})
		})
		enough := errors.New("enough")
		err := New(ask).Follow(t.Context(), wire.EventsRequest{Last: 10}, func(r wire.EventsReply) error {
			if r.Next > 9 {
				return enough
			}
			return nil
		}, func(error) { troubles++ })
		require.ErrorIs(t, err, enough)
		require.Equal(t, []uint64{0, 3, 6, 9}, after)
		require.Positive(t, troubles)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, New(ask).Follow(ctx, wire.EventsRequest{}, nil, nil))
	})
}

func TestWhatIsNoTextIsNotSent(t *testing.T) {
	s := &server{}
	_, err := New(s).Apply(t.Context(), wire.ApplyRequest{Files: []wire.File{{Name: "a.yaml", Text: "a\xffb"}}})
	require.True(t, fault.Is(err, fault.Invalid))
	require.ErrorContains(t, err, "a.yaml")
	_, err = New(s).Apply(t.Context(), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: strings.Repeat("x", (maxParts+1)*wire.MaxPart)}}})
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	require.Empty(t, s.asked)
}
