package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestLinesGoToTheUnitThatTheyName(t *testing.T) {
	files := map[unit.Name]string{"a.service": "/etc/systemd/system/a.service", "b.service": "/etc/systemd/system/b.service"}
	said := "/etc/systemd/system/a.service:3: Unknown key 'Foo' in section [Service], ignoring.\n" +
		"b.service: Command /bin/nonesuch is not executable: No such file or directory\n" +
		"/etc/systemd/system/b.service.d/10-x.conf:2: Unknown section 'Servce'. Ignoring.\n" +
		"other.service: not ours\n"
	out := make(map[unit.Name][]string)
	sort([]byte(said), []unit.Name{"a.service", "b.service"}, files, out)
	require.Equal(t, map[unit.Name][]string{
		"a.service": {"/etc/systemd/system/a.service:3: Unknown key 'Foo' in section [Service], ignoring."},
		"b.service": {
			"b.service: Command /bin/nonesuch is not executable: No such file or directory",
			"/etc/systemd/system/b.service.d/10-x.conf:2: Unknown section 'Servce'. Ignoring.",
		},
	}, out)
}
