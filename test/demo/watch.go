package main

import (
	"bytes"
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watch sees, from outside, a file being another for a while.
type watch struct {
	path  string
	was   []byte
	inode uint64
	done  chan struct{}

	begun, ended time.Time // of the first and last moment at which it was seen to be another; zero: not seen
	err          error
}

// startWatch begins to look at a file that is as it should be. ctx bounds it.
func startWatch(ctx context.Context, path string) (*watch, error) {
	was, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &watch{path: path, was: was, inode: inode(path), done: make(chan struct{})}
	go w.run(ctx)
	return w, nil
}

// run looks until the file is as it was, and yet not the same file: whoever changes it and whoever puts it back does so by a new one.
func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		is, err := os.ReadFile(w.path)
		now := time.Now()
		switch {
		case err != nil || !bytes.Equal(is, w.was):
			if w.begun.IsZero() {
				w.begun = now
			}
		case inode(w.path) != w.inode:
			w.ended = now
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
	w.err = context.Cause(ctx)
}

// wait returns for how long the file was another. It is 0 when that was too short to be seen.
func (w *watch) wait() (time.Duration, error) {
	<-w.done
	if w.begun.IsZero() {
		return 0, w.err
	}
	return w.ended.Sub(w.begun), w.err
}

func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Ino
}
