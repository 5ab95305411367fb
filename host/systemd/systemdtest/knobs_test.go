package systemdtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// bubble runs a test with a connected fake and a unit that sleeps in it.
func bubble(t *testing.T, run func(t *testing.T, f *Fake)) {
	synctest.Test(t, func(t *testing.T) {
		env := openFake(t, Options{})
		require.NoError(t, os.WriteFile(filepath.Join(env.Dir, "a.service"), []byte(sleeper), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(env.Dir, "b.service"), []byte(unready), 0o644))
		synctest.Wait()
		f := env.Manager.(*Fake)
		f.Drain()
		run(t, f)
	})
}

func start(f *Fake, names ...unit.Name) []unit.Queued {
	var requests []unit.JobRequest
	for _, n := range names {
		requests = append(requests, unit.JobRequest{Name: n, Type: unit.StartJob})
	}
	return f.Enqueue(context.Background(), requests)
}

func activeState(t *testing.T, f *Fake, n unit.Name) unit.ActiveState {
	got, err := f.Observe(context.Background(), []unit.Name{n})
	require.NoError(t, err)
	return got[0].Active
}

func TestFakeFailsAsOftenAsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		boom := fault.New(fault.Failed, "reload", "", errors.New("boom"))
		f.Break("Reload", Break{Err: boom, Times: 2})
		for range 2 {
			_, err := f.Reload(context.Background())
			require.ErrorIs(t, err, boom)
		}
		_, err := f.Reload(context.Background())
		require.NoError(t, err)
		f.Break("Observe", Break{Err: boom})
		for range 3 {
			_, err := f.Observe(context.Background(), []unit.Name{"a.service"})
			require.ErrorIs(t, err, boom)
		}
		f.Mend()
		require.Equal(t, unit.Inactive, activeState(t, f, "a.service"))
		require.Equal(t, map[string]int{"Reload": 3, "Observe": 4}, f.Calls())
		require.Equal(t, []string{"reload"}, f.Log())
	})
}

func TestFakeFailsOneUnitOfMany(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		boom := fault.New(fault.Denied, "start", "a.service", errors.New("boom"))
		f.Break("Enqueue", Break{Unit: "a.service", Err: boom})
		q := start(f, "a.service", "b.service")
		require.ErrorIs(t, q[0].Err, boom)
		require.Zero(t, q[0].ID)
		require.NoError(t, q[1].Err)
		require.Equal(t, []string{"start b.service"}, f.Log())
		require.Equal(t, map[string]int{"Enqueue": 1}, f.Calls())
	})
}

func TestFakeDoesItAndSaysThatItDidNot(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		f.Break("Enqueue", Break{Err: fault.New(fault.Timeout, "start", "a.service", nil), After: true, Times: 1})
		require.Equal(t, fault.Timeout, fault.ClassOf(start(f, "a.service")[0].Err))
		synctest.Wait()
		require.Equal(t, unit.Active, activeState(t, f, "a.service"))
	})
}

func TestFakeHangsUntilTheCallTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		f.Break("Observe", Break{Hang: true, Times: 1})
		at := time.Now()
		_, err := f.Observe(context.Background(), []unit.Name{"a.service"})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.Equal(t, 25*time.Second, time.Since(at))
		require.False(t, f.Connected())
		require.True(t, f.Drain().All)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		f.Reconnect()
		f.Break("Observe", Break{Hang: true, Times: 1})
		_, err = f.Observe(ctx, []unit.Name{"a.service"})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.True(t, f.Connected(), "it was the caller who had no time")
	})
}

func TestFakeLosesCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		f.Break("Observe", Break{Delay: time.Minute})
		f.Break("Enqueue", Break{Delay: time.Minute})
		time.AfterFunc(time.Second, f.Disconnect)
		seen := make(chan error)
		go func() {
			_, err := f.Observe(context.Background(), []unit.Name{"a.service"})
			seen <- err
		}()
		require.Equal(t, fault.Timeout, fault.ClassOf(start(f, "a.service")[0].Err))
		require.Equal(t, fault.Unavailable, fault.ClassOf(<-seen))
	})
}

func TestFakeWithoutAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		id := start(f, "b.service")[0].ID
		synctest.Wait()
		f.Disconnect()
		require.True(t, f.Drain().All)
		at := time.Now()
		require.Equal(t, fault.Unavailable, fault.ClassOf(start(f, "a.service")[0].Err))
		require.Equal(t, 2*time.Second, time.Since(at))
		require.NoError(t, f.Ready("b.service"))
		require.Zero(t, f.Drain(), "nobody hears of it")
		f.Reconnect()
		require.Equal(t, unit.Changes{All: true}, f.Drain(), "the end of job %d is lost", id)
		require.Equal(t, unit.Active, activeState(t, f, "b.service"))
	})
}

func TestFakeProcessesDoAsTheyAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		q := start(f, "a.service", "b.service")
		synctest.Wait()
		require.Equal(t, unit.Activating, activeState(t, f, "b.service"))
		require.Error(t, f.Ready("a.service"))
		require.NoError(t, f.Ready("b.service"))
		require.Contains(t, f.Drain().Jobs, unit.JobEnd{ID: q[1].ID, Unit: "b.service", Result: unit.JobDone})
		require.NoError(t, f.Exit("a.service", 3))
		got, err := f.Observe(context.Background(), []unit.Name{"a.service"})
		require.NoError(t, err)
		require.Equal(t, unit.FailedState, got[0].Active)
		require.Equal(t, int32(3), got[0].Trouble.ExitStatus)
		require.Error(t, f.Exit("a.service", 3))
		require.Error(t, f.Kill(1))
	})
}

func TestFakeIsStillOnceItIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, f *Fake) {
		start(f, "a.service")
		f.Close()
		synctest.Wait()
		require.Equal(t, unit.Inactive, activeState(t, f, "a.service"))
	})
}
