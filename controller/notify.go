package controller

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"stead/mesh"
)

// tellReady tells the service manager that the controller answers. Without
// NOTIFY_SOCKET there is nobody to tell.
func tellReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

func tellStopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }

// feed feeds the service manager's watchdog for as long as the controller could
// answer: a NATS server of its own that hangs gets it restarted. That of somebody
// else does not, since that would cure nothing.
func feed(ctx context.Context, conn *mesh.Conn, own bool) error {
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
		if !own || conn.Wait(bound) == nil {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		cancel()
	}
}
