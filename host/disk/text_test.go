package disk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestTheConditionsInForceAreThoseSinceTheLastEmptyOne(t *testing.T) {
	files := []*thing{
		{text: unit.ParseFile([]byte("[Unit]\nConditionPathExists=/old\nConditionPathExists=\nConditionHost=a\nAssertPathExists=/b\n[Service]\nConditionHost=c\n"))},
		{text: unit.ParseFile([]byte("[Unit]\nConditionPathExists=!/d\n"))},
	}
	require.Equal(t, []string{"ConditionHost=a", "ConditionPathExists=!/d"}, define("", "/etc/x.service", files).text.Conditions)
	files = append(files, &thing{text: unit.ParseFile([]byte("[Unit]\nConditionACPower=\n"))})
	require.Empty(t, define("", "/etc/x.service", files).text.Conditions, "an empty one of any kind forgets all")
}
