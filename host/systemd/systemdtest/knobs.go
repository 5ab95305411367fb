package systemdtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"stead/host/unit"
)

// Break is what befalls calls. The calls are "Observe", "Enqueue", "Reload",
// "ResetFailed", "Reloads", "UnitPath", "Version", "Enable", "Disable", and those of a
// Reader: "Units", "Named", "Files", "Enablement", "Details".
type Break struct {
	Unit  unit.Name     // of Enqueue and ResetFailed: befalls only this unit's request; "" all
	Delay time.Duration // passes before anything else
	Hang  bool          // no answer until the call times out, which drops the connection
	Err   error         // is answered
	After bool          // Err is answered although the call was done
	Times int           // how often; 0 is until Mend
}

// Break makes what b says befall the call.
func (f *Fake) Break(call string, b Break) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breaks[call] = append(f.breaks[call], &b)
}

// Mend ends all that Break asked for.
func (f *Fake) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.breaks)
}

// broken returns what befalls a call about a unit, "" for the call as a whole.
func (f *Fake) broken(call string, of unit.Name) *Break {
	for i, b := range f.breaks[call] {
		if b.Unit != of {
			continue
		}
		if b.Times == 1 {
			f.breaks[call] = slices.Delete(f.breaks[call], i, i+1)
		} else if b.Times > 1 {
			b.Times--
		}
		return b
	}
	return nil
}

// Disconnect loses the connection. It comes back with Reconnect.
func (f *Fake) Disconnect() {
	f.mu.Lock()
	l := f.link
	f.mu.Unlock()
	if l != nil {
		f.drop(l)
	}
}

// drop loses l, unless that was lost already.
func (f *Fake) drop(l *connection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.link == l {
		close(l.lost)
		f.link, f.linked = nil, make(chan struct{})
		f.tellAll()
	}
}

// Reconnect makes a new connection where there is none.
func (f *Fake) Reconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.link == nil {
		f.link = &connection{make(chan struct{})}
		close(f.linked)
		f.tellAll()
	}
}

// Calls says how often each call was made. An Enqueue or ResetFailed of many
// units is one call.
func (f *Fake) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// Log lists what was asked for and accepted, in order: "reload", "start
// x.service", "reset-failed x.service", "enable x.service".
func (f *Fake) Log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// Ready lets a service of Type=notify that is starting report that it is ready.
func (f *Fake) Ready(n unit.Name) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.units[n]
	if u == nil || u.sub != "start" || u.def.kind != "notify" {
		return fmt.Errorf("%s waits for nothing", n)
	}
	f.ready(u)
	return nil
}

// Exit lets the main process of n end with an exit status.
func (f *Fake) Exit(n unit.Name, status int32) error {
	return f.endProcess(func(u *loaded) bool { return u.name == n }, exit{code: exited, status: status})
}

// Kill ends the process with SIGKILL.
func (f *Fake) Kill(pid uint32) error {
	return f.endProcess(func(u *loaded) bool { return u.pid == pid }, exit{code: signaled, status: 9})
}

func (f *Fake) endProcess(is func(*loaded) bool, e exit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.units {
		if u.pid != 0 && is(u) {
			f.processEnded(u, e)
			return nil
		}
	}
	return fmt.Errorf("no such process")
}

// Other returns somebody else who acts on what f manages: its jobs and reloads
// suffer no Break, are not counted, and need no connection.
func (f *Fake) Other() Other { return fakeOther{f} }

type fakeOther struct{ f *Fake }

func (o fakeOther) Enqueue(_ context.Context, jobs []unit.JobRequest) []unit.Queued {
	out := make([]unit.Queued, len(jobs))
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	for i, r := range jobs {
		out[i] = o.f.enqueue(r)
	}
	return out
}

func (o fakeOther) Reload(context.Context) (time.Duration, error) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	o.f.reload(time.Now())
	return o.f.opts.ReloadTook, nil
}

func (o fakeOther) Kill(pid uint32) error { return o.f.Kill(pid) }

// Cut loses the connection, which comes back after 20 ms.
func (o fakeOther) Cut(context.Context) error {
	o.f.Disconnect()
	time.AfterFunc(20*time.Millisecond, o.f.Reconnect)
	return nil
}
