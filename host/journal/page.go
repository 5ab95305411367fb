package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"stead/host/fault"
	"stead/seats"
)

const (
	// MaxPage bounds the JSON of a page, in bytes: it fits into a message of the
	// mesh, with headers.
	MaxPage = 1000 << 10
	// chunkSize is how large a chunk of a stream becomes when there is much. One
	// entry may be larger.
	chunkSize = 64 << 10
	// around is what stands around the entries of a page.
	around = 2 << 10
	// perOmitted is what naming an omitted field takes, the name and the numbers
	// included.
	perOmitted = 384
)

// page collects entries up to a size.
type page struct {
	reply seats.JournalReply
	size  int
	limit int
}

func newPage(limit int, cursor string) page {
	return page{reply: seats.JournalReply{Entries: []json.RawMessage{}, Cursor: cursor}, limit: limit, size: around}
}

// fits reports whether e has room. The first entry always has.
func (p *page) fits(e entry) bool {
	return len(p.reply.Entries) == 0 || p.size+sizeOf(e) <= p.limit && len(p.reply.Entries) < MaxEntries
}

func (p *page) add(e entry) {
	p.size += sizeOf(e)
	p.reply.Entries = append(p.reply.Entries, e.raw)
	p.reply.Omitted = append(p.reply.Omitted, e.omitted...)
	p.reply.Cursor = e.cursor
}

func sizeOf(e entry) int { return len(e.raw) + 1 + perOmitted*len(e.omitted) }

// Read returns one page of entries, oldest first: the newest Lines of those that
// fit the arguments, or those behind Cursor; all since Since when there are no
// Lines. More says that the page is full, or that there are more behind Cursor:
// ask again with the reply's cursor, and as many lines fewer as came. A cursor
// goes before Since, which it lies behind; Lost says that its entry is gone. At most MaxPage bytes, MaxEntries
// entries; Follow is not heeded.
//
// Errors: invalid with every argument that breaks a rule; not_found when there
// is no such boot; denied when this process may not read the journal;
// unsupported for scope user where UID is nobody's.
func (r Reader) Read(ctx context.Context, a seats.JournalArguments) (seats.JournalReply, error) {
	q, err := r.prepare(ctx, a)
	if err != nil {
		return seats.JournalReply{}, err
	}
	p := newPage(MaxPage, a.Cursor)
	if q.lines == 0 {
		return p.reply, nil
	}
	args, err := q.forward(ctx)
	if err != nil || args == nil {
		return p.reply, err
	}
	left, met := q.lines, q.cursor == ""
	take := q.behind(func(e entry) (bool, error) {
		if left == 0 || !p.fits(e) {
			// What is behind the newest lines came while they were read.
			p.reply.More = left != 0 || q.cursor != ""
			return false, nil
		}
		p.add(e)
		left--
		return true, nil
	})
	err = each(ctx, args, func(e entry) (bool, error) {
		met = met || sameEntry(e.cursor, q.cursor)
		return take(e)
	})
	if err == nil && !met {
		p.reply.Lost, err = gone(ctx, q.cursor)
	}
	return p.reply, err
}

// gone reports whether the entry of a cursor is no longer in the journal: that one
// asked behind it does not show, when the entry is not one that was asked for.
func gone(ctx context.Context, cursor string) (bool, error) {
	is := true
	err := each(ctx, []string{"--output-fields=_BOOT_ID", "--lines=1", "--cursor=" + cursor}, func(e entry) (bool, error) {
		is = !sameEntry(e.cursor, cursor)
		return false, nil
	})
	return is, err
}

// forward is how journalctl writes the answer from its beginning on; nil when
// there is none.
func (q query) forward(ctx context.Context) ([]string, error) {
	switch {
	case q.cursor != "":
		return append([]string{"--all", "--cursor=" + q.cursor}, q.matching()...), nil
	case q.lines < 0:
		return append([]string{"--all", "--since=" + q.since}, q.matching()...), nil
	case q.plain:
		return append([]string{"--all", "--lines=" + strconv.Itoa(q.lines)}, q.matching()...), nil
	}
	first, err := q.newest(ctx)
	if err != nil || first == "" {
		return nil, err
	}
	return append([]string{"--all", "--cursor=" + first}, q.matching()...), nil
}

// behind leaves out the entry of the cursor itself. journalctl's own
// --after-cursor leaves out whatever it finds first, also when that entry is no
// longer there.
func (q query) behind(take func(entry) (bool, error)) func(entry) (bool, error) {
	first := true
	return func(e entry) (bool, error) {
		if was := first; was {
			first = false
			if q.cursor != "" && sameEntry(e.cursor, q.cursor) {
				return true, nil
			}
		}
		return take(e)
	}
}

// Stream hands what Read would return to send in chunks of some 64 KiB, as many
// as it takes, and goes on with what comes when Follow is set, until ctx ends or
// send returns an error. While send waits no more is read: journalctl stands
// still then, and at most one chunk, one entry and 128 KiB of pipe and buffer are
// held. A chunk is sent as soon as nothing more is at hand.
//
// A stream that follows and has nothing to say yet begins with a chunk without
// entries, whose cursor is where the journal ended: who asks again with it
// misses nothing. A stream behind a cursor whose entry is gone begins with a chunk
// that says so. The error is that of send, as it is, or one of Read;
// canceled when ctx ended.
func (r Reader) Stream(ctx context.Context, a seats.JournalArguments, send func(seats.JournalReply) error) error {
	q, err := r.prepare(ctx, a)
	if err != nil {
		return err
	}
	if q.cursor != "" {
		lost, err := gone(ctx, q.cursor)
		if err != nil {
			return err
		}
		if lost {
			first := newPage(0, q.cursor).reply
			first.Lost = true
			if err := send(first); err != nil {
				return err
			}
		}
	}
	args, err := q.begin(ctx, send)
	if err != nil || args == nil {
		return err
	}
	c, err := start(ctx, args...)
	if err != nil {
		return err
	}
	return q.pump(c, send)
}

// begin finds where a stream starts; nil when it is at its end already.
func (q *query) begin(ctx context.Context, send func(seats.JournalReply) error) ([]string, error) {
	if !q.follow {
		if q.lines == 0 {
			return nil, nil
		}
		return q.forward(ctx)
	}
	if q.cursor == "" && q.lines >= 0 {
		// First the end, so that what comes while the newest are looked for is
		// behind it.
		end, err := tail(ctx)
		if err != nil {
			return nil, err
		}
		first := ""
		if q.lines > 0 {
			if first, err = q.newest(ctx); err != nil {
				return nil, err
			}
		}
		if q.lines = -1; first != "" {
			return q.following("--cursor=" + first)
		}
		if q.cursor = end; end != "" {
			if err := send(newPage(0, end).reply); err != nil {
				return nil, err
			}
		}
	}
	q.lines = -1
	switch {
	case q.cursor != "":
		return q.following("--cursor=" + q.cursor)
	case q.since != "":
		return q.following("--since=" + q.since)
	}
	return q.following("--no-tail") // there was no entry at all
}

// following is how journalctl goes on with what comes.
func (q *query) following(from string) ([]string, error) {
	args := []string{"--all", "--follow", "--no-tail", from}
	if q.offset {
		return append(args, q.matching()...), nil // it is not taken with --merge, and says itself which boot is meant
	}
	// With --follow alone journalctl shows only the boot that /proc states, whatever
	// --boot=all says (seen with 252): nothing at all where /proc is that of another
	// machine, and nothing that came before a reboot to who goes on behind a cursor.
	// With --merge it does not, but reads the journals of other machines too.
	id, err := machine()
	q.where = q.where.with("_MACHINE_ID=" + id)
	return append(append(args, "--merge"), q.matching()...), err
}

// pump sends what c writes.
func (q *query) pump(c *child, send func(seats.JournalReply) error) error {
	in := newEntries(c.out)
	p := newPage(chunkSize, "")
	left := q.lines
	flush := func() error {
		if len(p.reply.Entries) == 0 {
			return nil
		}
		full := p.reply
		p = newPage(chunkSize, full.Cursor)
		return send(full)
	}
	take := q.behind(func(e entry) (more bool, err error) {
		if !p.fits(e) {
			err = flush()
		}
		p.add(e)
		left--
		return left != 0, err
	})
	for {
		e, err := in.next()
		more := err == nil
		if more {
			more, err = take(e)
		}
		if err == nil && (!more || !in.waiting()) {
			err = flush()
		}
		switch {
		case err == nil && more:
			continue
		case errors.Is(err, io.EOF):
			err = flush()
			if ended := c.wait(); err == nil && !errors.Is(ended, errNothing) {
				err = ended
			}
			return err
		}
		c.kill()
		var known *fault.Error
		if c.ctx.Err() != nil && err != nil && !errors.As(err, &known) {
			err = fault.New(ended(c.ctx), "read", "journal", context.Cause(c.ctx))
		}
		return err
	}
}

// sameEntry reports whether two cursors are of one entry: by the file's sequence
// number when both have one, as sd_journal_test_cursor(3) does.
func sameEntry(a, b string) bool {
	if a == b {
		return true
	}
	x, y := parts(a), parts(b)
	return x['s'] != "" && x['s'] == y['s'] && x['i'] != "" && x['i'] == y['i']
}
