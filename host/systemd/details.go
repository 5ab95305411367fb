package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"

	"stead/host/fault"
	"stead/host/unit"
)

// Details tells all of one unit, by whichever of its names, as the manager has it
// at one moment. A unit that does not exist is answered with Load NotFound, and a
// name of which there cannot be a unit with the class Invalid: a bare template
// has no state.
//
// It takes one call, and another one where a job is queued.
func (r *Reader) Details(ctx context.Context, name unit.Name) (unit.Details, error) {
	if _, err := unit.ParseName(string(name)); err != nil {
		return unit.Details{}, fault.New(fault.Invalid, "read unit", "", err)
	}
	if name.IsTemplate() {
		return unit.Details{}, fault.New(fault.Invalid, "read unit", string(name), errors.New("it is a template, and only its instances have a state"))
	}
	replies, err := r.ask(ctx, "read unit", string(name), []call{{pathOfUnit(name), "org.freedesktop.DBus.Properties", "GetAll", []any{""}}})
	if err != nil {
		return unit.Details{}, err
	}
	if replies[0].err != nil {
		return unit.Details{}, looking("read unit", string(name), replies[0].err)
	}
	p, err := propertiesOf(replies[0].body)
	if err != nil {
		return unit.Details{}, err
	}
	d := p.details()
	if d.Job.ID != 0 {
		d.Job, err = r.job(ctx, d.Job.ID)
	}
	return d, err
}

// job says what a job does; the zero Job when it has ended meanwhile.
func (r *Reader) job(ctx context.Context, id uint32) (unit.Job, error) {
	path := dbus.ObjectPath(fmt.Sprintf("/org/freedesktop/systemd1/job/%d", id))
	replies, err := r.ask(ctx, "read job", "", []call{get(path, "org.freedesktop.systemd1.Job", "JobType")})
	if err != nil || replies[0].err != nil {
		return unit.Job{}, err
	}
	kind, err := textOf("Get JobType", replies[0].body)
	return unit.Job{ID: id, Type: unit.JobType(kind)}, err
}
