package contexts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// patience is for how long another command's lock is waited for; one is held for
// as long as a small file is written.
const patience = 5 * time.Second

// locked runs f while it alone holds the lock of dir, which is made. Errors:
// those of f; unavailable when another command holds it for too long.
func locked(ctx context.Context, dir string, f func() error) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, ".lock")
	// O_NOFOLLOW: nobody makes us open what is elsewhere.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return failed("lock", path, err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f()
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return failed("lock", path, err)
		}
		timer := time.NewTimer(5 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fault.New(fault.Unavailable, "lock", path, errors.New("another command holds it")).WithHint("fuser -v " + path)
		}
	}
}

// makeFolder makes a folder for its owner alone.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed("make folder", dir, err)
	}
	return nil
}

// readSome reads a regular file of at most that many bytes.
func readSome(path string, most int64) ([]byte, error) {
	// O_NONBLOCK: a pipe in its place must not hold the command up.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}

// failed is the error of the system on a path, without the path in it twice.
func failed(op, path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	class := fault.Failed
	if errors.Is(err, fs.ErrPermission) {
		class = fault.Denied
	}
	return fault.New(class, op, path, err)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
