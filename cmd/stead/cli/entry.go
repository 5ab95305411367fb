package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stead/mesh/subject"
	"stead/seats"
)

// entryPrinter writes journal entries one after the other.
type entryPrinter struct {
	w      screen
	format format
	named  bool // the node stands in place of the host
	told   bool
}

// print writes one entry: as journalctl's short format has it, or the object
// itself on a line.
func (p *entryPrinter) print(node subject.Node, entry json.RawMessage, omitted []seats.OmittedField) error {
	p.told = true
	switch p.format {
	case "json":
		_, err := p.w.Write(append(append([]byte(nil), entry...), '\n'))
		return err
	case "yaml":
		if _, err := io.WriteString(p.w, "---\n"); err != nil {
			return err
		}
		return encode(p.w, "yaml", entry)
	}
	host := ""
	if p.named {
		host = string(node)
	}
	_, err := io.WriteString(p.w, short(entry, host, p.format == "wide", omitted))
	return err
}

// end is behind the last entry.
func (p *entryPrinter) end() error {
	if p.told || p.format.coded() {
		return nil
	}
	_, err := io.WriteString(p.w, "no entries\n")
	return err
}

// short is an entry as journalctl writes it: "Nov 30 18:02:11 host name[pid]: what",
// further lines of the message below its first. Host, when it is not empty, stands in
// place of the entry's own. Wide has the time with zone and microseconds, and the
// unit.
func short(entry json.RawMessage, host string, wide bool, omitted []seats.OmittedField) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(entry, &fields) != nil {
		return fmt.Sprintf("(no entry) %s\n", blob(len(entry)))
	}
	get := func(names ...string) string {
		for _, name := range names {
			if text, ok := plainText(fields[name]); ok && text != "" {
				return text
			}
		}
		return ""
	}
	at := time.UnixMicro(moments(entry)).Local()
	when := at.Format(time.Stamp)
	if wide {
		when = at.Format("2006-01-02T15:04:05.000000-07:00")
	}
	lead := when + " " + cmp.Or(host, get("_HOSTNAME"), "–") + " "
	if wide {
		lead += cmp.Or(get("_SYSTEMD_USER_UNIT", "_SYSTEMD_UNIT"), "–") + " "
	}
	lead += cmp.Or(get("SYSLOG_IDENTIFIER", "_COMM"), "unknown")
	if pid := get("_PID", "SYSLOG_PID"); pid != "" {
		lead += "[" + pid + "]"
	}
	lead += ": "
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(message(fields, get("__CURSOR"), omitted), "\n"), "\n") {
		b.WriteString(strings.TrimRight(lead+line, " ") + "\n")
		lead = indent
	}
	return b.String()
}

// message is what an entry says, or how much of what cannot be shown.
func message(fields map[string]json.RawMessage, cursor string, omitted []seats.OmittedField) string {
	raw := fields["MESSAGE"]
	if text, ok := plainText(raw); ok {
		return text
	}
	for _, o := range omitted {
		if o.Cursor == cursor && o.Field == "MESSAGE" {
			return blob(int(o.Bytes))
		}
	}
	if bytes, ok := numbers(raw); ok {
		return blob(len(bytes))
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return blob(len(text))
	}
	return ""
}

// blob stands for what is not shown, as journalctl has it.
func blob(n int) string {
	size := uint64(max(0, n))
	return "[" + strings.ReplaceAll(memory(&size), " ", "") + " blob data]"
}

// plainText is a field that a terminal can show: a text, the bytes of one, or the
// first of several.
func plainText(raw json.RawMessage) (string, bool) {
	var text string
	var many []json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return "", false
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, printable(text)
	}
	if bytes, ok := numbers(raw); ok {
		return string(bytes), printable(string(bytes))
	}
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		return plainText(many[0])
	}
	return "", false
}

// numbers are the bytes of a field that is no text.
func numbers(raw json.RawMessage) ([]byte, bool) {
	var all []uint16
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &all) != nil {
		return nil, false
	}
	bytes := make([]byte, len(all))
	for i, n := range all {
		if n > 255 {
			return nil, false
		}
		bytes[i] = byte(n)
	}
	return bytes, true
}

// printable reports whether s has nothing that a terminal obeys.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

// moments is when an entry was written, in microseconds since 1970; 0 when it
// does not say.
func moments(entry json.RawMessage) int64 {
	var e struct {
		At string `json:"__REALTIME_TIMESTAMP"`
	}
	if json.Unmarshal(entry, &e) != nil {
		return 0
	}
	n, err := strconv.ParseInt(e.At, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
