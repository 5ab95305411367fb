package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
)

// fakeStream is a caller who takes so many chunks and goes.
type fakeStream struct {
	most   int
	chunks []string
	gone   error
}

func (s *fakeStream) Limit() int { return 1 << 20 }

func (s *fakeStream) Ready() error {
	if len(s.chunks) == s.most {
		return s.gone
	}
	return nil
}

func (s *fakeStream) Send(payload []byte, cursor string) error {
	if err := s.Ready(); err != nil {
		return err
	}
	s.chunks = append(s.chunks, cursor+" "+string(payload))
	return nil
}

func journalOf(lines ...string) *fakeNode {
	web := service("web.service", "www.service")
	web.lines = lines
	old := service("old.service").state(unit.Inactive, "dead")
	old.Load, old.lines = unit.NotFound, []string{"of a unit that is gone"}
	return newFakeNode(web, old)
}

func TestJournalIsReadAsAsked(t *testing.T) {
	f := journalOf("one", "two")
	n := 7
	a := seats.JournalArguments{Unit: "www", Lines: &n, Since: "-1h", Until: "now", Priority: "err", Grep: "o", Boot: "0", Cursor: "s=1;i=2"}
	reply, err := ask[seats.JournalReply](f.rig(t), seats.Journal, a)
	require.NoError(t, err)
	require.Equal(t, []json.RawMessage{json.RawMessage(`{"MESSAGE":"one"}`), json.RawMessage(`{"MESSAGE":"two"}`)}, reply.Entries)
	a.Unit = "web.service"
	require.Equal(t, []seats.JournalArguments{a}, f.queried, "by the name that the entries carry, and nothing else is changed")
	for _, all := range []string{"", "web*", "job@.service"} {
		_, err = ask[seats.JournalReply](f.rig(t), seats.Journal, seats.JournalArguments{Unit: all})
		require.NoError(t, err)
		require.Equal(t, all, f.queried[len(f.queried)-1].Unit)
	}
}

func TestJournalOfAUnitThatNobodyKnows(t *testing.T) {
	f := journalOf()
	r := f.rig(t)
	_, err := ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "wbe"})
	requireFault(t, err, fault.NotFound, "journal: wbe.service: there is no such unit in system scope", "did you mean web.service?")
	err = r.d.Follow(t.Context(), request(t, seats.Journal, seats.JournalArguments{Unit: "wbe", Follow: true}), &fakeStream{most: 1})
	requireFault(t, err, fault.NotFound, "journal: wbe.service: there is no such unit in system scope", "did you mean web.service?")
	require.Zero(t, f.calls["Stream"])

	reply, err := ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "web"})
	require.NoError(t, err)
	require.Empty(t, reply.Entries, "it has said nothing yet")
	reply, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "old"})
	require.NoError(t, err)
	require.Len(t, reply.Entries, 1)
	f.fails["Details"] = errors.New("no bus")
	_, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "old"})
	require.NoError(t, err, "the journal is there when systemd does not answer")
	f.fails["Read"] = fault.New(fault.Denied, "read", "journal", errors.New("insufficient permissions"))
	_, err = ask[seats.JournalReply](r, seats.Journal, seats.JournalArguments{Unit: "old"})
	requireFault(t, err, fault.Denied, "read: journal: insufficient permissions", "")
}

func TestJournalIsFollowedUntilItsCallerGoes(t *testing.T) {
	f := journalOf("one", "two")
	r := f.rig(t)
	follow := request(t, seats.Journal, seats.JournalArguments{Unit: "www", Follow: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &fakeStream{most: 5}
	ended := make(chan error, 1)
	go func() { ended <- r.d.Follow(ctx, follow, s) }()
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.calls["Stream"] == 1
	}, 10*time.Second, time.Millisecond)
	cancel()
	require.Equal(t, fault.Canceled, fault.ClassOf(<-ended))
	require.Equal(t, []string{`i=1 {"entries":[{"MESSAGE":"one"},{"MESSAGE":"two"}],"cursor":"i=1"}`}, s.chunks)

	gone := fault.New(fault.Canceled, "send", "journal", errors.New("the caller is gone"))
	require.Equal(t, gone, r.d.Follow(t.Context(), follow, &fakeStream{gone: gone}))
	require.Equal(t, 1, f.calls["Stream"], "nothing is read for a caller without room")
}

func TestFollowedJournalIsNoPage(t *testing.T) {
	_, err := ask[seats.JournalReply](journalOf().rig(t), seats.Journal, seats.JournalArguments{Follow: true})
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}
