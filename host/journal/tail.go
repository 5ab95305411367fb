package journal

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"stead/host/unit"
)

// stamped is how the lines of a status begin: they may be of any day of this boot.
const stamped = "Jan _2 15:04:05 "

// Tail returns the last count lines of one unit in this boot, oldest first, each
// with the day and time on this machine: "Nov 30 18:02:11 message". Each has
// MaxLine bytes at most, and what a terminal would take for more than text is
// escaped. Errors: those of Read.
func (r Reader) Tail(ctx context.Context, name unit.Name, count int) ([]string, error) {
	if count <= 0 {
		return nil, nil
	}
	boot, err := r.Boot.find(ctx)
	if err != nil {
		return nil, err
	}
	var lines []string
	err = each(ctx, r.last(name, count, boot), func(e entry) (bool, error) {
		lines = append(lines, lineOf(e.raw))
		return true, nil
	})
	return lines, err
}

// lineOf is an entry as people read it.
func lineOf(raw []byte) string {
	var e struct {
		Message json.RawMessage `json:"MESSAGE"`
		Time    string          `json:"__REALTIME_TIMESTAMP"`
	}
	_ = json.Unmarshal(raw, &e) // the reader of entries holds that it is JSON; fields of another kind stay empty
	at := ""
	if us, err := strconv.ParseInt(e.Time, 10, 64); err == nil {
		at = time.UnixMicro(us).Format(stamped)
	}
	return at + clean(message(e.Message))
}
