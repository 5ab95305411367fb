package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"stead/host/report"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// Reports that change in a burst are sent together: when nothing more came for
// quiet, and at the latest when the first has waited for patience.
const (
	quiet    = 100 * time.Millisecond
	patience = 250 * time.Millisecond
)

// sendReports sends what changed.
func (b *Outbox) sendReports(ctx context.Context) error {
	changed, stop := b.o.Link.Notify()
	defer stop()
	l := &line{topic: subject.Report, link: b.o.Link, log: b.o.Logger}
	s := newSeries(b.run)
	for l.connected(ctx, changed) {
		select {
		case <-b.looked:
			settle(ctx, b.looked)
		default:
		}
		source := b.o.Source() // first: reports are of what it names, or of later
		out, err := s.next(b.o.Reports(), source)
		if err != nil {
			b.o.Logger.Error("reports cannot be written", "error", err)
		}
		if out == nil {
			pause(ctx, time.Hour, b.looked, changed)
			wake(b.looked) // what came is looked at above
			continue
		}
		var reply wire.ReportReply
		session := b.o.Link.Session()
		switch err := l.send(ctx, out.payload, &reply); {
		case err != nil:
			s.failed(err)
		case reply.Full && out.base == 0:
			s.full()
			l.failed(session, errors.New("everything was sent, and a controller asks for everything"))
		case reply.Full:
			s.full()
			l.worked()
		default:
			s.acknowledged()
			l.worked()
		}
	}
	return nil
}

// settle waits until a burst is over.
func settle(ctx context.Context, more <-chan struct{}) {
	end := time.Now().Add(patience)
	for {
		now := time.Now()
		if !now.Before(end) {
			return
		}
		timer := time.NewTimer(min(quiet, end.Sub(now)))
		select {
		case <-more:
			timer.Stop()
		case <-timer.C:
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// series is the numbered batches of one run of the process, and what of them a
// controller has acknowledged.
type series struct {
	run     string
	seq     uint64         // of the last batch that may have been stored
	base    uint64         // of the last batch that was acknowledged; 0: everything is to be sent
	filling bool           // everything is being sent, and that is not over
	has     map[string]sum // what was acknowledged, by name
	source  wire.Source    // that was acknowledged
	sums    sums

	// out is the batch that was sent and not acknowledged, as it was: if it was
	// stored, a controller knows it again by its number.
	out *outgoing
}

// outgoing is a batch on its way.
type outgoing struct {
	seq, base uint64
	more      bool
	payload   []byte
	sums      map[string]sum
	gone      []string
	source    wire.Source
}

func newSeries(run string) *series {
	return &series{run: run, filling: true, has: map[string]sum{}}
}

// next returns the batch that is to be sent now, nil when there is nothing to
// say.
func (s *series) next(reports []*report.Report, source wire.Source) (*outgoing, error) {
	if s.out != nil {
		return s.out, nil
	}
	all := s.sums.choose(reports)
	var news, gone []string
	for name, one := range all {
		if old, had := s.has[name]; !had || old != one.sum {
			news = append(news, name)
		}
	}
	for name := range s.has {
		if _, there := all[name]; !there {
			gone = append(gone, name)
		}
	}
	if !s.filling && len(news)+len(gone) == 0 && sameSource(source, s.source) {
		return nil, nil
	}
	slices.Sort(news)
	slices.Sort(gone)
	var err error
	s.out, err = s.pack(all, news, gone, source)
	return s.out, err
}

// pack makes a batch of as many of the news as fit.
func (s *series) pack(all map[string]chosen, news, gone []string, source wire.Source) (*outgoing, error) {
	batch := wire.ReportBatch{Wire: wire.Version, Run: s.run, Seq: s.seq + 1, Base: s.base, Source: source, Gone: gone}
	out := &outgoing{seq: batch.Seq, base: s.base, sums: map[string]sum{}, gone: gone, source: source}
	frame, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	room := wire.MaxPage - len(frame) - len(`,"more":true,"reports":[]`)
	for _, name := range news {
		r := fit(all[name].report)
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if room -= len(data) + 1; room < 0 && len(batch.Reports) > 0 {
			out.more = s.filling // changes are whole without those that follow
			break
		}
		batch.Reports = append(batch.Reports, r)
		out.sums[name] = all[name].sum
	}
	batch.More = out.more
	out.payload, err = json.Marshal(batch)
	return out, err
}

// acknowledged takes in that the batch was stored.
func (s *series) acknowledged() {
	maps.Copy(s.has, s.out.sums)
	for _, name := range s.out.gone {
		delete(s.has, name)
	}
	s.seq, s.base, s.source, s.filling, s.out = s.out.seq, s.out.seq, s.out.source, s.out.more, nil
}

// full takes in that a controller wants everything.
func (s *series) full() {
	s.seq, s.base, s.filling, s.out = s.out.seq, 0, true, nil
	clear(s.has)
}

// failed takes in that no answer came: a batch that may have been stored is sent
// once more as it was.
func (s *series) failed(err error) {
	if !stored(err) {
		s.out = nil
	}
}
