package bucket

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
)

// Any as an expected revision expects nothing: whatever is there is replaced.
const Any = ^uint64(0)

// Entry is the last value under a key.
type Entry[T any] struct {
	Key      string
	Value    T
	Revision uint64
	Time     time.Time // when the server stored it
	Deleted  bool      // a tombstone; Value is what Delete left behind
	Err      error     // why the value cannot be read; then Value is zero
}

// Codec turns values into bytes and back. Decode gets bytes that it may keep.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON is the codec of values that stand as JSON.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: func(text []byte) (v T, err error) { err = json.Unmarshal(text, &v); return v, err },
	}
}

// Bytes is the codec of values that are bytes.
func Bytes() Codec[[]byte] {
	same := func(b []byte) ([]byte, error) { return b, nil }
	return Codec[[]byte]{Encode: same, Decode: same}
}

// Headers of a stored value. The first is that of NATS key-value buckets, so
// that their tools see a tombstone as deleted; the second says which place of how
// many a value has in a commit.
const (
	operationHeader = "KV-Operation"
	deleted         = "DEL"
	placeHeader     = "Stead-Place"
)

// entry reads a stored message.
func (b *Bucket[T]) entry(key string, header nats.Header, data []byte, revision uint64, stored time.Time) Entry[T] {
	e := Entry[T]{Key: key, Revision: revision, Time: stored, Deleted: header.Get(operationHeader) == deleted}
	var err error
	if e.Value, err = b.codec.Decode(data); err != nil {
		e.Err = fault.New(fault.Failed, "read value", b.object(key), err)
	}
	return e
}

// ends is the revision of the last value of the commit that a value at revision
// belongs to.
func ends(header nats.Header, revision uint64) uint64 {
	at, of, _ := strings.Cut(header.Get(placeHeader), "/")
	i, err1 := strconv.ParseUint(at, 10, 16)
	n, err2 := strconv.ParseUint(of, 10, 16)
	if err1 != nil || err2 != nil || i > n {
		return revision
	}
	return revision + n - i
}

func place(i, n int) string { return strconv.Itoa(i) + "/" + strconv.Itoa(n) }

const (
	maxKey    = 512 // bytes
	maxTokens = 12  // the server allows a subject 16
)

// CheckKey returns an error of class invalid when key is none: one to twelve
// tokens joined by dots, each of letters, digits and "-/_=", 512 bytes in all.
func CheckKey(key string) error {
	tokens := strings.Split(key, ".")
	why := ""
	switch {
	case len(key) > maxKey:
		why = fmt.Sprintf("%d bytes; at most %d", len(key), maxKey)
	case len(tokens) > maxTokens:
		why = fmt.Sprintf("%d tokens; at most %d", len(tokens), maxTokens)
	default:
		for _, t := range tokens {
			if t == "" || strings.Trim(t, letters) != "" {
				why = "each token must be letters, digits and \"-/_=\""
			}
		}
	}
	if why == "" {
		return nil
	}
	return fault.New(fault.Invalid, "key", fmt.Sprintf("%q", key), errors.New(why))
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_="
