package tool

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// source of the events of calls.
const source = "runtime"

const (
	maxShown = 512 // bytes of arguments that the audit shows
	maxWords = 512 // bytes of an error in the audit
)

// Record is what the audit is told of one call.
type Record struct {
	ID        string
	Node      subject.Node
	Seat      subject.Seat
	Verb      subject.Verb
	Caller    Caller
	Arguments []byte
	Streamed  bool
	Began     time.Time
	Took      time.Duration
	Class     fault.Class // "": it was done
	Text      string      // of the error
}

func newRecord(node subject.Node, r Request) Record {
	return Record{ID: rand.Text(), Node: node, Seat: r.Seat, Verb: r.Verb, Caller: r.Caller, Arguments: r.Payload, Began: time.Now()}
}

// Event is the record as the audit stream has it.
func (r Record) Event() wire.Event {
	var named struct{ Unit, Scope string }
	if json.Unmarshal(r.Arguments, &named) != nil {
		named.Unit, named.Scope = "", "" // the arguments are no object, or hold other kinds under these names
	}
	sum := sha256.Sum256(r.Arguments)
	e := wire.Event{
		ID: r.ID, At: r.Began, Source: source, Node: string(r.Node), Who: r.Caller.String(), Kind: string(r.Verb),
		Unit: cut(unit.Full(named.Unit), 256), Scope: cut(named.Scope, 16), Text: fmt.Sprintf("done in %s", short(r.Took)),
		Call: &wire.CallEvent{
			Seat: string(r.Seat), Verb: string(r.Verb), Account: r.Caller.Account, User: r.Caller.User,
			Arguments: cut(string(r.Arguments), maxShown), Digest: hex.EncodeToString(sum[:]),
			Result: wire.CallDone, Streamed: r.Streamed, Took: r.Took.Seconds(),
		},
	}
	if r.Class != "" {
		e.Call.Result, e.Reason = string(r.Class), string(r.Class)
		e.Text = cut(r.Text, maxWords)
	}
	if r.Streamed && r.Class == fault.Canceled { // its caller went, which is how a stream ends
		e.Text = fmt.Sprintf("followed for %s", short(r.Took))
	}
	return e
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
