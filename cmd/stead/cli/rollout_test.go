package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/wire"
)

// progressing answers with what it is told, one after the other, and with the
// last from then on. An answer of nil is an error.
type progressing struct {
	answers []*wire.ProgressReply
	err     error
	asked   int
	takes   time.Duration
}

func (p *progressing) Progress(ctx context.Context, _ wire.ProgressRequest) (wire.ProgressReply, error) {
	p.asked++
	if p.takes > 0 {
		pauseFor(ctx, p.takes)
	}
	now := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	if now == nil {
		return wire.ProgressReply{}, p.err
	}
	return *now, ctx.Err()
}

func at1(o report.Outcome, n int) *wire.ProgressReply {
	return &wire.ProgressReply{Names: []wire.ProgressOfName{{Name: "web", Generation: 1, Nodes: 2, Outcomes: map[report.Outcome]int{o: n}}}}
}

// waited runs a rollout of five minutes in a clock of its own.
func waited(t *testing.T, p *progressing, width int, change func(cancel func())) (out, log string, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var o, l bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if change != nil {
			go change(cancel)
		}
		start := time.Now()
		r := rollout{of: p, bound: 5 * time.Minute, answer: time.Minute, out: screen{&o, start, width}, log: &l, now: time.Now}
		_, err = r.wait(ctx, []string{"web"}, 1)
		out, log, took = o.String(), l.String(), time.Since(start)
	})
	return out, log, took, err
}

func TestARolloutEndsWhenAllIsConverged(t *testing.T) {
	p := &progressing{answers: []*wire.ProgressReply{at1(report.Waiting, 1), at1(report.Converged, 1), at1(report.Converged, 2)}}
	out, log, took, err := waited(t, p, 0, nil)
	require.NoError(t, err)
	require.Equal(t, "  web   2/2\nconverged on 2 of 2 · 250 ms\n", out)
	require.Empty(t, log)
	require.Equal(t, 250*time.Millisecond, took)
}

func TestARolloutWaitsForFailuresAndNotForRefusals(t *testing.T) {
	out, log, took, err := waited(t, &progressing{answers: []*wire.ProgressReply{at1(report.Failed, 2)}}, 0, nil)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, took)
	require.Contains(t, out, "converged on 0 of 2, 2 failed")
	require.Equal(t, "converged on 0 of 2, 2 failed · 10.1 s\n", log, "the same is told once")

	_, _, took, err = waited(t, &progressing{answers: []*wire.ProgressReply{at1(report.Refused, 1), at1(report.Refused, 2)}}, 0, nil)
	require.NoError(t, err)
	require.Equal(t, firstLook, took)
}

func TestARolloutDrawsInPlaceOnATerminal(t *testing.T) {
	out, log, _, err := waited(t, &progressing{answers: []*wire.ProgressReply{at1(report.Converged, 1), at1(report.Converged, 2)}}, 80, nil)
	require.NoError(t, err)
	require.Equal(t, "  web   ██████████░░░░░░░░░░   1/2   1 not heard of\nconverged on 1 of 2, 1 not heard of · 0 ms\n"+
		"\x1b[2A\r\x1b[J  web   ████████████████████   2/2\nconverged on 2 of 2 · 100 ms\n", out)
	require.Empty(t, log)
}

func TestARolloutSaysWhyItHasNoAnswer(t *testing.T) {
	denied := fault.New(fault.Denied, "progress", "", errors.New("no"))
	_, _, took, err := waited(t, &progressing{answers: []*wire.ProgressReply{nil}, err: denied}, 0, nil)
	require.ErrorIs(t, err, denied)
	require.Zero(t, took)

	p := &progressing{answers: []*wire.ProgressReply{at1(report.Waiting, 1)}}
	_, _, took, err = waited(t, p, 0, func(cancel func()) { time.Sleep(3 * time.Second); cancel() })
	require.True(t, fault.Is(err, fault.Canceled))
	require.Contains(t, err.Error(), "what was asked for stays so")
	require.Equal(t, 3*time.Second, took)
}

// One answer is waited for, however short the time is.
func TestARolloutLooksOnceInNoTime(t *testing.T) {
	slow := func(p *progressing, answer time.Duration) (reply wire.ProgressReply, err error) {
		synctest.Test(t, func(t *testing.T) {
			p.takes = time.Second
			r := rollout{of: p, bound: 1, answer: answer, out: screen{&bytes.Buffer{}, time.Now(), 0}, log: &bytes.Buffer{}, now: time.Now}
			reply, err = r.wait(t.Context(), []string{"web"}, 1)
		})
		return reply, err
	}
	p := &progressing{answers: []*wire.ProgressReply{at1(report.Converged, 1)}}
	reply, err := slow(p, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, errNotWanted, verdict(reply))
	require.Equal(t, 1, p.asked)
	reply, err = slow(&progressing{answers: []*wire.ProgressReply{at1(report.Converged, 2)}}, 20*time.Second)
	require.NoError(t, err)
	require.NoError(t, verdict(reply))
	_, err = slow(&progressing{answers: []*wire.ProgressReply{at1(report.Converged, 2)}}, 500*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheVerdictOfAWait(t *testing.T) {
	good := *at1(report.Converged, 2)
	require.NoError(t, verdict(good))
	require.Equal(t, errNotWanted, verdict(*at1(report.Converged, 1)))
	silent := *at1(report.Failed, 1)
	silent.Names[0].Silent = []string{"ws9"}
	require.Equal(t, errSilent, verdict(silent))
	leaving := *at1(report.Converged, 2)
	leaving.Names[0].Leaving = 1
	require.Equal(t, errNotWanted, verdict(leaving))
}
