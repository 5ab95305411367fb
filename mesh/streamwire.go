package mesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// A stream on the wire. The call names a token of the caller's making and what
// it grants at first; answers are chunks and beats, counted, and one end; the
// caller grants and cancels on the control subject of that token. It says again
// and again all that it has granted so far, so that a control message may be
// lost, late or come twice, and its silence means that it is gone.
const (
	streamHeader = "Stead-Stream" // of the call: the token of the control subject
	grantHeader  = "Stead-Grant"  // of the call: what may be sent before any control message
	seqHeader    = "Stead-Seq"    // of an answer: how many chunks came before it
	kindHeader   = "Stead-Kind"   // of an answer: what it is
	cursorHeader = "Stead-Cursor" // of a chunk: where to go on behind it
)

// The kinds of answers. An error of the handler is an end with the headers and
// the body of an error.
const (
	kindChunk = "chunk"
	kindBeat  = "beat"  // nothing but a sign of life
	kindEnd   = "end"   // the handler is done
	kindAgain = "again" // the handler had to end: ask again behind the last chunk
)

const (
	// grantEvery is how often the caller speaks, and callerSilence after how long
	// without a word it is gone.
	grantEvery    = 200 * time.Millisecond
	callerSilence = 800 * time.Millisecond
	// beatEvery is how often the handler speaks, and handlerSilence after how long
	// without a word it is gone.
	beatEvery      = time.Second
	handlerSilence = 3500 * time.Millisecond
	// streamLife is how long a handler may go on: below the hour for which the
	// server lets it answer one call.
	streamLife = 50 * time.Minute

	// chunkCost is what a chunk takes of the credit besides its bytes, so that
	// empty ones are bounded too.
	chunkCost = 512
	// firstWindow is what a caller grants that does not say; maxWindow is how
	// far a handler goes ahead of its caller, whatever that grants.
	firstWindow = 256 << 10
	maxWindow   = 8 << 20
	maxCursor   = 1 << 10 // bytes
	maxControl  = 256     // bytes of a control message
)

// control is what the caller of a stream says. Grant is all that it has granted
// since the stream began: bytes of chunks and chunkCost for each.
type control struct {
	Grant  int64 `json:"grant"`
	Cancel bool  `json:"cancel,omitempty"`
}

func (c control) encode() []byte {
	// A struct of a number and a truth value has no form that cannot be encoded.
	text, _ := json.Marshal(c)
	return text
}

func readControl(text []byte) (control, error) {
	var c control
	if len(text) > maxControl {
		return c, fmt.Errorf("a control message of %d bytes", len(text))
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	if c.Grant < 0 {
		return c, errors.New("a grant below zero")
	}
	return c, nil
}

// number reads a header that holds a count.
func number(m *nats.Msg, header string) (int64, bool) {
	n, err := strconv.ParseInt(m.Header.Get(header), 10, 64)
	return n, err == nil && n >= 0
}

// checkCursor says why s cannot stand in a header as it is.
func checkCursor(s string) error {
	if s == "" || len(s) > maxCursor {
		return fmt.Errorf("a cursor of %d bytes; 1 to %d", len(s), maxCursor)
	}
	for _, b := range []byte(s) {
		if b <= ' ' || b >= 0x7f {
			return fmt.Errorf("a cursor with the byte %#02x", b)
		}
	}
	return nil
}
