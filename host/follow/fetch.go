package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// maxDigests bounds one question for bodies; their sizes are bounded by what a
// message carries.
const maxDigests = 500

// fetch gets the bodies that are lacking, in as many questions as it takes. What
// was fetched is kept for the next turn when one fails; it is never more than an
// index names. Moved says that some are in the node's set no longer, and that
// there is a newer index.
func (f *Follower) fetch(ctx context.Context, lack []wire.Entry) (moved bool, err error) {
	wanted := make(map[string]wire.Entry, len(lack))
	for _, e := range lack {
		wanted[e.Digest] = e
	}
	for digest := range f.bodies {
		if _, ok := wanted[digest]; !ok {
			delete(f.bodies, digest) // of an index that was never accepted
		}
	}
	lack = slices.DeleteFunc(slices.Clone(lack), func(e wire.Entry) bool { return f.bodies[e.Digest] != nil })
	for {
		f.tell(func(s *Source) { s.Fetching = len(lack) })
		if len(lack) == 0 {
			return false, nil
		}
		var reply wire.BodyReply
		if err := f.ask(ctx, subject.Body, wire.BodyRequest{Wire: wire.Version, Digests: batch(lack)}, &reply); err != nil {
			return false, err
		}
		if moved, err := f.take(lack, reply, wanted); moved || err != nil {
			return moved, err
		}
		lack = slices.DeleteFunc(lack, func(e wire.Entry) bool { return f.bodies[e.Digest] != nil })
	}
}

// batch are the digests of the first entries, at least one, whose bodies fit into
// one answer.
func batch(lack []wire.Entry) []string {
	var digests []string
	size := 0
	for _, e := range lack {
		if size += e.Size; len(digests) > 0 && (size > wire.MaxPage || len(digests) == maxDigests) {
			break
		}
		digests = append(digests, e.Digest)
	}
	return digests
}

// take keeps the bodies of an answer. Each is known by its digest and nothing
// else, so their order does not matter, and one that nobody asked for is refused
// with all of the answer that comes after it.
func (f *Follower) take(lack []wire.Entry, reply wire.BodyReply, wanted map[string]wire.Entry) (moved bool, err error) {
	before := len(f.bodies)
	for _, body := range reply.Bodies {
		sum := sha256.Sum256(body)
		e, ok := wanted[hex.EncodeToString(sum[:])]
		if !ok {
			return false, fault.New(fault.Refused, "fetch declarations", lack[0].Name, misled("it holds a body that was not asked for"))
		}
		f.bodies[e.Digest] = body
	}
	for _, digest := range reply.Missing {
		if _, ok := wanted[digest]; ok && f.bodies[digest] == nil {
			return true, nil
		}
	}
	if len(f.bodies) == before {
		return false, fault.New(fault.Failed, "fetch declarations", lack[0].Name, misled("it holds nothing new of what was asked for"))
	}
	return false, nil
}
