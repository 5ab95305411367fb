package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// maxParts is how many parts a request may have. The bound of what is declared
// in one apply is 16 MiB, and its JSON is not three times as long.
const maxParts = 96

// upload sends a large request in parts to one controller, which answers the
// last of them. When that controller goes away meanwhile nothing was done, and
// the whole request is sent again, perhaps to another one.
func (c *Client) upload(ctx context.Context, q question, payload []byte) ([]byte, error) {
	of := (len(payload) + wire.MaxPart - 1) / wire.MaxPart
	if of > maxParts {
		return nil, fault.New(fault.Invalid, string(q.op), "", fmt.Errorf("the request has %d bytes; at most %d", len(payload), maxParts*wire.MaxPart)).
			WithHint("declare fewer files at once")
	}
	answer, err := c.call(ctx, q, wire.Upload, []byte("{}"))
	if err != nil {
		return nil, err
	}
	var to wire.UploadReply
	if err := json.Unmarshal(answer, &to); err != nil {
		return nil, fault.New(fault.Internal, string(wire.Upload), "", errors.New("the controller's answer cannot be read: "+err.Error()))
	}
	if _, err := subject.ParseOperation(string(to.Operation)); err != nil {
		return nil, fault.New(fault.Internal, string(wire.Upload), "", err)
	}
	for n := 1; n <= of; n++ {
		data := payload[(n-1)*wire.MaxPart : min(n*wire.MaxPart, len(payload))]
		part, err := encode(wire.PartRequest{Upload: to.Upload, Operation: q.op, Part: n, Of: of, Data: data})
		if err != nil {
			return nil, fault.New(fault.Internal, string(wire.Upload), "", err)
		}
		if n == of {
			q.wait = largeFor
		}
		answer, err = c.call(ctx, q, to.Operation, part)
		if err != nil {
			return nil, beginning(err, n < of)
		}
	}
	return answer, nil
}

// beginning says of a part before the last that nothing was done, whatever
// became of it.
func beginning(err error, early bool) error {
	if early && fault.Is(err, fault.Timeout) {
		return fault.New(fault.Unavailable, string(wire.Upload), "", err)
	}
	return err
}
