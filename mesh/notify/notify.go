// Package notify tells the service manager how a process of stead stands: that it
// is ready, that it ends, and, for as long as it answers, that it lives
// (sd_notify(3), sd_watchdog_enabled(3)).
//
// Where nobody asked to be told, nothing happens. All functions may be called
// from any goroutine.
package notify

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// tell says something. Without NOTIFY_SOCKET there is nobody to tell.
func tell(what string) { _, _ = daemon.SdNotify(false, what) }

// Ready says that the process serves.
func Ready() { tell(daemon.SdNotifyReady) }

// Stopping says that the process ends.
func Stopping() { tell(daemon.SdNotifyStopping) }

// Status says in one line what the process does.
func Status(line string) { tell("STATUS=" + line) }

// Watchdog feeds the service manager's watchdog until ctx ends, and returns nil
// then. It asks alive before each feeding, bounded by a third of the watchdog's
// time: a process that hangs is not fed, and gets restarted.
func Watchdog(ctx context.Context, alive func(context.Context) error) error {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		<-ctx.Done()
		return nil //nolint:nilerr // a watchdog that is not understood is not fed, and systemd says so
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		bound, cancel := context.WithTimeout(ctx, every/3)
		if alive(bound) == nil {
			tell(daemon.SdNotifyWatchdog)
		}
		cancel()
	}
}
