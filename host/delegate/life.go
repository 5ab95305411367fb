package delegate

import (
	"context"
	"time"
)

// Run keeps the child until ctx ends, and returns nil then. The child is killed;
// one that the kernel holds is not waited for.
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
		if !d.enter(ctx) {
			return nil
		}
		begun := time.Now()
		why := d.live(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end
		}
		well := time.Since(begun) > livedWell
		if well {
			delay = firstDelay
		}
		d.died(well, why.Error())
		d.o.Logger.Warn("process that acts as the account ended", "account", d.o.Login.Name, "error", why, "retry", delay)
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

// enter waits until there is room for one more child: each that a file system holds
// takes up memory, and what could be started next would be held as well. False means
// that ctx has ended.
func (d *Delegate) enter(ctx context.Context) bool {
	select {
	case d.room <- struct{}{}:
		return true
	default:
	}
	d.mu.Lock()
	d.deaths, d.trouble = doubtful, "processes that acted as the account cannot be ended: a file system holds them"
	text := d.trouble
	d.mu.Unlock()
	d.o.Logger.Warn("no process that acts as the account is started", "account", d.o.Login.Name, "error", text)
	select {
	case d.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// died notes that a child ended.
func (d *Delegate) died(well bool, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if well {
		d.deaths = 0
	}
	d.deaths++
	d.trouble = why
}

// lastWords is how long a child that was killed is waited for, which a file system may
// hold for ever.
const lastWords = 200 * time.Millisecond

// live has one child live, and says why it ended.
func (d *Delegate) live(ctx context.Context) error {
	leave := func() { <-d.room }
	p, err := d.start(ctx)
	if err != nil {
		leave()
		return err
	}
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
	select {
	case <-p.reap(leave): // and all that it said was read
	case <-time.After(lastWords):
	}
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
