package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
)

// Options say whose child it is.
type Options struct {
	Name   string // of the account
	UID    int    // not 0
	GID    int
	Groups []int // further ones
	Home   string
	Logger *slog.Logger // required
	// Arguments are those with which this program calls Serve; nil is "host delegate".
	Arguments []string
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
)

// Delegate keeps a child that is the account. Make it with New; Run starts the
// child once Open has said which folders it serves.
type Delegate struct {
	o Options

	turn chan struct{} // one call at a time; has a token while somebody has the turn
	wake chan struct{} // the watcher's
	want chan struct{} // folders to watch have changed
	set  chan struct{} // Open was called

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
	if o.UID <= 0 || o.GID < 0 || o.Home == "" || o.Logger == nil {
		return nil, fault.New(fault.Invalid, "act as an account", o.Name, errors.New("an account that is not root, its home and a logger are wanted"))
	}
	if o.Arguments == nil {
		o.Arguments = []string{"host", "delegate"}
	}
	if o.Answer == 0 {
		o.Answer = defaultAnswer
	}
	return &Delegate{o: o, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), want: make(chan struct{}, 1), set: make(chan struct{}, 1),
		up: make(chan struct{}), paths: make(map[string]bool)}, nil
}

// Open says where the account's manager looks for units, and of which version of
// systemd it is. A child that runs goes over to it.
func (d *Delegate) Open(unitPath []string, version int) {
	d.mu.Lock()
	c := &Config{Name: d.o.Name, Group: groupName(d.o.GID), UID: d.o.UID, GID: d.o.GID, Home: d.o.Home, UnitPath: slices.Clone(unitPath), Version: version}
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
func (d *Delegate) ConfigDir() string { return Config{Home: d.o.Home}.ConfigDir() }

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

// Run keeps the child until ctx ends, and returns nil then. No child is left.
func (d *Delegate) Run(ctx context.Context) error {
	delay := firstDelay
	for {
		d.mu.Lock()
		ready := d.config != nil
		d.mu.Unlock()
		if !ready {
			select {
			case <-ctx.Done():
				return nil
			case <-d.set:
			}
			continue
		}
		begun := time.Now()
		why := d.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) > livedWell {
			delay = firstDelay
		}
		d.mu.Lock()
		if time.Since(begun) > livedWell {
			d.deaths = 0
		}
		d.deaths++
		d.trouble = why.Error()
		d.mu.Unlock()
		d.o.Logger.Warn("process that acts as the account ended", "account", d.o.Name, "error", why, "retry", delay)
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-d.set: // other folders, another try
			timer.Stop()
		case <-timer.C:
		}
		delay = min(2*delay, lastDelay)
	}
}

// live has one child live, and says why it ended.
func (d *Delegate) live(ctx context.Context) error {
	p, err := d.start()
	if err != nil {
		return err
	}
	defer p.reap()
	stop := context.AfterFunc(ctx, func() { p.end(context.Cause(ctx)) })
	defer stop()
	d.mu.Lock()
	config := d.config
	d.mu.Unlock()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		d.hear(p)
	}()
	err = d.open(p, config)
	if err == nil {
		d.mu.Lock()
		d.process = p
		close(d.up)
		d.all = true // nobody watched before
		d.mu.Unlock()
		signal(d.wake)
		d.arm(p)
		<-p.ended
		d.mu.Lock()
		d.process, d.up = nil, make(chan struct{})
		d.mu.Unlock()
	}
	p.end(err)
	<-heard
	return p.why()
}

// open tells a new child its folders.
func (d *Delegate) open(p *process, c *Config) error {
	r, _, err := p.call(ask{Op: opOpen, Config: c}, nil, d.o.Answer)
	if err != nil {
		return err
	}
	return r.Err.Err()
}

// arm keeps the child told which folders to watch, until it ends.
func (d *Delegate) arm(p *process) {
	signal(d.want)
	for {
		select {
		case <-p.ended:
			return
		case <-d.want:
		}
		d.mu.Lock()
		dirs := d.dirs
		d.mu.Unlock()
		d.turn <- struct{}{}
		_, _, err := p.call(ask{Op: opWatch, Paths: dirs}, nil, d.o.Answer)
		<-d.turn
		if err != nil {
			return
		}
	}
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
		d.paths[p] = true
	}
	if d.all = d.all || r.All || len(d.paths) > most; d.all {
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
		return nil, nil, fault.New(fault.Canceled, what, d.o.Name, errGone)
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
	return nil, nil, fault.New(fault.Unavailable, what, d.o.Name, why)
}

// environment is all that a child gets of one.
func (d *Delegate) environment() []string {
	return []string{"HOME=" + d.o.Home, "USER=" + d.o.Name, "LOGNAME=" + d.o.Name, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
}
