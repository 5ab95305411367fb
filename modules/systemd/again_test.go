package systemd

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/runtime/escalate"
	"stead/seats"
)

// begunAct is an act that the helper took before the call came here anew.
func begunAct(act escalate.Act, n unit.Name) escalate.Begun {
	return escalate.Begun{Act: act, Unit: n, Before: "active running"}
}

func TestActThatWasBegunIsToldAsItWas(t *testing.T) {
	f := newFakeNode(service("web.service").state(unit.Inactive, "dead"))
	f.known = []escalate.Begun{begunAct(escalate.Start, "other.service"), begunAct(escalate.Restart, "web.service")}
	reply, err := f.rig(t).act(seats.Restart, seats.ActArguments{Unit: "we*"})
	require.NoError(t, err)
	require.Len(t, reply.Units, 1)
	require.Equal(t, stateOf("active", "running"), reply.Units[0].Before, "not as it stands when it is asked again")
	require.Equal(t, []escalate.Request{{Act: escalate.Restart, Unit: "web.service"}}, f.asked)

	f = newFakeNode()
	f.known = []escalate.Begun{begunAct(escalate.Stop, "run-1.service")}
	reply, err = f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "run-1.service"})
	require.NoError(t, err, "it is gone since it was stopped")
	require.Equal(t, "done", reply.Units[0].Result)

	f = newFakeNode()
	_, err = f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "run-1.service"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "a new call is judged")
}

func TestPatternOfACallThatWasBegunMeansWhatItMeant(t *testing.T) {
	units := func(r seats.ActReply) (all []string) {
		for _, u := range r.Units {
			all = append(all, u.Unit)
		}
		return all
	}
	f := newFakeNode(service("web-2.service"), service("db.service"))
	f.known = []escalate.Begun{begunAct(escalate.Stop, "web-1.service")}
	reply, err := f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "web-*"})
	require.NoError(t, err)
	require.Equal(t, []string{"web-1.service", "web-2.service"}, units(reply))
	reply, err = f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "web-1*"})
	require.NoError(t, err, "nothing is loaded that it means")
	require.Equal(t, []string{"web-1.service"}, units(reply))
}

func TestStartBehindEnableIsToldAsItWas(t *testing.T) {
	f := newFakeNode(service("web.service"))
	f.known = []escalate.Begun{begunAct(escalate.Enable, "web.service"), {Act: escalate.Start, Unit: "web.service", Before: "failed failed"}}
	reply, err := f.rig(t).link(seats.Enable, seats.EnableArguments{Unit: "web", Now: true})
	require.NoError(t, err)
	require.Equal(t, stateOf("failed", "failed"), reply.Acted.Before)
}

func TestWithoutTheHelpersWordNothingIsDoneAgain(t *testing.T) {
	f := newFakeNode(service("web.service"))
	f.fails["Known"] = fault.New(fault.Unavailable, "", "", errors.New("the root helper was not asked"))
	_, err := f.rig(t).act(seats.Stop, seats.ActArguments{Unit: "web*"})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	_, err = f.rig(t).link(seats.Enable, seats.EnableArguments{Unit: "web", Now: true})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.Empty(t, f.asked)
}
