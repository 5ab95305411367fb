package system

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
)

// callerEnv has the test binary call verbs in place of testing: it names a
// file of credentials. Such a process is on the controller's node and keeps one
// connection, over which many calls go at once.
const callerEnv = "STEAD_SYSTEM_CALLER"

// callerProgram is where the test binary lies on that node.
const callerProgram = "/root/caller"

// seatCall is a call, as the process reads it.
type seatCall struct {
	ID        int
	Node      subject.Node
	Verb      subject.Verb
	Arguments map[string]any
	Deadline  time.Duration
}

// class is that of the verb.
func (c seatCall) class() subject.Class {
	for _, v := range seats.Seeded()[0].Verbs {
		if v.Name == c.Verb {
			return v.Class
		}
	}
	return ""
}

func (c seatCall) String() string {
	return fmt.Sprintf("%s %v on %s", c.Verb, c.Arguments["unit"], c.Node)
}

// seatAnswer is what became of it.
type seatAnswer struct {
	ID     int
	Reply  json.RawMessage
	Silent string
	Class  fault.Class
	Text   string
	Took   time.Duration
	At     time.Time
}

// callVerbs is the process: it reads calls from in and writes answers to out.
func callVerbs(file string, in io.Reader, out io.Writer) error {
	who, err := identity.ReadCredentials(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn, err := mesh.Connect(ctx, mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: "caller",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	verbs := client.NewVerbs(conn)
	var calls sync.WaitGroup
	var mu sync.Mutex // guards out
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c seatCall
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		calls.Go(func() {
			answer, err := json.Marshal(c.call(ctx, verbs))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				answer = []byte(err.Error())
			}
			_, _ = fmt.Fprintf(out, "%s\n", answer)
		})
	}
	calls.Wait()
	return lines.Err()
}

func (c seatCall) call(ctx context.Context, verbs *client.Verbs) seatAnswer {
	ctx, cancel := context.WithTimeout(ctx, c.Deadline)
	defer cancel()
	begun := time.Now()
	a := verbs.Call(ctx, client.Verb{Class: c.class(), Seat: seats.NodeServiceManager, Name: c.Verb}, c.Node, c.Arguments)
	answer := seatAnswer{ID: c.ID, Reply: a.Reply, Silent: a.Silent, Class: fault.ClassOf(a.Err), Took: time.Since(begun), At: time.Now()}
	if a.Err != nil {
		answer.Text = a.Err.Error()
	}
	return answer
}

// caller is such a process, as a test has it.
type caller struct {
	r  *rig
	in io.WriteCloser

	mu      sync.Mutex // guards what follows
	calls   map[int]seatCall
	answers map[int][]seatAnswer
}

// caller starts one as the operator bob. It ends with the test.
func (r *rig) caller() *caller {
	r.Helper()
	const credentials = "/root/bob.json"
	self, err := os.Executable()
	require.NoError(r, err)
	require.NoError(r, r.ctl.CopyIn(self, callerProgram))
	r.ctl.Run(r.T, "stead", "credentials", "operator", "bob", "--out", credentials)
	c := &caller{r: r, calls: map[int]seatCall{}, answers: map[int][]seatAnswer{}}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := r.ctl.Command(ctx, "env", callerEnv+"="+credentials, callerProgram)
	cmd.Stderr = r.Output()
	c.in, err = cmd.StdinPipe()
	require.NoError(r, err)
	out, err := cmd.StdoutPipe()
	require.NoError(r, err)
	require.NoError(r, cmd.Start())
	read := make(chan error, 1)
	go func() { read <- c.read(out) }()
	r.Cleanup(func() {
		_ = c.in.Close()
		late := time.AfterFunc(patience, cancel)
		defer late.Stop()
		err := <-read
		if end := cmd.Wait(); err == nil {
			err = end
		}
		if err != nil {
			r.Errorf("the caller: %v", err)
		}
	})
	return c
}

// read takes in answers.
func (c *caller) read(out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a seatAnswer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return fmt.Errorf("%w: %s", err, lines.Text())
		}
		c.mu.Lock()
		c.answers[a.ID] = append(c.answers[a.ID], a)
		c.mu.Unlock()
	}
	return lines.Err()
}

// call begins a call and returns its number.
func (c *caller) call(q seatCall) int {
	c.r.Helper()
	c.mu.Lock()
	q.ID = len(c.calls)
	c.calls[q.ID] = q
	c.mu.Unlock()
	text, err := json.Marshal(q)
	require.NoError(c.r, err)
	_, err = fmt.Fprintf(c.in, "%s\n", text)
	require.NoError(c.r, err)
	return q.ID
}

// answer waits for the answer to a call.
func (c *caller) answer(id int) seatAnswer {
	c.r.Helper()
	var got []seatAnswer
	c.mu.Lock()
	q := c.calls[id]
	c.mu.Unlock()
	c.r.ctl.until("there is an answer to "+q.String(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		got = c.answers[id]
		return len(got) > 0
	})
	return got[0]
}
