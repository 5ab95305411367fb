package disk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/unit"
)

func TestTheConditionsInForceAreThoseSinceTheLastEmptyOne(t *testing.T) {
	files := []*thing{
		{text: unit.ParseFile([]byte("[Unit]\nConditionPathExists=/old\nConditionPathExists=\nConditionHost=a\nAssertPathExists=/b\n[Service]\nConditionHost=c\n"))},
		{text: unit.ParseFile([]byte("[Unit]\nConditionPathExists=!/d\n"))},
	}
	require.Equal(t, []string{"ConditionHost=a", "ConditionPathExists=!/d"}, define("", "/etc/x.service", files, 252).text.Conditions)
	files = append(files, &thing{text: unit.ParseFile([]byte("[Unit]\nConditionACPower=\n"))})
	require.Empty(t, define("", "/etc/x.service", files, 252).text.Conditions, "an empty one of any kind forgets all")
}

func TestTheVersionOfSystemdSaysWhatATextMeans(t *testing.T) {
	of := func(text string, version int) plan.Text {
		return define("", "/etc/x.service", []*thing{{text: unit.ParseFile([]byte(text))}}, version).text
	}
	const notify, bus = "[Service]\nType=notify-reload\n", "[Service]\nType=dbus\n"
	for version, reloads := range map[int]bool{0: true, 247: false, 252: false, 253: true, 257: true} {
		require.Equal(t, reloads, of(notify, version).Reloads, version)
		require.True(t, of(notify+"ExecReload=/bin/true\n", version).Reloads, version)
	}
	for version, deadly := range map[int]string{0: "", 247: "Type=dbus without BusName=", 252: "", 257: ""} {
		require.Equal(t, deadly, of(bus, version).Deadly, version)
		require.Empty(t, of(bus+"BusName=a.b\n", version).Deadly, version)
	}
}
