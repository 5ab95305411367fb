package journal

import (
	"bufio"
	"context"
	"strconv"
	"strings"

	"stead/host/unit"
)

// where is what entries must be, in matches of journalctl(1): all of all, and all of
// one of any.
type where struct {
	all []string
	any [][]string
}

// matches are the arguments of journalctl. It reads what stands between two "+" as
// one alternative, so what is to hold in all stands in each.
func (w where) matches() []string {
	if len(w.any) == 0 {
		return w.all
	}
	var args []string
	for i, one := range w.any {
		if i > 0 {
			args = append(args, "+")
		}
		args = append(append(args, one...), w.all...)
	}
	return args
}

// with is w and one more that must hold.
func (w where) with(match string) where {
	w.all = append(w.all[:len(w.all):len(w.all)], match)
	return w
}

// ofUser are the entries of one unit of an account: what it says, what the account's
// manager says of it, and what is said of its core dumps. Fields without an
// underscore are the sender's, so each goes with the sender's uid, which the journal
// itself states (systemd.journal-fields(7)); that of a core dump is the account's, or
// root's where that wrote it.
func ofUser(name string, uid uint32) [][]string {
	id := strconv.FormatUint(uint64(uid), 10)
	return [][]string{
		{"_SYSTEMD_USER_UNIT=" + name, "_UID=" + id},
		{"USER_UNIT=" + name, "_UID=" + id},
		{"COREDUMP_USER_UNIT=" + name, "COREDUMP_UID=" + id, "_UID=" + id, "_UID=0"},
	}
}

// ofAccount are the entries of all that an account's manager runs, and its own.
func ofAccount(uid uint32) [][]string {
	return [][]string{{"_SYSTEMD_UNIT=user@" + strconv.FormatUint(uint64(uid), 10) + ".service"}}
}

// mostUnits bounds the units that a pattern may stand for.
const mostUnits = 100

// ofUsers is ofUser of a name without its suffix, or of a pattern, which stands for
// the units that the journal knows.
func ofUsers(ctx context.Context, name string, uid uint32) ([][]string, error) {
	if !strings.ContainsAny(name, "*?[") {
		if unit.CheckName(name) != nil {
			name += ".service"
		}
		return ofUser(name, uid), nil
	}
	out, err := run(ctx, "--field=_SYSTEMD_USER_UNIT")
	if err != nil {
		return nil, err
	}
	any := ofUser(name, uid) // of which there are none
	lines := bufio.NewScanner(out)
	for lines.Scan() && len(any) < 3*mostUnits {
		if unit.Match(name, lines.Text()) {
			any = append(any, ofUser(lines.Text(), uid)...)
		}
	}
	return any, lines.Err()
}
