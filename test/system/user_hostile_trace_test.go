package system

import (
	"bufio"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// tracing is strace on a host, on its threads, and on the processes that it starts.
type tracing struct {
	m    *machine
	file string
	cmd  *exec.Cmd
	done chan struct{}
}

// traceOf follows the process with that id inside the node. It returns when strace
// has it.
func (m *machine) traceOf(pid string) *tracing {
	m.t.Helper()
	tr := &tracing{m: m, file: "/run/trace." + pid, done: make(chan struct{})}
	tr.cmd = m.Command(m.t.Context(), "strace", "-f", "-y", "-s", "4096", "-e", "signal=none",
		"-e", "trace=%file,connect,setresuid,clone,clone3,fork,vfork", "-o", tr.file, "-p", pid)
	said, err := tr.cmd.StderrPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, tr.cmd.Start())
	attached := make(chan struct{})
	go func() {
		defer close(tr.done)
		for lines, first := bufio.NewScanner(said), true; lines.Scan(); {
			if first && strings.Contains(lines.Text(), " attached") {
				close(attached)
				first = false
			}
		}
		_ = tr.cmd.Wait()
	}()
	select {
	case <-attached:
	case <-tr.done:
		m.t.Fatal("strace ended")
	case <-time.After(patience):
		m.t.Fatal("strace does not get hold of the host")
	}
	return tr
}

// traceAct is a system call with paths, of a process that is root or is not.
type traceAct struct {
	root  bool
	line  string
	paths []string
}

var (
	traceLine  = regexp.MustCompile(`^(\d+) +`)
	traceChild = regexp.MustCompile(`^\d+ +(?:clone3?|v?fork)\b.* = (\d+)$`)
	traceText  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	tracePlace = regexp.MustCompile(`(?:\d+|AT_FDCWD)<(/[^>]*)>`)
)

// acts reads the trace. A process is the account from the moment that it took its
// uid, and so is who it starts later.
func (tr *tracing) acts(uid int) []traceAct {
	tr.m.t.Helper()
	data, err := tr.m.ReadFile(tr.file)
	require.NoError(tr.m.t, err)
	type birth struct{ parent, at int }
	var (
		all    []traceAct
		born   = map[int]birth{}
		became = map[int]int{} // when
		begun  = map[int]int{} // the unfinished call of each
		whose  []int
	)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		who := traceLine.FindStringSubmatch(line)
		if who == nil {
			continue
		}
		pid, _ := strconv.Atoi(who[1])
		at := len(all)
		if cut, is := strings.CutSuffix(line, " <unfinished ...>"); is {
			begun[pid], line = at, cut
		}
		if _, rest, is := strings.Cut(line, " resumed>"); is {
			at = begun[pid]
			line = all[at].line + rest
		} else {
			all, whose = append(all, traceAct{}), append(whose, pid)
		}
		all[at] = traceAct{line: line, paths: pathsOf(line)}
		if c := traceChild.FindStringSubmatch(line); c != nil {
			child, _ := strconv.Atoi(c[1])
			born[child] = birth{pid, at}
		}
		if strings.Contains(line, fmt.Sprintf("setresuid(%d, %[1]d, %[1]d)", uid)) && strings.HasSuffix(line, " = 0") {
			if _, before := became[pid]; !before {
				became[pid] = at
			}
		}
	}
	var isRoot func(pid, at int) bool
	isRoot = func(pid, at int) bool {
		if since, did := became[pid]; did && since <= at {
			return false
		}
		b, known := born[pid]
		return !known || isRoot(b.parent, b.at)
	}
	for i := range all {
		all[i].root = isRoot(whose[i], i)
	}
	return all
}

// pathsOf are all paths that a line of a trace names, those of descriptors too.
func pathsOf(line string) []string {
	var all []string
	base := "/"
	for i, p := range tracePlace.FindAllStringSubmatch(line, -1) {
		if i == 0 {
			base = p[1]
		}
		all = append(all, p[1])
	}
	texts := traceText.FindAllStringSubmatch(line, -1)
	if strings.Contains(line, "execve(") && len(texts) > 1 {
		texts = texts[:1] // the others are words, which are not opened
	}
	for _, s := range texts {
		p := s[1]
		if !path.IsAbs(p) {
			p = base + "/" + p
		}
		all = append(all, path.Clean(p))
	}
	return all
}

// led are the acts of root that concern what is the account's, but for those that
// lead nowhere.
func (f *fort) led(acts []traceAct) (bad []string, knocks, own int) {
	runtime := fmt.Sprintf("/run/user/%d", f.uid)
	for _, a := range acts {
		var at string
		for _, p := range a.paths {
			for _, top := range []string{f.home(), runtime} {
				if p == top || strings.HasPrefix(p, top+"/") {
					at = p
				}
			}
		}
		switch {
		case at == "":
		case !a.root:
			own++
		case at == f.home() && strings.Contains(a.line, "stat"):
			// whether there is a home is asked of the folder that it lies in
		case strings.Contains(a.line, "openat2(") && strings.Contains(a.line, "O_PATH") && strings.Contains(a.line, "RESOLVE_NO_SYMLINKS") &&
			(at == runtime || at == runtime+"/systemd/private"):
			knocks++
		default:
			bad = append(bad, a.line)
		}
	}
	return bad, knocks, own
}
