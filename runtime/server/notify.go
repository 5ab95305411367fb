package server

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// alive is asked before the watchdog is fed.
type alive interface {
	Alive(ctx context.Context) error
}

// ready tells the service manager that the process serves, if it asked to be told.
func ready() {
	// Without NOTIFY_SOCKET there is nobody to tell.
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
}

func stopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }

// watchdog feeds the service manager's watchdog for as long as a answers.
func watchdog(ctx context.Context, a alive) error {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		<-ctx.Done()
		return nil
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
		if a.Alive(bound) == nil {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		cancel()
	}
}
