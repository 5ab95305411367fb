// Package journal reads the last log lines of units by running journalctl, with
// every field in full and all that it reads bounded.
//
// It owns no state; a Reader may be used from several goroutines. It is meant
// for the side of a loop, not for its turn: each unit costs one journalctl, some
// ten milliseconds. journalctl's own match for a unit of the system is used (-u),
// because it also finds what the manager says about the unit, which carries other
// fields than what the unit itself says (systemd.journal-fields(7)). Its match for
// a unit of an account takes the uid of who asks, so that one is written out here;
// the entries are found in whatever file they lie, the account's or the system's.
package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"stead/host/fault"
	"stead/host/unit"
)

// Bounds of what is read.
const (
	// MaxLine is how many bytes of one message are kept; a longer one is cut and
	// marked.
	MaxLine   = 1 << 10
	maxOutput = 4 << 20
	parallel  = 2
)

// Reader reads the journal of this machine.
type Reader struct {
	Scope unit.Scope // "" is unit.System
	UID   uint32     // whose units they are, in user scope
	Count int        // lines for each unit; 0 means 10
	Boot  *Boot      // of this process; nil: it is looked for each time that it is needed
}

// Boot is which boot this is, once the journal said so: no process is of two.
// Looking costs a journalctl.
type Boot struct {
	mu sync.Mutex
	id string
}

// find returns the boot id, "" when the journal has no entry yet.
func (b *Boot) find(ctx context.Context) (string, error) {
	if b == nil {
		return thisBoot(ctx)
	}
	b.mu.Lock()
	id := b.id
	b.mu.Unlock()
	if id != "" {
		return id, nil
	}
	id, err := thisBoot(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id = id
	return id, err
}

// Lines returns the last lines of each unit in this boot, oldest first, as
// "15:04:05 message"; of one without any, those in which generators name it. A unit without lines is left out; a unit whose lines cannot
// be read has one line that says why.
func (r Reader) Lines(ctx context.Context, names []unit.Name) map[unit.Name][]string {
	out := make(map[unit.Name][]string, len(names))
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	boot, err := r.Boot.find(ctx)
	if err != nil {
		return unread(names, err)
	}
	for _, n := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			lines, err := r.read(ctx, n, boot)
			if err != nil {
				lines = []string{"(" + err.Error() + ")"}
			}
			if len(lines) > 0 {
				mu.Lock()
				out[n] = lines
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return out
}

// unread is the answer when nothing can be read.
func unread(names []unit.Name, err error) map[unit.Name][]string {
	out := make(map[unit.Name][]string, len(names))
	for _, n := range names {
		out[n] = []string{"(" + err.Error() + ")"}
	}
	return out
}

func (r Reader) read(ctx context.Context, n unit.Name, boot string) ([]string, error) {
	count := r.Count
	if count == 0 {
		count = 10
	}
	out, err := run(ctx, r.last(n, count, boot)...)
	if err != nil {
		return nil, fault.New(fault.Failed, "journalctl", string(n), err)
	}
	lines, err := parse(out)
	if err == nil && len(lines) == 0 {
		return r.generators(ctx, n, count, boot)
	}
	return lines, err
}

// last are the arguments for the last lines of a unit in a boot.
func (r Reader) last(n unit.Name, count int, boot string) []string {
	args := []string{"--all", "--output-fields=MESSAGE", "--lines=" + strconv.Itoa(count)}
	var w where
	if r.Scope == unit.User {
		w.any = ofUser(string(n), r.UID)
	} else {
		args = append(args, "--unit="+string(n))
	}
	if boot != "" {
		w.all = append(w.all, "_BOOT_ID="+boot)
	}
	return append(args, w.matches()...)
}

// parse reads journalctl's JSON lines (systemd.journal-export-formats: a field
// that is not valid UTF-8 is an array of bytes, one that occurs several times an
// array of values).
func parse(in io.Reader) ([]string, error) {
	var lines []string
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxOutput)
	for scan.Scan() {
		var e struct {
			Message json.RawMessage `json:"MESSAGE"`
			Time    string          `json:"__REALTIME_TIMESTAMP"`
		}
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			continue // the line at which the output was cut
		}
		at := ""
		if us, err := strconv.ParseInt(e.Time, 10, 64); err == nil {
			at = time.UnixMicro(us).Format("15:04:05") + " "
		}
		if line := at + clean(message(e.Message)); !slices.Contains(lines, line) { // a definition that cannot be loaded says so at every look
			lines = append(lines, line)
		}
	}
	return lines, scan.Err()
}

func message(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var nums []int
	if json.Unmarshal(raw, &nums) == nil {
		out := make([]byte, len(nums))
		for i, n := range nums {
			out[i] = byte(n)
		}
		return out
	}
	var several []string
	if json.Unmarshal(raw, &several) == nil {
		return []byte(strings.Join(several, " / "))
	}
	return nil
}

// clean makes bytes safe for a terminal: what is not printable is escaped, and a
// long message is cut and marked.
func clean(b []byte) string {
	b = bytes.TrimRight(b, "\n")
	cut := len(b) > MaxLine
	if cut {
		b = b[:MaxLine]
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&s, `\x%02x`, b[0])
		case r == '\t' || unicode.IsPrint(r):
			s.Write(b[:n])
		case r == '\n':
			s.WriteString(`\n`)
		default:
			fmt.Fprintf(&s, `\x%02x`, r)
		}
		b = b[n:]
	}
	if cut {
		s.WriteString(" (cut)")
	}
	return s.String()
}
