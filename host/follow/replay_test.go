package follow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
)

// An index that was signed for another question may say what is no longer true:
// it is no answer, whatever the host holds, and even when it holds nothing.
func TestAnIndexOfAnotherQuestionIsNoAnswer(t *testing.T) {
	replay := func(r *rig, old *wire.Signed) {
		r.c.with(func(c *controllers) {
			c.lie = func(_ wire.SyncRequest, reply *wire.SyncReply) { reply.Signed = old }
		})
	}
	for name, nonce := range map[string]string{"of another question": "of another question", "of none": ""} {
		bubble(t, func(t *testing.T, r *rig) {
			r.c.apply(1, "web", "db")
			past := r.c.sign(r.c.index(wire.SyncRequest{Nonce: nonce}))
			r.c.withdraw("db")
			replay(r, past)
			r.start()
			after(5 * time.Minute)
			require.Empty(t, r.now(), "%s: what was withdrawn before the host came", name)
			require.Contains(t, r.f.Source().Trouble, "answers another question")
			r.c.with(func(c *controllers) { c.lie = nil })
			after(time.Minute)
			require.Equal(t, []string{"web.1"}, r.now())
			require.Empty(t, r.f.Source().Trouble)

			r.c.apply(2, "web")
			newer := r.c.sign(r.c.index(wire.SyncRequest{Nonce: nonce}))
			r.c.apply(3, "web")
			replay(r, newer)
			after(5 * time.Minute)
			require.Equal(t, []string{"web.1"}, r.now(), "%s: newer than what is held, and not the newest", name)
			require.Contains(t, r.f.Source().Trouble, "answers another question")
		})
	}
}
