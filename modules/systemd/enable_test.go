package systemd

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

func TestLinksAreMadeAndRemoved(t *testing.T) {
	link := unit.LinkMade{Path: "/etc/systemd/system/multi-user.target.wants/web.service", To: "/etc/systemd/system/web.service"}
	u := service("web.service").state(unit.Inactive, "dead")
	u.links, u.passed = []unit.LinkMade{link}, []string{"b.service: masked"}
	f := newFakeNode(u, service("static.service"))
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Ensure: "running", Enabled: truth(true)}}
	by := &seats.DeclaredBy{Name: "web", Ensure: "running", Enabled: truth(true)}
	r := f.rig(t)
	reply, err := r.link(seats.Enable, seats.EnableArguments{Unit: "web", Now: true})
	require.NoError(t, err)
	require.Equal(t, seats.EnableReply{
		Unit: "web.service", Scope: "system", Made: []seats.Link{{Path: link.Path, To: link.To}}, Passed: []string{"b.service: masked"}, DeclaredBy: by,
		Acted: &seats.Acted{Unit: "web.service", Scope: "system", Result: "done", Before: stateOf("inactive", "dead"), After: stateOf("active", "running"), Took: 0.02, DeclaredBy: by},
	}, reply)
	reply, err = r.link(seats.Disable, seats.EnableArguments{Unit: "web.service", Now: true})
	require.NoError(t, err)
	require.Equal(t, []string{link.Path}, reply.Removed)
	require.Equal(t, `declaration "web" has it enabled: the host will make its links again`, reply.Note)
	require.Equal(t, `declaration "web" ensures running: the host will start it again`, reply.Acted.Note)
	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "static"})
	require.NoError(t, err)
	require.True(t, reply.NoInstall)
	require.Nil(t, reply.Acted)
	require.Nil(t, reply.DeclaredBy)
	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "getty@.service"})
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Empty(t, reply.Unit)

	f.declared[0].Enabled = truth(false)
	reply, err = r.link(seats.Enable, seats.EnableArguments{Unit: "web"})
	require.NoError(t, err)
	require.Equal(t, `declaration "web" has it disabled: the host will remove its links again`, reply.Note)
}

func TestLinksThatCannotBeChanged(t *testing.T) {
	f := someUnits()
	f.units["idle.service"].err = fault.New(fault.Refused, "enable", "idle.service", errors.New("Unit is generated."))
	f.units["gone.service"].links = []unit.LinkMade{{Path: "/etc/systemd/system/multi-user.target.wants/gone.service", To: "/gone"}}
	r := f.rig(t)
	_, err := r.link(seats.Enable, seats.EnableArguments{Unit: "idle", Now: true})
	requireFault(t, err, fault.Refused, "enable: idle.service: Unit is generated.", "")
	for _, verb := range []subject.Verb{seats.Enable, seats.Disable} {
		_, err = r.link(verb, seats.EnableArguments{Unit: "webb"})
		requireFault(t, err, fault.NotFound, string(verb)+": webb.service: there is no such unit in system scope", "did you mean web.service?")
	}
	// A unit that is gone leaves links behind.
	reply, err := r.link(seats.Disable, seats.EnableArguments{Unit: "gone"})
	require.NoError(t, err)
	require.Equal(t, []string{"/etc/systemd/system/multi-user.target.wants/gone.service"}, reply.Removed)

	done := len(f.asked)
	_, err = r.link(seats.Enable, seats.EnableArguments{Unit: "job@.service", Now: true})
	requireFault(t, err, fault.Invalid, "enable: job@.service: it is a template, and only its instances can be started and stopped", "")
	_, err = r.link(seats.Disable, seats.EnableArguments{Unit: "we*"})
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	f.fails["Details"] = fault.New(fault.Unavailable, "read unit", "web.service", errors.New("no bus"))
	_, err = r.link(seats.Disable, seats.EnableArguments{Unit: "web"})
	requireFault(t, err, fault.Unavailable, "read unit: web.service: no bus", "")
	require.Len(t, f.asked, done)
}

// The links are made whatever becomes of the job: the answer says both.
func TestJobBehindLinksMayFail(t *testing.T) {
	u := service("web.service").state(unit.Inactive, "dead")
	u.links, u.result = []unit.LinkMade{{Path: "/a", To: "/b"}}, unit.JobFailed
	f := newFakeNode(u)
	r := f.rig(t)
	reply, err := r.link(seats.Enable, seats.EnableArguments{Unit: "web", Now: true})
	require.NoError(t, err)
	require.Len(t, reply.Made, 1)
	require.Equal(t, "failed", reply.Acted.Result)
	require.Equal(t, stateOf("failed", "failed"), reply.Acted.After)
}
