package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// Bounds of requests in parts. What they hold is in memory, so it is bounded
// altogether, for each caller, and in time.
const (
	maxUpload   = 48 << 20 // bytes of one: 16 MiB of declarations as JSON
	maxHeld     = 96 << 20 // bytes of all
	maxUploads  = 16       // at one time
	ofOneCaller = 4        // of them
	uploadIdle  = 30 * time.Second
)

// uploads are the requests of which parts have come. They are of one controller,
// which answers their parts on an operation of its own: a caller whose controller
// goes away begins anew with another one.
type uploads struct {
	operation subject.Operation
	now       func() time.Time

	mu   sync.Mutex
	open map[string]*upload
	held int
}

// upload is one request in parts.
type upload struct {
	user      string // public key of the caller
	operation subject.Operation
	of, next  int
	data      []byte
	touched   time.Time
}

func newUploads() *uploads {
	return &uploads{
		operation: subject.Operation("part-" + strings.ToLower(rand.Text())), now: time.Now, open: map[string]*upload{},
	}
}

// upload says where the parts of a large request go.
func (d *desk) upload(_ context.Context, caller identity.Caller, _ struct{}) (wire.UploadReply, error) {
	id, err := d.uploads.begin(caller.User)
	return wire.UploadReply{Upload: id, Operation: d.uploads.operation}, err
}

// part takes one part. The last one is answered by the operation.
func (d *desk) part(ctx context.Context, caller identity.Caller, p wire.PartRequest) (any, error) {
	handle := d.changing()[p.Operation]
	if handle == nil {
		return nil, fault.New(fault.Invalid, "upload", fmt.Sprintf("%q", string(p.Operation)), errors.New("it takes no large requests"))
	}
	whole, data, err := d.uploads.take(caller.User, p)
	if err != nil || !whole {
		return struct{}{}, err
	}
	defer d.uploads.free(len(data))
	answer, err := handle(ctx, mesh.Request{Subject: subject.ForOperation(subject.Write, p.Operation), Caller: caller, Payload: data})
	return raw(answer), err
}

// raw is JSON that is an answer already.
type raw []byte

// begin makes place for a request.
func (u *uploads) begin(user string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweep()
	own := 0
	for _, one := range u.open {
		if one.user == user {
			own++
		}
	}
	if own >= ofOneCaller || len(u.open) >= maxUploads {
		return "", fault.New(fault.Unavailable, "upload", "", fmt.Errorf("busy: %d large requests are under way, %d of them this caller's", len(u.open), own))
	}
	id := rand.Text()
	u.open[id] = &upload{user: user, touched: u.now()}
	return id, nil
}

// take adds a part, and returns the request when it is whole: what it holds is
// then freed by the caller. A part that comes out of its order ends the request.
func (u *uploads) take(user string, p wire.PartRequest) (bool, []byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweep()
	one := u.open[p.Upload]
	if one == nil || one.user != user {
		return false, nil, fault.New(fault.Unavailable, "upload", "", errors.New("its parts before are not here any more; nothing was done"))
	}
	if one.next == 0 {
		one.operation, one.of, one.next = p.Operation, p.Of, 1
	}
	switch {
	case p.Operation != one.operation || p.Of != one.of || p.Part != one.next || p.Part > p.Of:
		u.drop(p.Upload)
		return false, nil, fault.New(fault.Invalid, "upload", "", fmt.Errorf("part %d of %d of %s; expected part %d of %d of %s",
			p.Part, p.Of, p.Operation, one.next, one.of, one.operation))
	case len(one.data)+len(p.Data) > maxUpload:
		u.drop(p.Upload)
		return false, nil, fault.New(fault.Invalid, "upload", "", fmt.Errorf("more than %d bytes", maxUpload))
	case u.held+len(p.Data) > maxHeld:
		u.drop(p.Upload)
		return false, nil, fault.New(fault.Unavailable, "upload", "", errors.New("busy: too much is under way"))
	}
	one.data = append(one.data, p.Data...)
	u.held += len(p.Data)
	one.next, one.touched = one.next+1, u.now()
	if p.Part < p.Of {
		return false, nil, nil
	}
	delete(u.open, p.Upload)
	return true, one.data, nil
}

// free gives back the place of n bytes.
func (u *uploads) free(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held -= n
}

// sweep forgets requests that do not go on. The lock is held.
func (u *uploads) sweep() {
	for id, one := range u.open {
		if u.now().Sub(one.touched) > uploadIdle {
			u.drop(id)
		}
	}
}

// drop forgets a request. The lock is held.
func (u *uploads) drop(id string) {
	u.held -= len(u.open[id].data)
	delete(u.open, id)
}
