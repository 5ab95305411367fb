package folder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/shape"
)

// settleFor is for how long Texts waits for files that are being written.
const settleFor = 2 * time.Second

// Text is one declaration file as it was read, for somebody else to judge.
type Text struct {
	Name string // as people see it: below the path that was given
	Data []byte
}

// Texts reads the declaration files of a folder, by the rules of Read, or one
// file, whose name may be any. Nothing in them is parsed. Files that are being
// written are waited for, two seconds at most. It returns besides what was passed
// over and might have been meant.
//
// Errors: class invalid with all shape.Problems (a missing or empty path, a file
// that cannot be read or is none, a limit); canceled when ctx ends.
func Texts(ctx context.Context, path string) (texts []Text, warnings []string, err error) {
	end := time.Now().Add(settleFor)
	for {
		r, err := readTexts(ctx, path)
		switch {
		case err != nil:
			return nil, nil, err
		case r.moving == nil && r.problems == nil:
			return r.texts, r.warnings, nil
		case r.problems != nil:
			return nil, r.warnings, r.problems.Err()
		case time.Now().After(end):
			return nil, r.warnings, r.moving.Err()
		}
		timer := time.NewTimer(quiet / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

type textReading struct {
	texts            []Text
	problems, moving shape.Problems
	warnings         []string
}

// readTexts is one look.
func readTexts(ctx context.Context, path string) (textReading, error) {
	s, err := New(Options{Dir: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return textReading{}, err
	}
	t, err := s.scanPath(ctx)
	if err != nil {
		return textReading{}, err
	}
	shown := s.shown("")
	r := textReading{problems: t.problems, moving: t.moving, warnings: t.warnings}
	switch {
	case t.missing:
		r.problems = shape.Problems{{File: shown, Rule: "there is no such file or folder", Cure: "see to the path"}}
	case t.bytes > shape.MaxBatch:
		r.problems = append(r.problems, shape.Problem{File: shown, Rule: fmt.Sprintf("the declaration files have %d bytes; at most %d are read", t.bytes, shape.MaxBatch),
			Cure: "declare less at a time"})
	case t.full:
	case len(t.files) == 0 && len(t.problems) == 0 && t.settled():
		r.problems = shape.Problems{{File: shown, Rule: "the folder holds no declaration file (*.yaml, *.yml)", Cure: "see to the path; to withdraw: stead withdraw NAME"}}
	default:
		r.read(ctx, t)
	}
	if err := ctx.Err(); err != nil {
		return textReading{}, fault.New(fault.Canceled, "read declarations", path, err)
	}
	return r, nil
}

func (r *textReading) read(ctx context.Context, t *tree) {
	for _, f := range t.files {
		if ctx.Err() != nil {
			return
		}
		if f.stamp.size == 0 {
			r.problems = append(r.problems, f.trouble("it is empty, and taken for half-written", "write a declaration, or delete the file").Problem)
			continue
		}
		data, problem := f.read()
		switch {
		case problem == nil:
			r.texts = append(r.texts, Text{f.shown, data})
		case problem.moving:
			problem.Cure = "try again when it is written"
			r.moving = append(r.moving, problem.Problem)
		default:
			r.problems = append(r.problems, problem.Problem)
		}
	}
	slices.SortStableFunc(r.problems, byPlace)
	r.problems = r.problems.Limit()
}

// scanPath is a walk through a folder, or to a single file.
func (s *Source) scanPath(ctx context.Context) (*tree, error) {
	var st unix.Stat_t
	err := unix.Stat(s.dir, &st)
	if errors.Is(err, unix.ENOENT) && unix.Lstat(s.dir, &st) == nil {
		t := &tree{s: s}
		t.problem(s.shown(""), "it is a link to a file that does not exist", "put the file there, or name another")
		return t, nil
	}
	if file := err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR; !file {
		return s.scan(ctx), nil // which says what is wrong with the path, too
	}
	above, err := New(Options{Dir: filepath.Dir(s.o.Dir), Logger: s.o.Logger})
	if err != nil {
		return nil, err
	}
	t := &tree{s: above}
	t.file(filepath.Base(s.o.Dir), false, &st, nil)
	return t, nil
}
