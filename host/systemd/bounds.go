package systemd

import (
	"errors"
	"io"
	"time"

	"stead/host/unit"
)

// Bounds of what is taken in of any manager.
const (
	mostGreeting = 16 << 10 // bytes before the first message
	mostJobEnds  = 1 << 16  // that wait to be drained
	mostPrints   = 1 << 15  // units of which the last signal is remembered
	mostText     = 256      // bytes of a name, a state or a result
	mostWords    = 1 << 10  // bytes of what the manager says of a definition that it cannot load
)

// Bounds of what is taken in of a user manager besides. A manager with 1,000
// units was seen to send 300 KiB in one message, and 6 MiB of signals for a reload.
const (
	mostUserMessage  = 2 << 20  // bytes of a message's body
	mostUserProperty = 16 << 10 // bytes of the answer with one property
	userTotal        = time.Minute
	userBurst        = 64 << 20 // bytes that are read as fast as they come
	userRate         = 4 << 20  // bytes a second from there on
)

var (
	errTalks  = errors.New("what it says is no greeting of a manager")
	errSilent = errors.New("no answer from the manager")
)

// greeting bounds what is read before the first message.
type greeting struct {
	io.Reader
	left int
}

func (g *greeting) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, errTalks
	}
	n, err := g.Reader.Read(p[:min(len(p), g.left)])
	g.left -= n
	return n, err
}

// throttle lets bytes pass at userRate, and userBurst of them at once. It is used
// by the goroutine that reads the socket: who sends more is read more slowly.
type throttle struct {
	left int // of the burst
	at   time.Time
	gone <-chan struct{} // nobody waits for what is read any longer
}

func (t *throttle) take(n int) {
	now := time.Now()
	if !t.at.IsZero() {
		t.left = min(t.left+int(min(now.Sub(t.at), time.Minute).Seconds()*userRate), userBurst)
	}
	t.at = now
	t.left -= n
	if t.left >= 0 {
		return
	}
	wait := time.NewTimer(time.Duration(-t.left) * time.Second / userRate)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-t.gone:
	}
}

// answers are the signatures of the answers to all calls of a Manager; what is in
// a variant is in values.
var (
	answers = map[string]bool{"": true, "o": true, "v": true, "s": true, "a(ssssssouso)": true, "a(sss)": true, "ba(sss)": true, "a{sv}": true}
	values  = map[string]bool{"s": true, "b": true, "u": true, "i": true, "t": true, "x": true, "as": true, "ay": true, "o": true, "a(sasbttttuii)": true,
		"(ss)": true, "(uo)": true, "a(sbbsi)": true}
)

// plausible reports whether godbus may see a message of a user manager: the answer
// to a call of ours, or a signal that somebody waits for. What it decodes by
// reflection takes a multiple of its size, and a call would be a goroutine.
func plausible(message []byte) bool {
	if len(message) < fixedHeader {
		return false
	}
	order, err := orderOf(message)
	if err != nil {
		return false
	}
	c := &cursor{b: message, order: order}
	small := len(message) < mostUserProperty
	switch message[1] {
	case kindSignal:
		s, ok := parseSignal(c)
		return ok && small && string(s.iface) == managerIfc && awaited[string(s.member)] == string(s.sig)
	case kindError:
		_, sig := replyHeader(c)
		return !c.bad && small && (len(sig) == 0 || string(sig) == "s")
	case kindReply:
		_, sig := replyHeader(c)
		if string(sig) == "v" {
			return small && values[string(c.signature())] && !c.bad
		}
		return !c.bad && answers[string(sig)]
	}
	return false
}

// awaited are the signals of a manager that are not taken in before godbus sees
// them.
var awaited = map[string]string{"JobRemoved": "uoss", "UnitNew": "so", "UnitRemoved": "so", "Reloading": "b"}

// Types of messages.
const (
	kindReply  = 2
	kindError  = 3
	kindSignal = 4
)

// short reports whether all of texts are such as a manager's are: names, states and
// results are ASCII, and not long (systemd.unit(5)).
func short(texts ...string) bool {
	for _, t := range texts {
		if len(t) > mostText {
			return false
		}
		for i := range len(t) {
			if t[i] < ' ' || t[i] > '~' {
				return false
			}
		}
	}
	return true
}

// clip makes a short line for people of what a manager says.
func clip(s string) string { return unit.Shown(s, mostWords) }

// nameOf reads a unit's name in the body of a signal, "" when there is none.
func nameOf(v any) unit.Name {
	s, _ := v.(string)
	if len(s) > unit.NameMax || !short(s) {
		return ""
	}
	return unit.Name(s)
}
