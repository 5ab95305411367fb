package escalate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

func TestQuestionsAreAnsweredAsTheManagerAnswersThem(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit2("t@.service", sleeper)
	o.unit2("b.timer", "[Timer]\nOnCalendar=daily\n")
	o.unit("a.service", sleeper)
	r.helper()
	c, _ := r.client(nil)
	u, ctx := c.User(), WithFor(bound(t), "operator alice")
	files, err := u.Files(ctx, unit.Filter{})
	require.NoError(t, err)
	want, err := o.m.Files(ctx, unit.Filter{})
	require.NoError(t, err)
	require.Equal(t, want, files)
	require.Len(t, files, 3)
	var names []unit.Name
	for _, f := range files {
		names = append(names, f.Name)
	}
	named, err := u.Named(ctx, names)
	require.NoError(t, err)
	wantNamed, err := o.m.Fake.Named(ctx, names)
	require.NoError(t, err)
	require.Equal(t, wantNamed, named)
	states, err := u.Enablement(ctx, names)
	require.NoError(t, err)
	wantStates, err := o.m.Enablement(ctx, names)
	require.NoError(t, err)
	require.Equal(t, wantStates, states)
	_, err = c.Do(ctx, Request{Act: Start, Unit: "a.service", Scope: unit.User})
	require.NoError(t, err)
	units, err := u.Units(ctx, unit.Filter{Patterns: []string{"a*"}})
	require.NoError(t, err)
	require.Len(t, units, 1)
	stands, err := u.Stands(ctx, named)
	require.NoError(t, err)
	wantStands, err := o.m.Stands(ctx, named)
	require.NoError(t, err)
	require.Equal(t, wantStands, stands)
	d, err := u.Details(ctx, "a.service")
	require.NoError(t, err)
	wantDetails, err := o.m.Details(ctx, "a.service")
	require.NoError(t, err)
	require.Equal(t, wantDetails, d)
	_, err = u.Details(ctx, "t@.service")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	none, err := u.Named(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none)
	r.logged("level=DEBUG", "question answered", "read=units", `for="operator alice"`)
	require.Empty(t, r.m.Log())
}

// TestLongAnswersComeInPieces, and long questions are several.
func TestLongAnswersComeInPieces(t *testing.T) {
	r := newRig(t)
	l := loud{units: 1500, text: strings.Repeat("d", 1500)}
	r.withOpal().reader = l
	r.helper()
	c, _ := r.client(nil)
	units, err := c.User().Units(bound(t), unit.Filter{})
	require.NoError(t, err)
	want, err := l.Units(t.Context(), unit.Filter{})
	require.NoError(t, err)
	require.True(t, slices.Equal(want, units))
	var names []unit.Name
	for _, u := range units {
		names = append(names, u.Name)
	}
	states, err := c.User().Enablement(bound(t), names)
	require.NoError(t, err)
	require.Len(t, states, len(names))
	for i := range names {
		require.Equal(t, string(names[i]), states[i])
	}
	require.Regexp(t, `read=units .*pieces=[12][0-9]`, r.log.text())
}

// unit2 is unit without a reload.
func (o *opal) unit2(name, text string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644))
}

func TestQuestionsThatAreNoneAreRefused(t *testing.T) {
	r := newRig(t)
	r.withOpal()
	r.helper()
	nc, in := greeted(t, r.path)
	in = bufio.NewReaderSize(in, maxAnswered)
	many := slices.Repeat([]unit.Name{"a.service"}, mostNames+1)
	f := &unit.Filter{}
	for i, e := range []struct {
		scope unit.Scope
		q     question
		class fault.Class
		text  string
	}{
		{"user", question{Read: "files-of", Filter: f}, fault.Refused, "no question that the helper answers"},
		{"", question{Read: readUnits, Filter: f}, fault.Refused, "user scope alone"},
		{"system", question{Read: readUnits, Filter: f}, fault.Refused, "user scope alone"},
		{"user", question{Read: readUnits}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readUnits, Filter: f, Names: many[:1]}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readNamed}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readNamed, Names: many}, fault.Invalid, "257 names"},
		{"user", question{Read: readNamed, Names: []unit.Name{"../x.service"}}, fault.Invalid, "is a path"},
		{"user", question{Read: readDetails, Names: many[:2]}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readDetails}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readStands, Names: many[:1]}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readStands, Names: many[:1], States: []unit.ActiveState{"A B"}}, fault.Invalid, "is no state"},
		{"user", question{Read: readAccount, Names: many[:1]}, fault.Invalid, "not asked as it should be"},
		{"user", question{Read: readUnits, Filter: &unit.Filter{Patterns: []string{"/etc/*"}}}, fault.Invalid, "no pattern"},
		{"user", question{Read: readFiles, Filter: &unit.Filter{States: []string{"x y"}}}, fault.Invalid, "no state or type"},
		{"user", question{Read: readFiles, Filter: &unit.Filter{Types: slices.Repeat([]string{"service"}, 65)}}, fault.Invalid, "65 types"},
	} {
		id := fmt.Sprintf("question0123456789x%d", i)
		line, err := json.Marshal(asked{ID: id, Scope: e.scope, question: e.q})
		require.NoError(t, err)
		_, err = nc.Write(append(line, '\n'))
		require.NoError(t, err)
		var a answered
		text, err := in.ReadBytes('\n')
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &a))
		require.True(t, a.Last, "%s", text)
		require.Equal(t, id, a.ID)
		require.Equal(t, e.class, a.Fault.Class, "%d: %s", i, text)
		require.Contains(t, a.Fault.Cause, e.text)
	}
	met, _ := r.opal.connections()
	require.Zero(t, met, "no manager was asked")
}

// TestWhatAnAccountHasItsManagerSayIsBounded: nothing of it closes the connection.
func TestWhatAnAccountHasItsManagerSayIsBounded(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	o.unit("a.service", sleeper)
	word := strings.Repeat("\x00<", 1<<20)
	o.reader = loud{units: 2000, text: word}
	links := unit.Linking{}
	for i := range 5000 {
		links.Made = append(links.Made, unit.LinkMade{Path: fmt.Sprintf("/srv/opal/%d/%s", i, strings.Repeat("p", 100)), To: "x"})
	}
	o.links = &links
	r.helper()
	c, _ := r.client(nil)
	_, err := c.User().Units(bound(t), unit.Filter{})
	require.ErrorContains(t, err, "user manager of opal: it says more than is taken in")
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	_, err = c.User().Details(bound(t), "a.service")
	require.ErrorContains(t, err, "it says more than is taken in")
	out, err := c.Do(bound(t), Request{Act: Enable, Unit: "a.service", Scope: unit.User})
	require.NoError(t, err)
	require.Equal(t, []string{"5000 links were made, 0 removed, 0 passed over: they are too many to be listed"}, out.Links.Notes)
	require.Equal(t, 1, strings.Count(r.log.text(), "the runtime is connected"))
	o.mu.Lock()
	o.reader = loud{units: 900, text: strings.Repeat("w", 3<<20)}
	o.mu.Unlock()
	o.lives("two")
	units, err := c.User().Units(bound(t), unit.Filter{})
	require.ErrorContains(t, err, "more than is taken in")
	require.Empty(t, units)
}

// TestUserManagerThatHangsKeepsNothingOfTheSystemWaiting, however many ask for it.
func TestUserManagerThatHangsKeepsNothingOfTheSystemWaiting(t *testing.T) {
	r := newRig(t)
	o := r.withOpal()
	r.unit("a.service", sleeper)
	o.unit("s.service", slow)
	hold := make(chan struct{})
	o.reader = loud{hold: hold, units: 1}
	r.helper()
	c, _ := r.client(nil)
	require.NoError(t, c.Wait(bound(t)))
	answers := make(chan error, maxReads)
	for range maxReads {
		go func() {
			err := errors.New("busy")
			for err != nil && strings.Contains(err.Error(), "busy") && t.Context().Err() == nil { // what is asked below may be one of the 256
				_, err = c.User().Units(context.Background(), unit.Filter{})
			}
			answers <- err
		}()
	}
	require.Eventually(t, func() bool {
		_, err := c.User().Account(bound(t))
		return err != nil && strings.Contains(err.Error(), "busy: 256 questions are under way")
	}, 8*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range maxUserCalls {
		go func() {
			for ctx.Err() == nil { // it may be one of too many that are begun at one time
				_, _ = c.Do(ctx, Request{Act: Start, Unit: "s.service", Scope: unit.User})
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	require.Eventually(t, func() bool {
		_, err := c.Do(bound(t), Request{Act: Start, Unit: "s.service", Scope: unit.User, NoWait: true})
		return err != nil && strings.Contains(err.Error(), "busy: 128 calls are under way")
	}, 20*time.Second, time.Millisecond)
	_, err := c.Do(bound(t), Request{Act: Restart, Unit: "a.service"})
	require.NoError(t, err)
	close(hold)
	for range maxReads {
		require.NoError(t, <-answers)
	}
}

// TestHelperOfAnOlderVersionIsNotAskedForUserScope: it would take it for the system's.
func TestHelperOfAnOlderVersionIsNotAskedForUserScope(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	heard := make(chan string, 16)
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		fmt.Fprintf(nc, `{"hello":1,"nonce":"n"}`+"\n")
		in := bufio.NewScanner(nc)
		for in.Scan() {
			heard <- in.Text()
		}
		close(heard)
	}()
	c, err := NewClient(ClientOptions{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	// What is asked before there is a connection waits for one, and is not sent either.
	early := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, Request{Act: Stop, Unit: "a.service", Scope: unit.User})
		early <- err
	}()
	require.NoError(t, c.Wait(bound(t)))
	_, err = c.Do(bound(t), Request{Act: Stop, Unit: "a.service", Scope: unit.User})
	require.ErrorContains(t, err, "of a version that serves no user scope")
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	_, err = c.User().Units(bound(t), unit.Filter{})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.Contains(t, []fault.Class{fault.Unavailable, fault.Unsupported}, fault.ClassOf(<-early))
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, ln.Close())
	for line := range heard {
		require.NotContains(t, line, "a.service")
		require.NotContains(t, line, "read")
	}
}

func TestHelperWithoutUsersServesNoUserScope(t *testing.T) {
	r := newRig(t)
	r.helper()
	nc, in := greeted(t, r.path)
	for _, a := range []asked{{ID: "call0123456789012", Act: Stop, Unit: "a.service", Scope: unit.User}, {ID: "read0123456789012", Scope: unit.User, question: question{Read: readAccount}}} {
		line, err := json.Marshal(a)
		require.NoError(t, err)
		_, err = nc.Write(append(line, '\n'))
		require.NoError(t, err)
		text, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, text, "this root helper serves no user scope")
	}
	require.Empty(t, r.m.Log())
}
