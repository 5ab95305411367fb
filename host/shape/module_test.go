package shape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestOfModuleReadsNamesOfModules(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, want := range map[string]string{
		"desk.watcher": "desk", long + "." + long: long,
		"": "", "watcher": "", ".watcher": "", "desk.": "", "a.b.c": "", "Desk.watcher": "", "desk.-x": "", "desk/x.y": "", long + "a.x": "",
	} {
		require.Equal(t, want, OfModule(name), name)
	}
}

func TestAModulesDeclarationHasItsNameAndItsUnit(t *testing.T) {
	all, problems := Parse("m.yaml", []byte("shape: service\nname: watcher\nensure: running\nnodes: [ws1]\n"))
	require.NoError(t, problems.Err())
	own, err := all[0].ForModule("desk")
	require.NoError(t, err)
	require.Equal(t, "desk.watcher", own.Name)
	require.EqualValues(t, "watcher.service", own.Unit)
	require.Empty(t, own.Nodes)
	require.Zero(t, own.Origin)
	require.Equal(t, "watcher", all[0].Name, "what it was made of is as it was")

	back, err := FromCanonical(own.Canonical())
	require.NoError(t, err)
	require.Equal(t, own, back)
	require.NotEqual(t, all[0].Digest(), own.Digest())

	for _, module := range []string{"", "a.b", "A", "-"} {
		_, err = all[0].ForModule(module)
		require.True(t, fault.Is(err, fault.Invalid), module)
	}
	_, err = own.ForModule("other")
	require.True(t, fault.Is(err, fault.Invalid), "it belongs to one")
}

// TestOnlyAModulesNameMayHoldADot: in a file nobody takes such a name, and in
// canonical form every other rule holds for it.
func TestOnlyAModulesNameMayHoldADot(t *testing.T) {
	_, problems := Parse("m.yaml", []byte("shape: service\nname: desk.watcher\nensure: running\n"))
	require.ErrorContains(t, problems.Err(), "is kept for modules")
	for name, form := range map[string]string{
		"two dots":               `{"ensure":"running","name":"a.b.c","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"x.service"}`,
		"no label":               `{"ensure":"running","name":"desk.","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"x.service"}`,
		"a protected unit":       `{"ensure":"running","name":"desk.x","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"dbus.service"}`,
		"its name is a bad unit": `{"ensure":"running","name":"desk.x@","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"desk.x@.service"}`,
	} {
		_, err := FromCanonical([]byte(form))
		require.True(t, fault.Is(err, fault.Invalid), name)
	}
}
