package bucket

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
)

// problem is an error that JetStream answers with.
type problem struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// Error implements error.
func (p *problem) Error() string { return p.Description }

// Error codes of JetStream, as its errors.json numbers them.
const (
	storeFailed      = 10077 // with the store's words
	createFailed     = 10049 // with the reason
	tooLargeMessage  = 10054
	wrongSequence    = 10071
	wrongSequence2   = 10164 // the same, of a stream with replicas
	atomicDisabled   = 10174
	incompleteBatch  = 10176
	tooLargeBatch    = 10199
	tooManyBatches   = 10210
	overlapping      = 10065
	nameInUse        = 10058
	noMessage        = 10037
	noStream         = 10059
	notForAccount    = 10039
	notEnabled       = 10076
	storageExceeded  = 10047
	resourceExceeded = 10023
)

// fault gives the problem its class.
func (p *problem) fault() error {
	class := fault.Failed
	switch p.ErrCode {
	case wrongSequence, wrongSequence2, overlapping, nameInUse:
		class = fault.Conflict
	case noMessage, noStream:
		class = fault.NotFound
	case tooLargeMessage, tooLargeBatch:
		class = fault.Invalid
	case storeFailed:
		if strings.HasPrefix(p.Description, "maximum ") {
			class = fault.Refused // the bucket is full
		}
	case createFailed:
		if p.Description == "error creating store for stream" {
			class = fault.Unavailable // two make it at once, or the disk is full
		}
	case atomicDisabled, notForAccount:
		class = fault.Unsupported
	case tooManyBatches, notEnabled, storageExceeded, resourceExceeded:
		class = fault.Unavailable
	default:
		if p.Code == 503 {
			class = fault.Unavailable
		}
	}
	if p.ErrCode == incompleteBatch {
		return fault.New(class, "", "", fmt.Errorf("the server did not store all of it, its disk may be full: %w", p))
	}
	return fault.New(class, "", "", p)
}

// reply is what every answer of JetStream may hold.
type reply struct {
	Problem *problem `json:"error"`
}

// api asks JetStream. Without an answer the error is that of mesh.Conn's Call.
func api(ctx context.Context, s *mesh.Session, verb string, request, into any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fault.New(fault.Internal, "", "", err)
	}
	answer, err := s.Ask(ctx, &nats.Msg{Subject: "$JS.API." + verb, Data: text})
	if err != nil {
		return err
	}
	return decode(answer.Data, into)
}

func decode(text []byte, into any) error {
	var r reply
	if err := json.Unmarshal(text, &r); err != nil {
		return fault.New(fault.Failed, "", "", fmt.Errorf("no answer of JetStream: %w", err))
	}
	if r.Problem != nil {
		return r.Problem.fault()
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fault.New(fault.Failed, "", "", fmt.Errorf("no answer of JetStream: %w", err))
	}
	return nil
}

func (b *Bucket[T]) info(ctx context.Context, s *mesh.Session) (jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	err := api(ctx, s, "STREAM.INFO."+b.stream, struct{}{}, &info)
	return info, err
}

func (b *Bucket[T]) configure(ctx context.Context, s *mesh.Session, verb string, c jetstream.StreamConfig) (jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	err := api(ctx, s, "STREAM."+verb+"."+b.stream, c, &info)
	return info, err
}

// stored is a message of a stream as it is read by its subject.
type stored struct {
	Message struct {
		Subject  string    `json:"subject"`
		Revision uint64    `json:"seq"`
		Header   []byte    `json:"hdrs"`
		Data     []byte    `json:"data"`
		Time     time.Time `json:"time"`
	} `json:"message"`
}

func (b *Bucket[T]) last(ctx context.Context, s *mesh.Session, key string) (Entry[T], error) {
	return b.find(ctx, s, map[string]any{"last_by_subj": b.prefix + key})
}

// find reads the message that request, one of ADR-31 of NATS, asks for.
func (b *Bucket[T]) find(ctx context.Context, s *mesh.Session, request map[string]any) (Entry[T], error) {
	var m stored
	if err := api(ctx, s, "STREAM.MSG.GET."+b.stream, request, &m); err != nil {
		return Entry[T]{}, err
	}
	key, ours := strings.CutPrefix(m.Message.Subject, b.prefix)
	if !ours {
		return Entry[T]{}, fault.New(fault.Failed, "", "", fmt.Errorf("answered with a message of %q", m.Message.Subject))
	}
	var header nats.Header
	if len(m.Message.Header) > 0 {
		var err error
		if header, err = nats.DecodeHeadersMsg(m.Message.Header); err != nil {
			return Entry[T]{}, fault.New(fault.Failed, "", "", err)
		}
	}
	return b.entry(key, header, m.Message.Data, m.Message.Revision, m.Message.Time), nil
}

// stands is JetStream's acknowledgement of a write.
type stands struct {
	Stream   string `json:"stream"`
	Revision uint64 `json:"seq"`
	Count    int    `json:"count"`
}

// send writes one message and returns its revision.
func (b *Bucket[T]) send(ctx context.Context, s *mesh.Session, m *nats.Msg) (stands, error) {
	answer, err := s.Ask(ctx, m)
	if err != nil {
		return stands{}, err
	}
	var ack stands
	if err := decode(answer.Data, &ack); err != nil {
		return stands{}, err
	}
	if ack.Stream != b.stream || ack.Revision == 0 {
		return stands{}, fault.New(fault.Failed, "", "", fmt.Errorf("acknowledged by stream %q", ack.Stream))
	}
	return ack, nil
}
