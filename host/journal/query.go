package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
)

// Bounds of what can be asked for.
const (
	MaxEntries     = 10000 // in one reply, and of Lines
	defaultEntries = 100
	maxTime        = 128 // bytes of since and until
	maxPattern     = 1 << 10
)

// The forms of arguments are compiled when the first is asked about: most commands
// of stead never do.
var (
	priority = form(`^([0-7]|emerg|alert|crit|err|warning|notice|info|debug)$`)
	boot     = form(`^([0-9a-f]{32}([+-][0-9]{1,6})?|[+-]?[0-9]{1,6})$`)
	cursor   = form(`^[a-z]=[0-9a-f]{1,64}(;[a-z]=[0-9a-f]{1,64}){1,15}$`)
	glob     = form(`^[A-Za-z0-9:_.@\\*?\[\]!^-]+$`)
)

// form returns what tells whether a text is of the form of a pattern.
func form(pattern string) func(text string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(text string) bool { return compiled().MatchString(text) }
}

// grepFlag makes journalctl end badly when nothing matches.
const grepFlag = "--grep="

// query is a JournalArguments that was checked, as journalctl takes it.
type query struct {
	filters []string // what an entry must be, as options
	where   where    // and as matches
	since   string
	cursor  string // behind which the answer begins
	lines   int    // of the newest, or behind the cursor; below 0: all
	follow  bool
	plain   bool // journalctl finds the newest lines by itself
	offset  bool // filters name a boot as --boot= does
}

// check refuses arguments that break a rule, all problems at once. What
// journalctl alone can read (times and patterns) it refuses itself, later.
func check(a seats.JournalArguments) error {
	var problems []error
	bad := func(field, value, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %q: %w", field, value, fmt.Errorf(format, args...)))
	}
	if a.Unit != "" {
		if err := checkUnit(a.Unit); err != nil {
			bad("unit", a.Unit, "%w", err)
		}
	}
	if a.Lines != nil && (*a.Lines < 0 || *a.Lines > MaxEntries) {
		bad("lines", strconv.Itoa(*a.Lines), "must be 0 to %d", MaxEntries)
	}
	for field, value := range map[string]string{"since": a.Since, "until": a.Until} {
		if !plainText(value, maxTime) {
			bad(field, value, "must be a time as systemd.time(7) has them, at most %d bytes", maxTime)
		}
	}
	from, to, _ := strings.Cut(a.Priority, "..")
	if a.Priority != "" && (!priority(from) || to != "" && !priority(to) || strings.HasSuffix(a.Priority, "..")) {
		bad("priority", a.Priority, "must be 0 to 7, emerg, alert, crit, err, warning, notice, info, debug, or a range of two such as err..info")
	}
	if !plainText(a.Grep, maxPattern) {
		bad("grep", a.Grep, "must be text of at most %d bytes", maxPattern)
	}
	if a.Boot != "" && a.Boot != "all" && !boot(a.Boot) {
		bad("boot", a.Boot, "must be an offset such as 0 or -1, a boot id of 32 hex digits, or all")
	}
	if a.Cursor != "" && !cursor(a.Cursor) {
		bad("cursor", a.Cursor, "must be the __CURSOR of an entry")
	}
	if a.Scope != "" && a.Scope != string(unit.System) && a.Scope != string(unit.User) {
		bad("scope", a.Scope, "must be system or user")
	}
	if len(problems) > 0 {
		return fault.New(fault.Invalid, "read", "journal", errors.Join(problems...))
	}
	return nil
}

// checkUnit takes names and patterns as journalctl --unit does, but no paths.
func checkUnit(s string) error {
	if strings.ContainsAny(s, "*?[") {
		if len(s) > unit.NameMax || !glob(s) {
			return errors.New("no pattern of unit names")
		}
		return nil
	}
	err := unit.CheckName(s)
	if err != nil && unit.CheckName(s+".service") == nil {
		return nil
	}
	return err
}

func plainText(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// prepare makes a query of arguments. It looks at the journal when the boot is
// this one.
func (r Reader) prepare(ctx context.Context, a seats.JournalArguments) (query, error) {
	if err := check(a); err != nil {
		return query{}, err
	}
	q := query{since: a.Since, cursor: a.Cursor, follow: a.Follow, lines: defaultEntries}
	switch {
	case a.Lines != nil:
		q.lines = *a.Lines
	case a.Since != "" || a.Cursor != "":
		q.lines = -1
	}
	// The newest lines are not found when there is a bound in time: the first
	// behind since come, or none before until; and with a pattern they come
	// backwards (seen with 252).
	q.plain = a.Since == "" && a.Until == "" && a.Grep == ""
	add := func(flag, value string) {
		if value != "" {
			q.filters = append(q.filters, flag+value)
		}
	}
	if a.Scope == string(unit.User) {
		if err := r.user(ctx, a.Unit, &q); err != nil {
			return query{}, err
		}
	} else {
		add("--unit=", a.Unit)
	}
	add("--until=", a.Until)
	add("--priority=", a.Priority)
	add(grepFlag, a.Grep)
	if a.Boot == "0" || a.Boot == "+0" || a.Boot == "-0" {
		id, err := thisBoot(ctx)
		if err != nil {
			return query{}, err
		}
		if id != "" {
			q.where = q.where.with("_BOOT_ID=" + id)
		}
	} else if a.Boot != "all" {
		add("--boot=", a.Boot)
		q.offset = a.Boot != ""
	}
	return q, nil
}

// user makes q one about a unit of the account, or about all of them.
func (r Reader) user(ctx context.Context, name string, q *query) (err error) {
	switch {
	case r.UID == 0:
		return fault.New(fault.Unsupported, "read", "journal", errors.New("scope user is that of an account, and there is none"))
	case name == "":
		q.where.any = ofAccount(r.UID)
	default:
		q.where.any, err = ofUsers(ctx, name, r.UID)
	}
	return err
}

// matching are the arguments for what an entry must be.
func (q query) matching() []string {
	return append(q.filters[:len(q.filters):len(q.filters)], q.where.matches()...)
}

// newest is the cursor of the oldest of the newest lines, "" when there are none.
func (q query) newest(ctx context.Context) (string, error) {
	args := []string{"--reverse", "--output-fields=_BOOT_ID", "--lines=" + strconv.Itoa(q.lines)}
	if q.since != "" {
		args = append(args, "--since="+q.since)
	}
	args = append(args, q.matching()...)
	last := ""
	err := each(ctx, args, func(e entry) (bool, error) { last = e.cursor; return true, nil })
	return last, err
}

// tail is the cursor of the newest entry of all, "" when there is none.
func tail(ctx context.Context) (string, error) {
	last := ""
	err := each(ctx, []string{"--output-fields=_BOOT_ID", "--lines=1"}, func(e entry) (bool, error) { last = e.cursor; return true, nil })
	return last, err
}

// thisBoot is the boot id of the newest entry; "" when there is none. The
// kernel's own, which journalctl --boot takes, is another in a container: there a
// service with a /proc of its own sees that of the machine around it.
func thisBoot(ctx context.Context) (string, error) {
	out, err := run(ctx, "--lines=1", "--output-fields=_BOOT_ID")
	if err != nil {
		return "", err
	}
	var e struct {
		Boot string `json:"_BOOT_ID"`
	}
	if out.Len() == 0 {
		return "", nil
	}
	if err := json.Unmarshal(out.Bytes(), &e); err != nil {
		return "", fault.New(fault.Failed, "read the boot id of the journal", "", err)
	}
	return e.Boot, nil
}

// machine is the id of this machine, which all entries of its own journal carry.
func machine() (string, error) {
	text, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return "", fault.New(fault.Failed, "read", "machine-id", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// parts are the items of a cursor by their letters.
func parts(cursor string) map[byte]string {
	out := map[byte]string{}
	for item := range strings.SplitSeq(cursor, ";") {
		if len(item) > 2 && item[1] == '=' {
			out[item[0]] = item[2:]
		}
	}
	return out
}
