package delegate

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"stead/host/become"
	"stead/host/fault"
)

// Options say whose child it is.
type Options struct {
	Login     become.Login
	Arguments []string     // with which this program becomes the account and calls Serve, but for --as; required
	Logger    *slog.Logger // required
	// Answer is how long the child may take for one answer; default 30 s.
	Answer time.Duration
}

// Bounds of waiting.
const (
	defaultAnswer = 30 * time.Second
	waitForChild  = 2 * time.Second // for one that is being started
	firstDelay    = 100 * time.Millisecond
	lastDelay     = 10 * time.Second
	livedWell     = 10 * time.Second // a child that lived so long starts the delay anew
	doubtful      = 3                // so many that did not, and Trouble tells
	mostStuck     = 2                // children that were killed and have not ended, besides the one that serves
)

// Delegate keeps a child that is the account. Make it with New; Run starts the
// child once Open has said which folders it serves.
type Delegate struct {
	o Options

	turn chan struct{} // one call at a time; has a token while somebody has the turn
	wake chan struct{} // the watcher's
	want chan struct{} // folders to watch have changed
	set  chan struct{} // Open was called
	room chan struct{} // has a token for each child that has not ended

	mu      sync.Mutex // guards what follows
	config  *Config
	process *process // nil while there is none
	up      chan struct{}
	deaths  int
	trouble string
	dirs    []string
	paths   map[string]bool
	all     bool
}

// New checks o and starts nothing.
func New(o Options) (*Delegate, error) {
	if _, err := become.Parse(o.Login.String()); err != nil {
		return nil, err
	}
	if o.Logger == nil || o.Arguments == nil {
		return nil, fault.New(fault.Invalid, "act as an account", o.Login.Name, errors.New("a logger, and the arguments of the child are wanted"))
	}
	if o.Answer == 0 {
		o.Answer = defaultAnswer
	}
	return &Delegate{o: o, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), want: make(chan struct{}, 1), set: make(chan struct{}, 1),
		room: make(chan struct{}, 1+mostStuck), up: make(chan struct{}), paths: make(map[string]bool)}, nil
}

// Open says where the account's manager looks for units, and of which version of
// systemd it is. A child that runs goes over to it.
func (d *Delegate) Open(unitPath []string, version int) {
	d.mu.Lock()
	c := &Config{Name: d.o.Login.Name, Group: groupName(d.o.Login.GID), UID: d.o.Login.UID, GID: d.o.Login.GID, Home: d.o.Login.Home, UnitPath: slices.Clone(unitPath), Version: version}
	if d.config != nil && slices.Equal(d.config.UnitPath, c.UnitPath) && d.config.Version == version {
		d.mu.Unlock()
		return
	}
	d.config = c
	p := d.process
	d.mu.Unlock()
	if p != nil {
		p.end(errors.New("its folders are others now"))
	}
	signal(d.set)
}

// ConfigDir is where the account's units are written.
func (d *Delegate) ConfigDir() string { return Config{Home: d.o.Login.Home}.ConfigDir() }

// Trouble says why there has been no child for some time, "" when there is one, or
// when one is only being started.
func (d *Delegate) Trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil || d.deaths < doubtful {
		return ""
	}
	return d.trouble
}

// hear takes in what the child says, until it says no more.
func (d *Delegate) hear(p *process) {
	for {
		text, raw, err := receive(p.out, p.allowed)
		if err != nil {
			p.end(fmt.Errorf("it ended, or broke the rules: %w", err))
			return
		}
		var r reply
		if n := parts(text); n > p.mostParts() {
			err = fmt.Errorf("an answer of %d parts", n)
		} else {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			p.end(fmt.Errorf("it broke the rules: %w", err))
			return
		}
		if r.ID == 0 {
			if !p.news.step(time.Now()) {
				p.end(errors.New("it broke the rules: it tells of changes without end"))
				return
			}
			d.changed(r)
			continue
		}
		if !p.answer(r, raw) {
			p.end(errors.New("it broke the rules: an answer that nobody asked for"))
			return
		}
	}
}

// changed takes in what the child's watcher saw.
func (d *Delegate) changed(r reply) {
	const most = 4096
	d.mu.Lock()
	for _, p := range r.Paths {
		if d.all = d.all || len(p) > maxPath || len(d.paths) >= most; !d.all {
			d.paths[p] = true
		}
	}
	if d.all = d.all || r.All; d.all {
		clear(d.paths)
	}
	d.mu.Unlock()
	signal(d.wake)
}

// Set makes dirs the watched folders.
func (d *Delegate) Set(dirs []string) {
	d.mu.Lock()
	d.dirs = slices.Clone(dirs)
	d.mu.Unlock()
	signal(d.want)
}

// Wake has a value when there is something to Drain.
func (d *Delegate) Wake() <-chan struct{} { return d.wake }

// Drain returns the paths that changed since it was last called, sorted; all is
// true when any may have changed, as when a child was replaced.
func (d *Delegate) Drain() (paths []string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.paths {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	all, d.all = d.all, false
	clear(d.paths)
	return paths, all
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// groupName is the name of a group, its number where it has none.
func groupName(gid int) string {
	id := fmt.Sprint(gid)
	if g, err := lookupGroup(id); err == nil {
		return g
	}
	return id
}

var errNoChild = errors.New("the process that acts as the account is being started")

// turnOf waits for the turn of a call, and for a child.
func (d *Delegate) turnOf(gone <-chan struct{}, what string) (*process, func(), error) {
	select {
	case d.turn <- struct{}{}:
	case <-gone:
		return nil, nil, fault.New(fault.Canceled, what, d.o.Login.Name, errGone)
	}
	done := func() { <-d.turn }
	d.mu.Lock()
	p, up := d.process, d.up
	d.mu.Unlock()
	if p != nil {
		return p, done, nil
	}
	timer := time.NewTimer(waitForChild)
	defer timer.Stop()
	select {
	case <-up:
		d.mu.Lock()
		p = d.process
		d.mu.Unlock()
	case <-timer.C:
	case <-gone:
	}
	if p != nil {
		return p, done, nil
	}
	done()
	why := errNoChild
	d.mu.Lock()
	if d.trouble != "" {
		why = errors.New("the process that acts as the account does not run: " + d.trouble)
	}
	d.mu.Unlock()
	return nil, nil, fault.New(fault.Unavailable, what, d.o.Login.Name, why)
}
