package trail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
)

const (
	stream  = "AUDIT"
	subject = "audit.v1."
	// nobody stands in a subject for the node of an event that is of none.
	nobody = "_"
	// maxEvent is the size of one event as it is stored, in bytes.
	maxEvent = 16 << 10
	// twice is for how long the server knows the ids of what it stored; it allows
	// no more.
	twice = 2 * time.Minute
	// MaxBytes is how large the stream is at most, in bytes, when Options do not
	// say otherwise.
	MaxBytes = 32 << 20
	maxAge   = 90 * 24 * time.Hour
)

// Options bound the stream. Zero values are the defaults.
type Options struct {
	MaxBytes int64         // 0 is MaxBytes
	MaxAge   time.Duration // 0 is 90 days
	Replicas int           // 0 is one
	Logger   *slog.Logger
}

// Trail is the audit stream.
type Trail struct {
	conn *mesh.Conn
	o    Options

	mu    sync.Mutex
	moved chan struct{} // closed and replaced when this controller appended
}

// Open makes the stream when it is missing, and puts it right when its bounds are
// others. It is refused when a stream is there that cannot be put right.
func Open(ctx context.Context, c *mesh.Conn, o Options) (*Trail, error) {
	if c == nil || o.Logger == nil || o.MaxBytes < 0 || o.MaxAge < 0 {
		return nil, fault.New(fault.Internal, "open audit stream", stream, errors.New("connection and logger are required"))
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = MaxBytes
	}
	if o.MaxAge == 0 {
		o.MaxAge = maxAge
	}
	t := &Trail{conn: c, o: o, moved: make(chan struct{})}
	// Controllers that make streams at the same time are told by the server that
	// there is no room for all of them.
	for tries := 0; ; tries++ {
		err := t.open(ctx)
		if !fault.Is(err, fault.Unavailable) || tries == 100 || ctx.Err() != nil {
			if err != nil {
				return nil, fault.New(fault.ClassOf(err), "open audit stream", stream, err)
			}
			return t, nil
		}
		await(ctx, nil, glance/5)
	}
}

func (t *Trail) open(ctx context.Context) error {
	s, err := t.conn.Current()
	if err != nil {
		return err
	}
	var info jetstream.StreamInfo
	want := t.config()
	err = api(ctx, s, "STREAM.INFO."+stream, struct{}{}, &info)
	switch {
	case fault.Is(err, fault.NotFound):
		err = api(ctx, s, "STREAM.CREATE."+stream, want, &info)
	case err == nil && differs(want, info.Config):
		err = api(ctx, s, "STREAM.UPDATE."+stream, want, &info)
	}
	if err == nil && differs(want, info.Config) {
		err = fault.New(fault.Refused, "", "", errors.New("the server keeps it otherwise"))
	}
	return err
}

// config is the stream; every flag that matters is said.
func (t *Trail) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: stream, Description: "what happened", Subjects: []string{subject + "*"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: max(1, t.o.Replicas),
		MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxBytes: t.o.MaxBytes, MaxAge: t.o.MaxAge, MaxMsgSize: maxEvent + 1<<10,
		Discard:      jetstream.DiscardOld, // the oldest make room
		MaxConsumers: 1,                    // nobody needs one
		Duplicates:   min(twice, t.o.MaxAge),
		DenyDelete:   true, DenyPurge: true, AllowRollup: false,
		// A page is one direct read. A replica that is behind has less, and never a
		// gap, so what is missing comes with the next page.
		AllowDirect: true,
	}
}

// differs reports whether have is not as want wants it.
func differs(want, have jetstream.StreamConfig) bool {
	return len(have.Subjects) != 1 || have.Subjects[0] != want.Subjects[0] || have.Retention != want.Retention ||
		have.Storage != want.Storage || have.Replicas != want.Replicas || have.MaxMsgs != want.MaxMsgs ||
		have.MaxMsgsPerSubject != want.MaxMsgsPerSubject || have.MaxBytes != want.MaxBytes || have.MaxAge != want.MaxAge ||
		have.MaxMsgSize != want.MaxMsgSize || have.Discard != want.Discard || have.Duplicates != want.Duplicates ||
		have.DenyDelete != want.DenyDelete || have.DenyPurge != want.DenyPurge || have.AllowRollup != want.AllowRollup ||
		have.AllowDirect != want.AllowDirect || have.Sealed || have.Mirror != nil || len(have.Sources) > 0 || have.RePublish != nil
}

// answer is what every answer of JetStream may hold.
type answer struct {
	Problem *struct {
		Code        int    `json:"code"`
		Number      int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// Error codes of JetStream, as its errors.json numbers them.
const (
	noStream         = 10059
	resourceExceeded = 10023
	storageExceeded  = 10047
	nameInUse        = 10058 // another controller made it at the same time
)

func decode(text []byte, into any) error {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fault.New(fault.Failed, "", "", fmt.Errorf("no answer of JetStream: %w", err))
	}
	if p := a.Problem; p != nil {
		class := fault.Failed
		switch {
		case p.Number == noStream:
			class = fault.NotFound
		case p.Code == 503, p.Number == resourceExceeded, p.Number == storageExceeded, p.Number == nameInUse:
			class = fault.Unavailable
		}
		return fault.New(class, "", "", errors.New(p.Description))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fault.New(fault.Failed, "", "", fmt.Errorf("no answer of JetStream: %w", err))
	}
	return nil
}

func api(ctx context.Context, s *mesh.Session, verb string, request, into any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fault.New(fault.Internal, "", "", err)
	}
	m, err := s.Ask(ctx, &nats.Msg{Subject: "$JS.API." + verb, Data: text})
	if err != nil {
		return err
	}
	return decode(m.Data, into)
}
