package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// runtimeOf NODE DIR is the runtime of a node, which holds node-service-manager
// and answers from files: DIR/VERB.UNIT or DIR/VERB has the reply, or an error as
// {"class", "op", "object", "cause", "hint"}. Without such a file it never answers.
// A stream has the lines of DIR/VERB.stream, and those that are added. What it is
// asked stands in DIR/calls.
func runtimeOf(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	n := &fakeRuntime{name: args[0], dir: ts.MkAbs(args[1])}
	ctx, cancel := context.WithCancel(context.Background())
	tools, asks := w.connect(ctx, ts, identity.Tool, n.name), w.connect(ctx, ts, identity.Runtime, n.name)
	seat, module := seats.Seeded()[0], modules.Catalogue()[0]
	ts.Check(n.claim(ctx, asks, module.Claim(seat.Name, subject.Node(n.name))))
	var ends []mesh.Endpoint
	for _, v := range seat.Verbs {
		for _, at := range []subject.Node{subject.Node(n.name), subject.All} {
			e := mesh.Endpoint{Name: string(v.Name), Subject: subject.ForVerb(v.Class, at, seat.Name, v.Name), Handler: n.answer, Timeout: 2 * time.Minute,
				Accounts: []identity.Account{identity.OPS, identity.VIEW}}
			if at == subject.All {
				e.Name += "-all"
			} else if v.Follows {
				e.Stream = n.stream
			}
			ends = append(ends, e)
		}
	}
	s, err := mesh.NewService(tools, mesh.ServiceOptions{Name: "stead-node", Node: n.name, Version: "1.0.0", Logger: slog.New(slog.DiscardHandler), Endpoints: ends, Drain: 100 * time.Millisecond})
	ts.Check(err)
	var run sync.WaitGroup
	run.Go(func() { s.Run(ctx) })
	<-s.Ready()
	ts.Defer(func() {
		cancel()
		run.Wait()
		tools.Close()
		asks.Close()
	})
}

// fakeRuntime answers from files.
type fakeRuntime struct {
	name, dir string
	mu        sync.Mutex // of the file of calls
}

// claim files a claim until the module is assigned to the node.
func (n *fakeRuntime) claim(ctx context.Context, conn *mesh.Conn, c seats.Claim) error {
	payload, err := json.Marshal(wire.ClaimRequest{Wire: wire.Version, Claims: []seats.Claim{c}})
	if err != nil {
		return err
	}
	last := errors.New("never asked")
	for range 200 {
		var reply wire.ClaimReply
		text, err := conn.Call(ctx, subject.ForNode(c.Node, subject.Claim), payload)
		if err == nil {
			err = json.Unmarshal(text, &reply)
		}
		if err == nil && len(reply.Verdicts) == 1 && reply.Verdicts[0].Refused == "" {
			return nil
		}
		last = errors.Join(err, fmt.Errorf("%v", reply.Verdicts))
		time.Sleep(20 * time.Millisecond)
	}
	return last
}

func (n *fakeRuntime) note(line string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(n.dir, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// asked is the verb of a call and the unit that it is about.
func (n *fakeRuntime) asked(r mesh.Request) (verb, unit string, err error) {
	a, err := subject.Parse(r.Subject)
	if err != nil {
		return "", "", err
	}
	var of struct{ Unit string }
	if err := json.Unmarshal(r.Payload, &of); err != nil {
		return "", "", err
	}
	return string(a.Verb), of.Unit, n.note(fmt.Sprintf("%s %s %s", r.Caller.Name, a.Verb, r.Payload))
}

func (n *fakeRuntime) answer(ctx context.Context, r mesh.Request) ([]byte, error) {
	verb, unit, err := n.asked(r)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(n.dir, verb+"."+unit))
	if err != nil {
		text, err = os.ReadFile(filepath.Join(n.dir, verb))
	}
	if err != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var f struct {
		Class                   fault.Class
		Op, Object, Cause, Hint string
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Class != "" {
		return nil, fault.New(f.Class, f.Op, f.Object, errors.New(f.Cause)).WithHint(f.Hint)
	}
	return bytes.TrimSpace(text), nil
}

// stream sends one line after the other of a file of entries, from behind the
// cursor that it is asked with.
func (n *fakeRuntime) stream(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
	verb, _, err := n.asked(r)
	if err != nil {
		return err
	}
	var a seats.JournalArguments
	if err := json.Unmarshal(r.Payload, &a); err != nil {
		return err
	}
	next := 0
	if a.Cursor != "" {
		if _, err := fmt.Sscanf(a.Cursor, "c%d", &next); err != nil {
			return err
		}
	}
	for {
		text, err := os.ReadFile(filepath.Join(n.dir, verb+".stream"))
		if err != nil {
			return fault.New(fault.Refused, verb, "", errors.New("it cannot be followed"))
		}
		for lines := strings.Split(strings.TrimSpace(string(text)), "\n"); next < len(lines); {
			next++
			cursor := fmt.Sprintf("c%d", next)
			if err := s.Send(seats.JournalReply{Entries: []json.RawMessage{json.RawMessage(lines[next-1])}, Cursor: cursor}.JSON(), cursor); err != nil {
				return err
			}
			if err := n.note("sent " + cursor); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// await FILE TEXT waits until a file has a text.
func await(ts *testscript.TestScript, _ bool, args []string) {
	var text []byte
	for range 1000 {
		text, _ = os.ReadFile(ts.MkAbs(args[0]))
		if strings.Contains(string(text), args[1]) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s never has %q: %s", args[0], args[1], text)
}

// appendFile FILE FROM adds what is in another file.
func appendFile(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteString(ts.ReadFile(args[1]))
	ts.Check(errors.Join(err, f.Close()))
}
