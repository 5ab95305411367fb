package systemd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// encoded is a message as it is on the wire.
func encoded(t testing.TB, order binary.ByteOrder, m *dbus.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, m.EncodeTo(&b, order))
	return b.Bytes()
}

// changeOf is the signal PropertiesChanged of a unit.
func changeOf(path dbus.ObjectPath, iface string, values map[string]dbus.Variant) *dbus.Message {
	body := []any{iface, values, []string{"Conditions", "Asserts"}}
	return &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.DBus.Properties"),
		dbus.FieldMember: dbus.MakeVariant("PropertiesChanged"), dbus.FieldSender: dbus.MakeVariant(busName),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}, Body: body}
}

// oddities are a property of every type that there is, none of which is of interest.
func oddities() map[string]dbus.Variant {
	type pair struct {
		A uint32
		B dbus.ObjectPath
	}
	values := map[string]dbus.Variant{}
	for name, v := range map[string]any{
		"y": byte(1), "n": int16(-1), "q": uint16(2), "b": true, "i": int32(-3), "u": uint32(4), "x": int64(-5), "t": uint64(6), "d": math.Pi,
		"s": "text", "o": dbus.ObjectPath("/a/b"), "g": dbus.ParseSignatureMust("a{sv}"), "v": dbus.MakeVariant(dbus.MakeVariant([]string{"x"})),
		"as": []string{"one", ""}, "at": []uint64{}, "ay": []byte{1, 2, 3}, "a(uo)": []pair{{1, "/"}, {2, "/x"}}, "(uo)": pair{3, "/y"},
		"aas": [][]string{{"a"}, {}, {"b", "c"}}, "a{sv}": map[string]dbus.Variant{"k": dbus.MakeVariant(uint64(9))},
		"a{sas}": map[string][]string{"a": {"b"}}, "(s(yt)as)": struct {
			A string
			B struct {
				C byte
				D uint64
			}
			E []string
		}{A: "deep"},
	} {
		values["odd "+name] = dbus.MakeVariant(v)
	}
	return values
}

func TestSignalsAreReadAsGodbusReadsThem(t *testing.T) {
	values := oddities()
	for name, v := range map[string]any{
		"ActiveState": "active", "SubState": "running", "InvocationID": []byte{0xab, 1}, "StateChangeTimestampMonotonic": uint64(1 << 40),
		"InactiveExitTimestampMonotonic": uint64(7), "ConditionTimestampMonotonic": uint64(8), "AssertTimestampMonotonic": uint64(9),
		"ConditionResult": true, "AssertResult": false, "Result": "exit-code", "NRestarts": uint32(3), "MainPID": uint32(99),
		"ExecMainCode": int32(-2), "ExecMainStatus": int32(15), "Job": struct {
			ID   uint32
			Path dbus.ObjectPath
		}{56, "/org/freedesktop/systemd1/job/56"},
	} {
		values[name] = dbus.MakeVariant(v)
	}
	want := facts{has: ofUnit | ofService, active: "active", sub: "running", invocation: "ab01", job: 56, changed: 1 << 40, exited: 7, tried: 8, tested: 9,
		met: true, result: "exit-code", restarts: 3, mainPID: 99, exitCode: -2, exitStat: 15}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		c := &cursor{b: encoded(t, order, changeOf(pathOfUnit("a-b.service"), unitIfc, values)), order: order}
		s, ok := parseSignal(c)
		require.True(t, ok)
		require.Equal(t, []string{"/org/freedesktop/systemd1/unit/a_2db_2eservice", "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as"},
			[]string{string(s.path), string(s.iface), string(s.member), string(s.sig)})
		iface, f, ok := parseChange(c)
		require.True(t, ok)
		require.Equal(t, unitIfc, iface)
		require.Equal(t, want, f)
	}
}

// TestWhatIsNotTakenPassesUnchanged reads a stream in small pieces.
func TestWhatIsNotTakenPassesUnchanged(t *testing.T) {
	var sent, want bytes.Buffer
	for i := range 200 {
		m := changeOf(pathOfUnit("a.service"), unitIfc, oddities())
		if i%2 == 0 {
			m.Headers[dbus.FieldMember] = dbus.MakeVariant("SomethingElse")
			m.Body[0] = string(bytes.Repeat([]byte("x"), i*i*30))
		}
		b := encoded(t, binary.LittleEndian, m)
		sent.Write(b)
		if i%2 == 0 {
			want.Write(b)
		}
	}
	r := newReceiver(&Manager{cache: newCache(), changes: newChanges()})
	s := &socket{in: bufio.NewReader(iotest.HalfReader(&sent)), most: mostMessage, take: r.pass}
	s.framed.Store(true)
	got, err := io.ReadAll(iotest.OneByteReader(s))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want.Bytes(), got))
}

func TestStreamThatIsNoneEnds(t *testing.T) {
	huge := encoded(t, binary.LittleEndian, changeOf("/", "", nil))
	binary.LittleEndian.PutUint32(huge[4:], 1<<31)
	for name, b := range map[string][]byte{"rubbish": bytes.Repeat([]byte("x"), 64), "a message without end": huge, "half a message": huge[:20]} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				_, _ = far.Write(b)
				_ = far.Close()
			}()
			require.NoError(t, near.SetDeadline(time.Now().Add(5*time.Second)))
			s := &socket{Conn: near, in: bufio.NewReader(near), most: mostMessage, take: func([]byte) []byte { return nil }}
			s.framed.Store(true)
			_, err := s.Read(make([]byte, 10))
			require.Error(t, err)
		})
	}
}

// FuzzMessage holds the reader against any bytes.
func FuzzMessage(f *testing.F) {
	f.Add([]byte{})
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(encoded(f, order, changeOf(pathOfUnit("a.service"), unitIfc, oddities())))
		f.Add(encoded(f, order, changeOf(pathOfUnit("a.service"), typeIfcs["service"], map[string]dbus.Variant{"MainPID": dbus.MakeVariant(uint32(1))})))
		f.Add(encoded(f, order, changeOf("/elsewhere", "x", nil)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &Manager{cache: newCache(), changes: newChanges()}
		r := newReceiver(m)
		r.setLive(true)
		taken := r.takeMessage(b)
		for n, p := range r.prints {
			require.True(t, taken, "what is left to godbus leaves no trace")
			require.NotZero(t, p.unit.has|p.kind.has, "nor does what says nothing of %q", n)
		}
	})
}
