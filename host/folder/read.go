package folder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"stead/host/shape"
)

// readTree reads the files of t, one after the other.
func (s *Source) readTree(ctx context.Context, t *tree) Reading {
	r := Reading{Warnings: t.warnings, Files: len(t.files), Bytes: t.bytes, Fingerprint: t.fingerprint(), Problems: t.problems}
	if t.bytes > shape.MaxBatch {
		t.full = true
		r.Problems = append(r.Problems, shape.Problem{File: s.shown(""), Rule: fmt.Sprintf("the declaration files have %d bytes; at most %d are read", t.bytes, shape.MaxBatch),
			Cure: "declare less, or on more nodes"})
	}
	switch {
	case t.missing:
		r.Kind = Missing
		r.Problems = shape.Problems{{File: s.shown(""), Rule: "the folder does not exist", Cure: "make it; what was declared stays in force"}}
	case t.full:
		r.Kind = Bad
	case len(t.files) == 0 && len(r.Problems) == 0 && t.settled():
		r.Kind = Empty
		r.Problems = shape.Problems{{File: s.shown(""), Rule: "the folder holds no declaration file (*.yaml, *.yml)",
			Cure: "what was declared stays in force; a file that holds only a comment declares nothing on purpose"}}
	default:
		s.readFiles(ctx, t, &r)
	}
	return r
}

// readFiles reads every file, also after a bad one, and judges the whole.
func (s *Source) readFiles(ctx context.Context, t *tree, r *Reading) {
	for _, f := range t.files {
		if ctx.Err() != nil {
			return
		}
		data, problem := f.read()
		switch {
		case problem == nil:
			services, problems := f.parse(data)
			r.Services = append(r.Services, services...)
			r.Problems = appendSome(r.Problems, problems)
		case problem.moving:
			t.moving = append(t.moving, problem.Problem)
		default:
			t.failed = t.failed || problem.failed
			r.Problems = appendSome(r.Problems, shape.Problems{problem.Problem})
		}
	}
	r.Problems = append(r.Problems, shape.Check(r.Services, t.bytes)...)
	slices.SortStableFunc(r.Problems, byPlace)
	r.Problems = r.Problems.Limit()
	r.Kind = OK
	switch {
	case len(t.moving) > 0: // what else is wrong may be so for that reason
		r.Kind, r.Services, r.Problems = Unsettled, nil, t.moving
	case len(r.Problems) > 0:
		r.Kind, r.Services = Bad, nil
	}
}

// appendSome keeps the memory of problems bounded, and one more than are shown,
// so that Limit says that there are more.
func appendSome(p, more shape.Problems) shape.Problems {
	room := max(0, 2*shape.MaxProblems-len(p))
	return append(p, more[:min(room, len(more))]...)
}

// trouble is why a file was not read.
type trouble struct {
	shape.Problem
	moving bool // it is being written or replaced
	failed bool // the system said so, and its stamp does not tell
}

func (f file) trouble(rule, cure string) *trouble {
	return &trouble{Problem: shape.Problem{File: f.shown, Rule: rule, Cure: cure}}
}

func (f file) movingBecause(rule string) *trouble {
	return &trouble{Problem: shape.Problem{File: f.shown, Rule: rule, Cure: "it is read again soon; nothing changes until then"}, moving: true}
}

// read reads the file as the walk saw it; a file that changed since, or changes
// meanwhile, or is open for writing, is moving.
func (f file) read() ([]byte, *trouble) {
	// O_NONBLOCK: what took the place of a regular file must not hold us up.
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, f.movingBecause("it went away while the folder was being read")
	case errors.Is(err, unix.EAGAIN):
		return nil, f.movingBecause("another process holds a lease on it")
	case err != nil:
		p := f.trouble("the file cannot be read: "+err.Error(), "make it readable, or move it away; until then nothing changes")
		p.failed = true
		return nil, p
	}
	h := os.NewFile(uintptr(fd), f.path)
	defer h.Close()
	switch {
	case !f.unchanged(fd):
		return nil, f.movingBecause("it changed while the folder was being read")
	case beingWritten(fd):
		return nil, f.movingBecause("it is open for writing in another process")
	case f.stamp.size == 0:
		return nil, f.trouble("it is empty, and taken for half-written", "write a declaration; to withdraw, delete the file, or leave a comment in it")
	}
	return f.bytes(h, fd)
}

func (f file) bytes(h *os.File, fd int) ([]byte, *trouble) {
	var b bytes.Buffer
	b.Grow(int(f.stamp.size) + bytes.MinRead) // within shape.MaxBatch, as the sum was
	_, err := io.Copy(&b, io.LimitReader(h, f.stamp.size+1))
	switch {
	case err != nil:
		p := f.trouble("the file cannot be read: "+err.Error(), "see to its file system; until then nothing changes")
		p.failed = true
		return nil, p
	case int64(b.Len()) != f.stamp.size || !f.unchanged(fd):
		return nil, f.movingBecause("it changed while it was being read")
	}
	return b.Bytes(), nil
}

func (f file) unchanged(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && stampOf(&st) == f.stamp
}

// beingWritten reports whether some process has the file open for writing: the
// kernel grants no read lease then (fcntl(2), F_SETLEASE). Where leases are not to
// be had, on network file systems and for files of others without CAP_LEASE, it
// answers false. The lease is given back at once, so that no writer waits.
func beingWritten(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return errors.Is(err, unix.EAGAIN)
	}
	// It may fail only where there is no lease any more.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return false
}

// parse reads the declarations of a file. One without any is meant to have none
// only when it says something else.
func (f file) parse(data []byte) ([]*shape.Service, shape.Problems) {
	services, problems := shape.Parse(f.shown, data)
	if len(services) == 0 && len(problems) == 0 && !bytes.ContainsRune(data, '#') {
		problems = shape.Problems{{File: f.shown, Line: 1, Rule: "it holds neither a declaration nor a comment, and is taken for half-written",
			Cure: "write a declaration; to withdraw, delete the file, or leave a comment in it"}}
	}
	return services, problems
}
