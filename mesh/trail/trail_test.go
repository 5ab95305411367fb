package trail_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/trail"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func open(t *testing.T, c *mesh.Conn, o trail.Options) *trail.Trail {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	tr, err := trail.Open(t.Context(), c, o)
	require.NoError(t, err)
	return tr
}

func alone(t *testing.T, o trail.Options) (*meshtest.Mesh, *mesh.Conn, *trail.Trail) {
	t.Helper()
	m := meshtest.New(t)
	c := m.Connect(identity.Controller, "c1")
	return m, c, open(t, c, o)
}

func event(node string, n int) wire.Event {
	return wire.Event{ID: fmt.Sprintf("%s-%d", node, n), At: time.Now().UTC(), Source: "host", Node: node, Kind: "started", Text: fmt.Sprint(n)}
}

func some(node string, from, to int) (all []wire.Event) {
	for n := from; n <= to; n++ {
		all = append(all, event(node, n))
	}
	return all
}

func page(t *testing.T, tr *trail.Trail, r wire.EventsRequest) wire.EventsReply {
	t.Helper()
	reply, err := tr.Page(t.Context(), r)
	require.NoError(t, err)
	return reply
}

// all reads page after page.
func all(t *testing.T, tr *trail.Trail, r wire.EventsRequest) (texts []string, pages int) {
	t.Helper()
	for {
		reply := page(t, tr, r)
		pages++
		for _, e := range reply.Events {
			texts = append(texts, e.Node+"/"+e.Text)
		}
		if !reply.More {
			return texts, pages
		}
		require.Greater(t, reply.Next, r.After, "a page comes on")
		r.After, r.Last = reply.Next, 0
	}
}

func TestEventsAreReadInTheOrderInWhichTheyWereStored(t *testing.T) {
	_, _, tr := alone(t, trail.Options{})
	reply := page(t, tr, wire.EventsRequest{})
	require.Empty(t, reply.Events)
	require.False(t, reply.More)

	require.NoError(t, tr.Append(t.Context(), some("ws1", 1, 700)...))
	require.NoError(t, tr.Append(t.Context(), event("", 1), event("ws2", 1)))
	require.NoError(t, tr.Append(t.Context(), some("ws1", 701, 705)...))
	require.NoError(t, tr.Append(t.Context()))
	texts, _ := all(t, tr, wire.EventsRequest{})
	require.Len(t, texts, 707)
	for i := range 700 {
		require.Equal(t, fmt.Sprintf("ws1/%d", i+1), texts[i])
	}
	require.Equal(t, []string{"ws1/700", "/1", "ws2/1", "ws1/701"}, texts[699:703])

	reply = page(t, tr, wire.EventsRequest{After: 703})
	require.Len(t, reply.Events, 4)
	require.Equal(t, "702", reply.Events[0].Text)
	require.EqualValues(t, 707, reply.Next)
	texts, _ = all(t, tr, wire.EventsRequest{Node: "ws2"})
	require.Equal(t, []string{"ws2/1"}, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Node: "ws1"})
	require.Len(t, texts, 705)
	texts, _ = all(t, tr, wire.EventsRequest{Node: "ws3"})
	require.Empty(t, texts)
	require.EqualValues(t, 707, page(t, tr, wire.EventsRequest{Node: "ws3"}).Next, "what does not fit is not looked at again")
}

func TestEventsAreNarrowed(t *testing.T) {
	_, _, tr := alone(t, trail.Options{})
	start := time.Now().Add(-time.Hour).UTC()
	for i := range 20 {
		e := event("ws1", i)
		e.At, e.Declaration, e.Unit = start.Add(time.Duration(i)*time.Minute), fmt.Sprintf("d%d", i%4), fmt.Sprintf("u%d.service", i%5)
		require.NoError(t, tr.Append(t.Context(), e))
	}
	texts, _ := all(t, tr, wire.EventsRequest{Declaration: "d1"})
	require.Equal(t, []string{"ws1/1", "ws1/5", "ws1/9", "ws1/13", "ws1/17"}, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Unit: "u0.service", Declaration: "d1"})
	require.Equal(t, []string{"ws1/5"}, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Since: start.Add(18 * time.Minute)})
	require.Equal(t, []string{"ws1/18", "ws1/19"}, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Since: time.Now().Add(time.Hour)})
	require.Empty(t, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Since: start.Add(18 * time.Minute), After: 19})
	require.Equal(t, []string{"ws1/19"}, texts)
	texts, _ = all(t, tr, wire.EventsRequest{Declaration: "d1", Last: 2})
	require.Equal(t, []string{"ws1/13", "ws1/17"}, texts)
	_, err := tr.Page(t.Context(), wire.EventsRequest{Node: "ws1.>"})
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
}

func TestTheNewestAreFoundFromTheEnd(t *testing.T) {
	_, _, tr := alone(t, trail.Options{})
	require.Empty(t, page(t, tr, wire.EventsRequest{Last: 5}).Events)
	require.NoError(t, tr.Append(t.Context(), event("rare", 1)))
	for from := 1; from < 2000; from += 500 {
		require.NoError(t, tr.Append(t.Context(), some("ws1", from, from+499)...))
	}
	reply := page(t, tr, wire.EventsRequest{Last: 3})
	require.Len(t, reply.Events, 3)
	require.Equal(t, "1998", reply.Events[0].Text)
	require.Equal(t, "2000", reply.Events[2].Text)
	require.EqualValues(t, 2001, reply.Next)
	reply = page(t, tr, wire.EventsRequest{Last: 3, Node: "rare"})
	require.Len(t, reply.Events, 1, "it is the oldest of all")
	require.Len(t, page(t, tr, wire.EventsRequest{Last: 5000}).Events, trail.MaxLast)
}

func TestPagesAreBounded(t *testing.T) {
	_, _, tr := alone(t, trail.Options{})
	for i := range 20 {
		var batch []wire.Event
		for j := range 50 {
			e := event("ws1", i*50+j)
			e.Text = fmt.Sprintf("%04d ", i*50+j) + strings.Repeat("x", 1500)
			batch = append(batch, e)
		}
		require.NoError(t, tr.Append(t.Context(), batch...))
	}
	texts, pages := all(t, tr, wire.EventsRequest{})
	require.Len(t, texts, 1000)
	require.Greater(t, pages, 2)
	for i, text := range texts {
		require.True(t, strings.HasPrefix(text, fmt.Sprintf("ws1/%04d ", i)))
	}
	size := 0
	for _, e := range page(t, tr, wire.EventsRequest{}).Events {
		size += len(e.Text)
	}
	require.Less(t, size, wire.MaxPage)
}

func TestEventThatIsSentAgainIsStoredOnce(t *testing.T) {
	m, _, tr := alone(t, trail.Options{})
	other := open(t, m.Connect(identity.Controller, "c2"), trail.Options{})
	batch := some("ws1", 1, 10)
	require.NoError(t, tr.Append(t.Context(), batch...))
	require.NoError(t, other.Append(t.Context(), batch...))
	require.NoError(t, tr.Append(t.Context(), append(batch, event("ws1", 11))...))
	forged := event("ws2", 1)
	forged.ID = batch[0].ID
	require.NoError(t, tr.Append(t.Context(), forged))
	texts, _ := all(t, tr, wire.EventsRequest{})
	require.Len(t, texts, 12, "ids of two nodes are two ids: %v", texts)
}

func TestBadEventsAreRefusedAndLongOnesCut(t *testing.T) {
	_, _, tr := alone(t, trail.Options{})
	for name, e := range map[string]wire.Event{
		"no id": {Node: "ws1"}, "a pattern": {ID: "1", Node: ">"}, "two tokens": {ID: "1", Node: "a.b"},
		"two lines": {ID: "1\r\nNats-Rollup: all", Node: "ws1"}, "a long id": {ID: strings.Repeat("x", 300)},
	} {
		require.Equal(t, fault.Invalid, fault.ClassOf(tr.Append(t.Context(), event("ws1", 1), e)), name)
	}
	require.Equal(t, fault.Invalid, fault.ClassOf(tr.Append(t.Context(), some("ws1", 0, trail.MaxAppend)...)))
	texts, _ := all(t, tr, wire.EventsRequest{})
	require.Empty(t, texts, "a batch with a bad one is stored in no part")
	long := event("ws1", 1)
	long.Text, long.Unit = strings.Repeat("ä\x00", 5000), strings.Repeat("ü", 5000)
	require.NoError(t, tr.Append(t.Context(), long))
	got := page(t, tr, wire.EventsRequest{}).Events
	require.Len(t, got, 1)
	require.LessOrEqual(t, len(got[0].Unit), 256)
	require.True(t, strings.HasSuffix(got[0].Unit, "ü…"))
}

func TestTheOldestMakeRoom(t *testing.T) {
	_, _, tr := alone(t, trail.Options{MaxBytes: 64 << 10})
	for from := 1; from < 2000; from += 100 {
		require.NoError(t, tr.Append(t.Context(), some("ws1", from, from+99)...))
	}
	texts, _ := all(t, tr, wire.EventsRequest{})
	require.Less(t, len(texts), 600)
	require.Greater(t, len(texts), 50)
	require.Equal(t, "ws1/2000", texts[len(texts)-1])
	late := page(t, tr, wire.EventsRequest{After: 3})
	require.Equal(t, texts[0], "ws1/"+late.Events[0].Text, "a reader that was away goes on with the oldest")
	require.NotEmpty(t, page(t, tr, wire.EventsRequest{Last: 1000}).Events)
}

func TestPageWaitsForWhatComesNext(t *testing.T) {
	m, _, tr := alone(t, trail.Options{})
	other := open(t, m.Connect(identity.Controller, "c2"), trail.Options{})
	require.NoError(t, tr.Append(t.Context(), event("ws1", 1)))
	for name, by := range map[string]*trail.Trail{"this controller's": tr, "another's": other} {
		after := page(t, tr, wire.EventsRequest{Last: 1}).Next
		var wait sync.WaitGroup
		wait.Go(func() {
			time.Sleep(300 * time.Millisecond)
			if err := by.Append(t.Context(), event("ws2", 1), event(name[:4], int(after))); err != nil {
				t.Errorf("append: %v", err)
			}
		})
		start := time.Now()
		reply := page(t, tr, wire.EventsRequest{After: after, Node: name[:4], Wait: 15})
		wait.Wait()
		require.Len(t, reply.Events, 1, name)
		require.Less(t, time.Since(start), 3*time.Second)
	}
	start := time.Now()
	require.Empty(t, page(t, tr, wire.EventsRequest{Node: "nobody", Wait: 1}).Events)
	require.GreaterOrEqual(t, time.Since(start), time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start = time.Now()
	_, _ = tr.Page(ctx, wire.EventsRequest{Node: "nobody", Wait: 20})
	require.Less(t, time.Since(start), 5*time.Second, "a caller that goes is not waited for")
	require.Empty(t, page(t, tr, wire.EventsRequest{After: 1 << 40}).Events, "a place that this stream never had")
}

func TestAppendsOfManyAreAllThere(t *testing.T) {
	m, _, tr := alone(t, trail.Options{})
	var wait sync.WaitGroup
	for w := range 5 {
		own := open(t, m.Connect(identity.Controller, "c1"), trail.Options{})
		wait.Go(func() {
			node := fmt.Sprintf("ws%d", w)
			for from := 1; from <= 200; from += 20 {
				if err := own.Append(t.Context(), some(node, from, from+19)...); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wait.Wait()
	for w := range 5 {
		texts, _ := all(t, tr, wire.EventsRequest{Node: fmt.Sprintf("ws%d", w)})
		require.Len(t, texts, 200)
		for i, text := range texts {
			require.Equal(t, fmt.Sprintf("ws%d/%d", w, i+1), text)
		}
	}
}

func TestManyOpenItAtOnce(t *testing.T) {
	m := meshtest.New(t)
	var wait sync.WaitGroup
	for w := range 8 {
		c := m.Connect(identity.Controller, "c1")
		wait.Go(func() {
			own := open(t, c, trail.Options{})
			if err := own.Append(t.Context(), event("ws1", w)); err != nil {
				t.Errorf("append: %v", err)
			}
		})
	}
	wait.Wait()
	texts, _ := all(t, open(t, m.Connect(identity.Controller, "c1"), trail.Options{}), wire.EventsRequest{})
	require.Len(t, texts, 8)
}

func TestAppendSurvivesAServerThatGoesAndComes(t *testing.T) {
	m, c, tr := alone(t, trail.Options{})
	require.NoError(t, tr.Append(t.Context(), some("ws1", 1, 10)...))
	m.Stop()
	require.Eventually(t, func() bool { return !c.State().Connected }, patience, time.Millisecond)
	require.Error(t, tr.Append(t.Context(), event("ws1", 11)))
	_, err := tr.Page(t.Context(), wire.EventsRequest{})
	require.Error(t, err)
	m.Start()
	for n := 11; n <= 60; n++ {
		if n%10 == 0 {
			m.Link.Kill()
		}
		require.Eventually(t, func() bool { return tr.Append(t.Context(), event("ws1", n)) == nil }, patience, 5*time.Millisecond)
	}
	texts, _ := all(t, tr, wire.EventsRequest{})
	require.Len(t, texts, 60, "each once: %v", texts)

	m.Stop()
	m.Wipe()
	m.Start()
	require.Eventually(t, func() bool { return c.State().Connected }, patience, time.Millisecond)
	require.Error(t, tr.Append(t.Context(), event("ws1", 61)), "a stream that is gone takes nothing")
	_, err = tr.Page(t.Context(), wire.EventsRequest{})
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
	again := open(t, c, trail.Options{})
	require.NoError(t, again.Append(t.Context(), event("ws1", 61)))
	require.Len(t, page(t, tr, wire.EventsRequest{}).Events, 1)
}

func TestOpenPutsBoundsRightAndRefusesWhatIsOtherwise(t *testing.T) {
	_, c, tr := alone(t, trail.Options{MaxBytes: 1 << 20})
	require.NoError(t, tr.Append(t.Context(), event("ws1", 1)))
	open(t, c, trail.Options{MaxBytes: 2 << 20, MaxAge: time.Hour})
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	js, err := jetstream.New(s.NATS())
	require.NoError(t, err)
	info, err := js.Stream(t.Context(), "AUDIT")
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, info.CachedInfo().Config.MaxBytes)
	require.Equal(t, time.Hour, info.CachedInfo().Config.MaxAge)
	require.Error(t, info.Purge(t.Context()), "nobody purges it")
	rollup := nats.NewMsg("audit.v1.ws1")
	rollup.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupAll)
	_, err = js.PublishMsg(t.Context(), rollup)
	require.Error(t, err)

	require.NoError(t, js.DeleteStream(t.Context(), "AUDIT"))
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.v1.*"}, Storage: jetstream.FileStorage, MaxBytes: 1 << 20, Retention: jetstream.WorkQueuePolicy})
	require.NoError(t, err)
	_, err = trail.Open(t.Context(), c, trail.Options{Logger: slog.New(slog.DiscardHandler)})
	require.Error(t, err)
}

func TestAnEventThatCannotBeReadIsShownAsSuch(t *testing.T) {
	_, c, tr := alone(t, trail.Options{})
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	js, err := jetstream.New(s.NATS())
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "audit.v1.ws1", []byte("not json"))
	require.NoError(t, err)
	require.NoError(t, tr.Append(t.Context(), event("ws1", 1)))
	got := page(t, tr, wire.EventsRequest{}).Events
	require.Len(t, got, 2)
	require.Equal(t, "this event cannot be read", got[0].Text)
}
