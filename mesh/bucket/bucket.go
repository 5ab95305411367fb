package bucket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
)

const (
	// headroom is what the headers of a value may take besides it, in bytes.
	headroom = 1 << 10
	// maxConsumers bounds the watchers of one bucket: a handful for each
	// controller, and those of connections that were lost in the last minute.
	maxConsumers = 256
)

var bucketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })

// Options say what a bucket is.
type Options struct {
	Name        string // lower-case letters, digits and "-"
	Description string
	MaxBytes    int64 // of all values, keys, tombstones and what the server adds to them (some 200 bytes each)
	MaxValue    int   // bytes of one value
	Replicas    int   // 0 is one, which is what an embedded server can have
	Existing    bool  // it must be there: Open is not_found otherwise, and makes none
	Logger      *slog.Logger
}

// Bucket is one bucket of values of one type.
type Bucket[T any] struct {
	conn   *mesh.Conn
	o      Options
	codec  Codec[T]
	stream string
	prefix string // of subjects
}

// Open makes the bucket when it is missing, and puts it right when its bounds
// are others. It is refused when a bucket is there that cannot be put right.
func Open[T any](ctx context.Context, conn *mesh.Conn, o Options, codec Codec[T]) (*Bucket[T], error) {
	if !bucketName().MatchString(o.Name) || o.MaxBytes <= 0 || o.MaxValue <= 0 || o.Logger == nil || codec.Encode == nil || codec.Decode == nil {
		return nil, fault.New(fault.Internal, "open bucket", o.Name, errors.New("name, bounds, logger and codec are required"))
	}
	o.Replicas = max(o.Replicas, 1)
	b := &Bucket[T]{conn: conn, o: o, codec: codec, stream: "KV_" + o.Name, prefix: "$KV." + o.Name + "."}
	s, err := conn.Current()
	if err != nil {
		return nil, err
	}
	info, err := b.info(ctx, s)
	want := b.config()
	switch {
	case fault.Is(err, fault.NotFound) && !o.Existing:
		info, err = b.configure(ctx, s, "CREATE", want)
	case err == nil && len(differences(want, info.Config)) > 0:
		info, err = b.configure(ctx, s, "UPDATE", want)
	}
	if err != nil {
		return nil, fault.New(fault.ClassOf(err), "open bucket", o.Name, err)
	}
	if wrong := differences(want, info.Config); len(wrong) > 0 {
		return nil, fault.New(fault.Refused, "open bucket", o.Name, fmt.Errorf("the server keeps it otherwise: %s", strings.Join(wrong, ", ")))
	}
	return b, nil
}

// config is the stream of a bucket. Every flag that matters is said, since some
// have defaults that would lose or open something.
func (b *Bucket[T]) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.stream, Description: b.o.Description, Subjects: []string{b.prefix + ">"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: b.o.Replicas,
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: b.o.MaxBytes, MaxMsgSize: int32(b.o.MaxValue + headroom), //nolint:gosec // checked by the server
		Discard: jetstream.DiscardNew, // a full bucket refuses and forgets nothing
		// Without a number the server's default of 1,000 holds, and -1 counts as none.
		MaxConsumers: maxConsumers,
		Duplicates:   time.Second, // ids are not used: an equal id drops a write
		DenyDelete:   true, DenyPurge: true, AllowRollup: false,
		AllowDirect:        false, // a direct read of a replica can be older than one's own write
		AllowAtomicPublish: true,
	}
}

// differences names what have is not as want wants it.
func differences(want, have jetstream.StreamConfig) []string {
	var out []string
	see := func(name string, w, h any) {
		if w != h {
			out = append(out, fmt.Sprintf("%s is %v, not %v", name, h, w))
		}
	}
	see("description", want.Description, have.Description)
	see("subjects", strings.Join(want.Subjects, " "), strings.Join(have.Subjects, " "))
	see("retention", want.Retention, have.Retention)
	see("storage", want.Storage, have.Storage)
	see("replicas", want.Replicas, have.Replicas)
	see("max_msgs_per_subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)
	see("max_msgs", want.MaxMsgs, have.MaxMsgs)
	see("max_bytes", want.MaxBytes, have.MaxBytes)
	see("max_msg_size", want.MaxMsgSize, have.MaxMsgSize)
	see("max_age", want.MaxAge, have.MaxAge)
	see("discard", want.Discard, have.Discard)
	see("max_consumers", want.MaxConsumers, have.MaxConsumers)
	see("deny_delete", want.DenyDelete, have.DenyDelete)
	see("deny_purge", want.DenyPurge, have.DenyPurge)
	see("allow_rollup_hdrs", want.AllowRollup, have.AllowRollup)
	see("allow_direct", want.AllowDirect, have.AllowDirect)
	see("allow_atomic", want.AllowAtomicPublish, have.AllowAtomicPublish)
	see("subject_delete_marker_ttl", want.SubjectDeleteMarkerTTL, have.SubjectDeleteMarkerTTL)
	see("sealed", want.Sealed, have.Sealed)
	see("sources", 0, len(have.Sources))
	see("mirror", false, have.Mirror != nil)
	see("republish", false, have.RePublish != nil)
	slices.Sort(out)
	return out
}

// object names a key of this bucket in an error.
func (b *Bucket[T]) object(key string) string { return b.o.Name + "/" + key }
