package outbox

import (
	"context"
	"time"

	"stead/mesh/subject"
	"stead/mesh/wire"
)

// hourly is how often a profile is sent although nothing changed.
const hourly = time.Hour

// sendProfile sends the profile at the start, in every new connection, when it
// changed, and every hour.
func (b *Outbox) sendProfile(ctx context.Context) error {
	changed, stop := b.o.Link.Notify()
	defer stop()
	l := &line{topic: subject.Profile, link: b.o.Link, log: b.o.Logger}
	var in uint64      // the connection in which it was sent last
	var next time.Time // when it is sent again in the same
	for l.connected(ctx, changed) {
		session := b.o.Link.Session()
		if session == in && time.Now().Before(next) {
			select {
			case <-b.profile:
			case <-changed:
				continue
			case <-time.After(time.Until(next)):
			case <-ctx.Done():
				return nil
			}
		}
		var reply wire.ProfileReply
		if l.ask(ctx, b.o.Profile(), &reply) != nil {
			next = time.Time{}
			continue // connected waits
		}
		in, next = session, time.Now().Add(hourly)
		b.o.Removed(reply.Removed)
	}
	return nil
}
