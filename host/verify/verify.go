// Package verify asks systemd-analyze what it thinks of unit files. Its word is
// advice: it goes into reports and holds nothing up, since a file may well wait
// for what another file of its batch is about to bring.
//
// It owns no state and may be used from several goroutines. A run over a hundred
// files takes some hundred milliseconds and much of a core, so it belongs beside
// a loop, not in its turn.
package verify

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stead/host/unit"
)

const (
	batch    = 100 // files in one run
	maxLines = 10  // warnings kept for one unit
	maxLine  = 400 // bytes of one
)

// Run returns the warnings of systemd-analyze for each unit, given the path of
// its file. Units without warnings are left out. Where systemd-analyze is not
// installed or does not answer, the result is empty: there is no advice then.
func Run(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string {
	return all(ctx, files, verifier{})
}

// RunAs is Run for units of an account's own manager. The verifier runs as the
// account: it reads what that can read, and nothing else. as makes a command that
// runs a program, behind words of its environment, as the account (see
// host/become).
//
// A verifier that a file system holds does not end, and RunAs does not return
// before it has: the caller has it run beside.
func RunAs(ctx context.Context, files map[unit.Name]string, as func(ctx context.Context, program ...string) *exec.Cmd) map[unit.Name][]string {
	return all(ctx, files, verifier{as})
}

func all(ctx context.Context, files map[unit.Name]string, v verifier) map[unit.Name][]string {
	names := make([]unit.Name, 0, len(files))
	for n, f := range files {
		if !n.IsTemplate() && filepath.Base(f) == string(n) { // an instance has no file of its own to name
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b unit.Name) int { return cmp.Compare(a, b) })
	out := make(map[unit.Name][]string)
	for chunk := range slices.Chunk(names, batch) {
		v.verify(ctx, chunk, files, out)
	}
	return out
}

// verifier runs systemd-analyze; as an account where as is not nil.
type verifier struct {
	as func(ctx context.Context, program ...string) *exec.Cmd
}

// plain keeps colours out of what systemd 247 says, which paints also where no
// terminal is.
const plain = "SYSTEMD_LOG_COLOR=0"

// command is one run with these arguments.
func (v verifier) command(ctx context.Context, args ...string) *exec.Cmd {
	if v.as != nil {
		// Environment generators would be run with what the account's environment.d
		// has said to the one before (systemd.environment-generator(7)): LD_PRELOAD=.
		return v.as(ctx, append([]string{"SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/nonexistent", plain, "systemd-analyze", "--user"}, args...)...)
	}
	cmd := exec.CommandContext(ctx, "systemd-analyze", args...)
	// Nothing of ours: with NOTIFY_SOCKET its own manager would speak for this
	// process. Messages are matched, so they are not to be translated.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", plain}
	return cmd
}

// verify asks about some units at once. One that the verifier cannot even take in
// makes it silent about all; then it is asked about fewer, until that one is alone.
func (v verifier) verify(ctx context.Context, names []unit.Name, files map[unit.Name]string, into map[unit.Name][]string) {
	args := []string{"verify", "--man=no"}
	for _, n := range names {
		args = append(args, files[n])
	}
	cmd := v.command(ctx, args...)
	cmd.WaitDelay = time.Second
	var out limited
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // its exit status says only that there are warnings
	said := out.said
	if half := len(names) / 2; half > 0 && gaveUp(said) && ctx.Err() == nil {
		v.verify(ctx, names[:half], files, into)
		v.verify(ctx, names[half:], files, into)
		return
	}
	sort(said, names, files, into)
}

// mostSaid is how much a verifier may say, in bytes.
const mostSaid = 1 << 20

// limited keeps the first of what is written to it.
type limited struct{ said []byte }

func (l *limited) Write(b []byte) (int, error) {
	l.said = append(l.said, b[:min(len(b), mostSaid-len(l.said))]...)
	return len(b), nil
}

// gaveUp reports whether the verifier ended before it looked at any unit.
func gaveUp(said []byte) bool {
	for line := range bytes.Lines(said) {
		if bytes.HasPrefix(line, []byte("Couldn't process aliases")) || bytes.HasPrefix(line, []byte("Failed to prepare filename")) ||
			bytes.HasPrefix(line, []byte("Failed to initialize manager")) || bytes.HasPrefix(line, []byte("Failed to start manager")) {
			return true
		}
	}
	return false
}

// sort gives each line of the verifier's to the unit that it names.
func sort(said []byte, names []unit.Name, files map[unit.Name]string, out map[unit.Name][]string) {
	scan := bufio.NewScanner(bytes.NewReader(said))
	scan.Buffer(nil, mostSaid+1)
	for scan.Scan() {
		line := unit.Shown(scan.Text(), maxLine)
		for _, n := range names {
			path := files[n]
			if !strings.HasPrefix(line, path+":") && !strings.HasPrefix(line, string(n)+":") && !strings.Contains(line, "/"+string(n)+".d/") {
				continue
			}
			if len(out[n]) < maxLines && !slices.Contains(out[n], line) {
				out[n] = append(out[n], line)
			}
			break
		}
	}
}
