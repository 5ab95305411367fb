package systemd

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// replyOf is the reply to a call.
func replyOf(body ...any) *dbus.Message {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(uint32(77)), dbus.FieldSender: dbus.MakeVariant(":1.0"), dbus.FieldDestination: dbus.MakeVariant(":1.7"),
	}, Body: body}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return m
}

// sealed is what godbus reads of a message that a sealer has passed on.
func sealed(t *testing.T, s *sealer, b []byte) *dbus.Message {
	t.Helper()
	m, err := dbus.DecodeMessage(bytes.NewReader(s.pass(b)))
	require.NoError(t, err)
	require.Equal(t, uint32(77), m.Headers[dbus.FieldReplySerial].Value())
	return m
}

func TestSealedRepliesSayTheSame(t *testing.T) {
	values := oddities()
	job := struct {
		ID   uint32
		Path dbus.ObjectPath
	}{56, "/org/freedesktop/systemd1/job/56"}
	type check struct {
		Name            string
		Trigger, Negate bool
		Param           string
		State           int32
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for name, v := range map[string]any{
		"Id": "a.service", "Names": []string{"b.service", "a.service"}, "Description": "Größe", "Documentation": []string{"man:a(1)", "x:"},
		"LoadState": "loaded", "LoadError": struct{ Name, Text string }{"org.x", "words"}, "ActiveState": "active", "SubState": "running",
		"UnitFileState": "enabled", "UnitFilePreset": "disabled", "FragmentPath": "/etc/a.service", "DropInPaths": []string{"/z", "/a"}, "NeedDaemonReload": true,
		"InvocationID": []byte{0xab, 1}, "Job": job, "Triggers": []string{}, "TriggeredBy": []string{"b.timer", "a.timer"}, "Result": "success",
		"ActiveEnterTimestamp": uint64(at.UnixMicro()), "InactiveEnterTimestamp": uint64(1), "ConditionResult": false, "AssertResult": true,
		"Conditions": []check{{"ConditionA", false, true, "/x", -1}, {"ConditionB", true, false, "/y", 1}}, "Asserts": []check{{"AssertA", false, false, "/z", -1}},
		"MainPID": uint32(99), "NRestarts": uint32(3), "ExecMainCode": int32(2), "ExecMainStatus": int32(15),
		"MemoryCurrent": uint64(1 << 33), "CPUUsageNSec": uint64(math.MaxUint64), "CPUAccounting": true, "TasksCurrent": uint64(math.MaxUint64), "TasksAccounting": false,
	} {
		values[name] = dbus.MakeVariant(v)
	}
	memory, pid, restarts, status := uint64(1<<33), uint32(99), uint32(3), 15
	want := unit.Details{
		ID: "a.service", Names: []unit.Name{"a.service", "b.service"}, Description: "Größe", Documents: []string{"man:a(1)", "x:"},
		Load: unit.Loaded, LoadError: "words", Active: unit.Active, Sub: "running", Enablement: "enabled", Preset: "disabled",
		Fragment: "/etc/a.service", DropIns: []string{"/z", "/a"}, NeedReload: true, Invocation: "ab01", Job: unit.Job{ID: 56},
		Triggers: []unit.Name{}, TriggeredBy: []unit.Name{"a.timer", "b.timer"}, Unmet: []unit.Condition{{Text: "ConditionA=!/x"}},
		Result: "success", ExitCode: "killed", ExitStatus: &status, Since: &at, MainPID: &pid, Restarts: &restarts, Memory: &memory,
		Unset: map[string]string{unit.FigureCPU: "[not set]: the manager has no figure for it", unit.FigureTasks: "[not set]: TasksAccounting= is off"},
	}
	var s sealer
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		p, err := propertiesOf(sealed(t, &s, encoded(t, order, replyOf(values))).Body)
		require.NoError(t, err)
		require.Equal(t, want, p.details())
	}
}

func TestSealedListsSayTheSame(t *testing.T) {
	type row struct {
		Name, Description, Load, Active, Sub, Following string
		Path                                            dbus.ObjectPath
		Job                                             uint32
		JobType                                         string
		JobPath                                         dbus.ObjectPath
	}
	rows := []row{
		{"a.service", "A", "loaded", "active", "running", "", "/a", 0, "", "/"},
		{"b.device", "B", "loaded", "inactive", "dead", "c.device", "/b", 7, "start", "/j"},
		{"no unit", "", "", "", "", "", "/", 0, "", "/"},
	}
	got, err := listedOf("x", sealed(t, &sealer{}, encoded(t, binary.BigEndian, replyOf(rows))).Body)
	require.NoError(t, err)
	require.Equal(t, []unit.Listed{
		{Name: "a.service", Description: "A", Load: unit.Loaded, Active: unit.Active, Sub: "running"},
		{Name: "b.device", Description: "B", Load: unit.Loaded, Active: unit.Inactive, Sub: "dead", Following: "c.device", Job: unit.Job{ID: 7, Type: unit.StartJob}},
	}, got)
}

func TestRepliesOfAnotherShapeAreDefects(t *testing.T) {
	var s sealer
	for name, body := range map[string][]any{
		"nothing": {}, "another type": {"text"}, "a list": {[]string{"a"}}, "no id": {map[string]dbus.Variant{"X": dbus.MakeVariant(1)}},
		"an id of no unit": {map[string]dbus.Variant{"Id": dbus.MakeVariant("x")}}, "an id that is no text": {map[string]dbus.Variant{"Id": dbus.MakeVariant(uint32(1))}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := propertiesOf(sealed(t, &s, encoded(t, binary.LittleEndian, replyOf(body...))).Body)
			require.Equal(t, fault.Internal, fault.ClassOf(err))
			_, err = listedOf("x", sealed(t, &s, encoded(t, binary.LittleEndian, replyOf(body...))).Body)
			require.Equal(t, fault.Internal, fault.ClassOf(err))
		})
	}
}

func TestSealerPassesErrorsAndNothingElse(t *testing.T) {
	var s sealer
	failed := replyOf("words")
	failed.Type = dbus.TypeError
	failed.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.x.Y")
	b := encoded(t, binary.LittleEndian, failed)
	require.Equal(t, b, s.pass(b))
	require.Nil(t, s.pass(encoded(t, binary.LittleEndian, changeOf(pathOfUnit("a.service"), unitIfc, oddities()))))
	call := &dbus.Message{Type: dbus.TypeMethodCall, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/")), dbus.FieldMember: dbus.MakeVariant("Introspect"),
	}}
	require.Nil(t, s.pass(encoded(t, binary.LittleEndian, call)))
}

// FuzzReply holds the reading of replies against any bytes.
func FuzzReply(f *testing.F) {
	f.Add([]byte{})
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(encoded(f, order, replyOf(oddities())))
		f.Add(encoded(f, order, replyOf(map[string]dbus.Variant{"Id": dbus.MakeVariant("a.service"), "MainPID": dbus.MakeVariant(uint32(1))})))
		f.Add(encoded(f, order, replyOf()))
		f.Add(encoded(f, order, replyOf("text")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := dbus.DecodeMessage(bytes.NewReader((&sealer{}).pass(b)))
		if err != nil {
			return
		}
		if p, err := propertiesOf(m.Body); err == nil {
			require.NoError(t, unit.CheckName(string(p.details().ID)))
		}
		_, _ = listedOf("x", m.Body)
	})
}
